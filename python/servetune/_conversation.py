# SPDX-License-Identifier: Apache-2.0
"""The conversation with one `autotune ask-tell` (docs/reference/your-own-program.md).

One thread of its own writes the lines and reads the answers, work after work. An exception in a thread that waits for
it, such as a KeyboardInterrupt, can therefore not part a line from its answer.
"""

from __future__ import annotations

import json
import os
import queue
import select
import subprocess
import threading
import weakref
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Generic, TypeVar

from ._errors import Error, ForkedError, IoError, UsageError, error_of

Message = Mapping[str, Any]
Say = Callable[[Message], dict[str, Any]]
T = TypeVar("T")

_patience_seconds = 5.0
"""What a program gets to end by itself; one that has nothing to do needs milliseconds."""


class _Job(Generic[T]):
    __slots__ = ("work", "result", "error", "undone")

    def __init__(self, work: Callable[[Say], T]) -> None:
        self.work = work
        self.result: T
        self.error: BaseException | None = None
        # Held until the work is done. An exception in who waits for an Event can leave the Event's own lock behind.
        self.undone = threading.Lock()
        self.undone.acquire()


class Conversation:
    """A running `autotune ask-tell`. Any thread may use it. It ends with `close`, or with this process."""

    def __init__(self, words: Sequence[str], descriptors: Sequence[int] = ()) -> None:
        try:
            # A session of its own: Ctrl-C reaches this process only.
            self._process = subprocess.Popen(
                words,
                bufsize=0,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                pass_fds=descriptors,
                start_new_session=True,
            )
        except OSError as error:
            raise IoError(f"{words[0]} cannot be started: {error.strerror or error}") from error
        assert self._process.stdin and self._process.stdout and self._process.stderr
        self._to = self._process.stdin.fileno()
        self._from = self._process.stdout.fileno()
        self._said = self._process.stderr.fileno()
        self._owner = os.getpid()
        self._unread = b""
        self._messages = b""
        # Makes a new error each time: the traceback of one that is kept would hold who asked, and so its program.
        self._failure: Callable[[], Error] | None = None
        self._jobs: queue.SimpleQueue[_Job[Any] | None] = queue.SimpleQueue()
        self._closing = threading.Lock()
        self._closed = False
        self._thread = threading.Thread(target=self._serve, name="servetune", daemon=True)
        _all.add(self)
        self._thread.start()

    def call(self, work: Callable[[Say], T]) -> T:
        """Runs `work` after all others. It is done to its end even if this thread is interrupted meanwhile."""
        if os.getpid() != self._owner:
            raise ForkedError(
                f"this study belongs to process {self._owner}, and this is its forked child {os.getpid()}: ask and tell in"
                " the process that made it, or make a study here"
            )
        if self._closed:
            raise UsageError("this study is closed; a new Study with the same journal goes on from there")
        job = _Job(work)
        self._jobs.put(job)
        while not job.undone.acquire(timeout=1):
            if not self._thread.is_alive() and job.undone.locked():
                raise UsageError("this study was closed meanwhile")
        if job.error is not None:
            try:
                raise job.error
            finally:
                del job
        return job.result

    def post(self, work: Callable[[Say], T]) -> None:
        """The same without waiting for it; nothing if the conversation is over or another process's."""
        if os.getpid() == self._owner and not self._closed:
            self._jobs.put(_Job(work))

    def close(self) -> None:
        """Ends the program; harmless if it has ended. Its journal keeps what was answered."""
        if os.getpid() != self._owner:
            return
        with self._closing:
            if self._closed:
                return
            self._closed = True
            self._jobs.put(None)
            if threading.current_thread() is self._thread:
                return  # nobody holds the study but the work that is just done: it ends after it
            self._thread.join(_patience_seconds)
            if self._thread.is_alive():
                self._process.kill()
                self._thread.join()

    def abandon(self) -> None:
        """In a forked child: lets go of the pipes, or the program would outlive its own process."""
        for stream in (self._process.stdin, self._process.stdout, self._process.stderr):
            if stream is not None:
                stream.close()
        self._process.returncode = 0  # it is no child of this process: nothing waits for it

    def _serve(self) -> None:
        while True:
            job = self._jobs.get()
            if job is None:
                break
            try:
                job.result = job.work(self._say)
            except BaseException as error:
                job.error = error
            job.undone.release()
            del job
        self._end()

    def _say(self, message: Message) -> dict[str, Any]:
        if self._failure is not None:
            raise self._failure()
        try:
            line = json.dumps(message, allow_nan=False).encode("ascii") + b"\n"
        except (TypeError, ValueError) as error:
            raise UsageError(f"this cannot be told to autotune: {error}") from error
        try:
            while line:
                line = line[os.write(self._to, line) :]
        except BrokenPipeError:
            self._fail()
        answer: dict[str, Any] = json.loads(self._line())
        self._read_messages()
        # An error that ends the program stands also in its messages, written before its answer.
        if "error" in answer and f"autotune: {answer['error']}\n".encode() in self._messages:
            self._fail()
        self._log_messages()
        if "error" in answer:
            raise UsageError(str(answer["error"]))
        return answer

    def _line(self) -> bytes:
        """The next answer. Messages for people are read meanwhile, so that none blocks the program."""
        poll = select.poll()
        poll.register(self._from, select.POLLIN)
        poll.register(self._said, select.POLLIN)
        while b"\n" not in self._unread:
            for descriptor, _ in poll.poll():
                data = os.read(descriptor, 65536)
                if descriptor == self._said:
                    self._messages += data
                    if not data:
                        poll.unregister(descriptor)
                elif data:
                    self._unread += data
                else:
                    self._fail()
        line, _, self._unread = self._unread.partition(b"\n")
        return line

    def _fail(self) -> None:
        """Raises why the program has ended, or ends."""
        code = self._ended()
        while data := os.read(self._said, 65536):
            self._messages += data
        messages = self._messages.decode(errors="replace")
        self._failure = lambda: error_of(code, messages)
        raise self._failure()

    def _read_messages(self) -> None:
        poll = select.poll()
        poll.register(self._said, select.POLLIN)
        while any(what & select.POLLIN for _, what in poll.poll(0)):
            self._messages += os.read(self._said, 65536)

    def _log_messages(self) -> None:
        whole, newline, self._messages = self._messages.rpartition(b"\n")
        if newline:
            import logging  # takes long, and is hardly ever needed

            for line in whole.decode(errors="replace").split("\n"):
                logging.getLogger("servetune").warning(line)

    def _ended(self) -> int:
        try:
            return self._process.wait(_patience_seconds)
        except subprocess.TimeoutExpired:
            self._process.kill()
            return self._process.wait()

    def _end(self) -> None:
        assert self._process.stdin and self._process.stdout and self._process.stderr
        self._process.stdin.close()
        self._ended()
        self._process.stdout.close()
        self._process.stderr.close()


_all: weakref.WeakSet[Conversation] = weakref.WeakSet()


def _abandon_all() -> None:
    for conversation in list(_all):
        conversation.abandon()


os.register_at_fork(after_in_child=_abandon_all)
