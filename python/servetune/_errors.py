# SPDX-License-Identifier: Apache-2.0
"""The exceptions, by the kinds of the program's exit codes (docs/reference/commands.md)."""

import re


class Error(Exception):
    """Any error of servetune. A failed trial is none: see `Failed`."""


class UsageError(Error, ValueError):
    """What was asked for makes no sense: a bad space, a trial told twice, another study's journal."""


class IoError(Error, OSError):
    """The world refused: no program, an unwritable journal, a program that ended."""

    def __str__(self) -> str:
        return str(self.args[0]) if self.args else ""


class JournalInUse(IoError):
    """Another process works on this journal."""


class ProgramMissing(IoError):
    """The program `autotune` is nowhere to be found."""


class VersionMismatch(IoError):
    """The program is of another version than the module."""


class ForkedError(Error, RuntimeError):
    """A study was used in a forked child of the process that made it."""


_words = [
    (r"[^\s']*(/proc/self/fd/\d+|/\.servetune-\w+-\w+\.yaml)(:\d+)*(: )?", ""),
    (r"'constraints\b", "'rules"),
    (r"'(objective|space|budget)\.", "'"),
    (r"'wall_clock'", "'deadline'"),
]


def as_called(error: Error) -> Error:
    """The error of a file that nobody wrote, in the words of `Study(...)`."""
    text = str(error)
    for of_file, of_caller in _words:
        text = re.sub(of_file, of_caller, text)
    return type(error)(text)


def error_of(exit_code: int, said: str) -> Error:
    """The exception for a program that ended with this code after it said this."""
    text = re.sub(r"^autotune: ", "", said.strip()) or "autotune has said nothing"
    text = text.replace("--accept-changes", "accept_changes=True").replace("another --directory", "another journal")
    if exit_code == 2:
        return UsageError(text)
    if exit_code == 3:
        return (JournalInUse if "another process is running this study" in text else IoError)(text)
    how = f"signal {-exit_code} has ended it" if exit_code < 0 else f"exit code {exit_code}"
    return IoError(
        f"autotune has ended too early ({how}): {text}; a new Study with the same journal goes on from there"
    )
