# SPDX-License-Identifier: Apache-2.0
"""Finds the program `autotune` and starts it."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Sequence
from typing import Any

from ._errors import IoError, ProgramMissing, VersionMismatch
from ._version import __version__

_checked: set[str] = set()
"""Programs that are of the module's version."""


def find(name: str = "autotune") -> str:
    """The program's path: $SERVETUNE_AUTOTUNE, else the one inside the package, else the first on the PATH."""
    named = os.environ.get("SERVETUNE_AUTOTUNE")
    if named:
        path = named if name == "autotune" else os.path.join(os.path.dirname(named), name)
        if os.access(path, os.X_OK):
            return path
        raise ProgramMissing(f"the environment variable SERVETUNE_AUTOTUNE names {named}, but {path} is no program")
    inside = os.path.join(os.path.dirname(os.path.abspath(__file__)), "bin", name)
    if os.access(inside, os.X_OK):
        return inside
    for folder in os.get_exec_path():
        path = os.path.join(folder, name)
        if os.path.isfile(path) and os.access(path, os.X_OK) and not _leads_here(path):
            return path
    raise ProgramMissing(
        f"the program '{name}' was found neither at {inside} nor on the PATH: install the wheel of this platform"
        f" (pip install --force-reinstall servetune), or build it and set SERVETUNE_AUTOTUNE to its path"
    )


def find_checked() -> str:
    """The program's path. Throws VersionMismatch where it is not of the module's version."""
    path = find()
    if path not in _checked:
        ran = run_program([path, "--version"])
        words = ran.stdout.split("\n")[0].split() if ran.returncode == 0 else []
        found = words[-1] if len(words) == 2 else ""
        if found != __version__:
            said = (
                f"is of version {found}"
                if found
                else f"does not say its version ({ran.stderr.strip() or ran.returncode})"
            )
            raise VersionMismatch(
                f"the module servetune is of version {__version__}, but the program {path} {said}: install both from one"
                " package, or set SERVETUNE_AUTOTUNE to the program that belongs to the module"
            )
        _checked.add(path)
    return path


def run_program(words: Sequence[str]) -> subprocess.CompletedProcess[str]:
    """Runs a program to its end; its output is UTF-8. Throws IoError if it cannot be started."""
    try:
        return subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True, encoding="utf-8", errors="replace")
    except OSError as error:
        raise IoError(f"{words[0]} cannot be started: {error.strerror or error}") from error


def start_in_session(words: Sequence[str], **more: Any) -> subprocess.Popen[bytes]:
    """Starts a program that Ctrl-C does not reach, and that ends in good order when this process is killed."""
    import ctypes

    prctl = getattr(ctypes.CDLL(None), "prctl", None)
    pdeathsig = 1  # PR_SET_PDEATHSIG of linux/prctl.h

    def stops_with_parent() -> None:
        if prctl is not None:
            prctl(pdeathsig, signal.SIGINT)

    return subprocess.Popen(
        words, stdin=subprocess.DEVNULL, start_new_session=True, preexec_fn=stops_with_parent, **more
    )


def run_visibly(words: Sequence[str]) -> int:
    """Runs a program whose output people see, and returns its exit code. Ctrl-C asks it to stop, once."""
    try:
        process = start_in_session(words)
    except OSError as error:
        raise IoError(f"{words[0]} cannot be started: {error.strerror or error}") from error
    try:
        return process.wait()
    except BaseException:
        process.send_signal(signal.SIGINT)
        process.wait()
        raise


class SpaceFile:
    """A study file that exists while a program starts: in memory, or in the working folder where memory has no path."""

    def __init__(self, text: str) -> None:
        self.descriptors: tuple[int, ...] = ()
        if hasattr(os, "memfd_create") and os.path.isdir("/proc/self/fd"):
            descriptor = os.memfd_create("servetune")
            self.descriptors = (descriptor,)
            self.path = f"/proc/self/fd/{descriptor}"
        else:
            self.path = os.path.abspath(f".servetune-{os.getpid()}-{id(self):x}.yaml")
            try:
                descriptor = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            except OSError as error:
                raise IoError(f"the study file {self.path} cannot be written: {error.strerror}") from error
        try:
            with open(descriptor, "wb", closefd=False) as stream:
                stream.write(text.encode())
            if not self.descriptors:
                os.close(descriptor)
        except BaseException:
            self.remove()
            raise

    def remove(self) -> None:
        for descriptor in self.descriptors:
            os.close(descriptor)
        if not self.descriptors:
            os.unlink(self.path)
        self.descriptors = ()


def _leads_here(path: str) -> bool:
    """Whether it is a console script of this package, which asks `find` itself."""
    with open(path, "rb") as stream:
        return b"servetune._scripts" in stream.read(1000)
