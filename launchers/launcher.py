# SPDX-License-Identifier: Apache-2.0
"""What launchers in Python share: docs/reference/your-own-program.md. A launcher reads a Request, says
facts, and starts an engine for as long as it is Wanted."""
import os
import signal
import sys
import threading
import time


def fact(word, *texts):
    """One line on descriptor 3; nobody reads it where the descriptor is closed."""
    line = " ".join([word, *(str(text) for text in texts)])
    line = " ".join(line.split("\n")).strip() + "\n"
    try:
        os.write(3, line.encode("utf-8", "surrogateescape"))
    except OSError:
        pass


class Trouble(Exception):
    """What somebody refused, or could not do. `lasts`: asked again it would be the same."""

    def __init__(self, text, lasts=False):
        super().__init__(text)
        self.lasts = lasts


def failed(why, kind="infrastructure"):
    """Says why there is no engine (any more); the exit code of `start`."""
    fact("failed " + kind, why)
    return 125


def patiently(call, seconds=60.0, give_up=lambda: False, pause=0.1):
    """What `call` returns. A Trouble that does not last is asked away: a scheduler that is being
    restarted answers soon."""
    until = time.monotonic() + seconds
    while True:
        try:
            return call()
        except Trouble as trouble:
            if trouble.lasts or time.monotonic() + pause > until or give_up():
                raise
        time.sleep(pause)
        pause = min(2 * pause, 2.0)


def show(text, stream=None):
    """What the engine prints. Where autotune was killed nobody reads it: that ends no launcher,
    which still has to end its engine."""
    out = (stream or sys.stdout).buffer
    try:
        out.write(text.encode("utf-8", "surrogateescape"))
        out.flush()
    except OSError:
        pass


class Request:
    """The lines that standard input brings, up to an empty one."""

    def __init__(self, stream):
        self.pairs = []
        for line in iter(stream.readline, b""):
            line = line.decode("utf-8", "surrogateescape").rstrip("\n")
            if not line:
                break
            key, _, text = line.partition(" ")
            if key == "more":
                self.pairs[-1][1] += "\n" + text
            else:
                self.pairs.append([key, text])

    def all(self, key):
        return [text for one, text in self.pairs if one == key]

    def one(self, key, default=""):
        return (self.all(key) or [default])[-1]

    def number(self, key, default=0):
        return int(self.one(key, default))

    def settings(self):
        """Name -> its values."""
        result = {}
        for text in self.all("set"):
            name, _, value = text.partition(" ")
            result.setdefault(name, []).append(value)
        return result

    def data(self, key):
        """The file that a setting names, as JSON text; empty: it names none."""
        return next((text[len(key) + 1:] for text in self.all("data")
                     if text.startswith(key + " ")), "")

    def environment(self):
        return dict(text.partition("=")[::2] for text in self.all("environment"))

    def files(self):
        result, name = {}, ""
        for key, text in self.pairs:
            if key == "file":
                name = text
                result[name] = ""
            elif key == "content":
                result[name] = text
        return result


class Settings:
    """Those of a launcher by its `names`; of `NAME.KEY VALUE` the name counts."""

    def __init__(self, request, names):
        self.given, self.names = request.settings(), names

    def all(self, name):
        return self.given.get(name, [])

    def one(self, name, default=""):
        return (self.all(name) or [default])[-1]

    def say_unknown(self):
        for name in self.given:
            if name.split(".")[0] not in self.names:
                fact("wrong", f"there is no setting '{name}': {', '.join(self.names)} are")


class Wanted:
    """Whether somebody still wants the engine: bytes on standard input at least every half minute,
    and no TERM, INT or HUP."""

    def __init__(self, stream, silence=30.0):
        self.silence, self.last, self.over, self.told = silence, time.monotonic(), False, False
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, self._tell)
        threading.Thread(target=self._listen, args=(stream,), daemon=True).start()

    def _tell(self, *_):
        self.told = True

    def _listen(self, stream):
        while stream.read1(65536):
            self.last = time.monotonic()
        self.over = True

    def alone(self):
        return self.over or time.monotonic() - self.last > self.silence

    def still(self):
        self.told = self.told or self.alone()
        return not self.told


def names_secret(variable):
    """Whether it is a secret by its name, as autotune itself sees it."""
    name = variable.upper()
    if name == "PWD" or name.endswith(("_FILE", "_PATH", "_DIR", "_SOCK")):
        return False
    endings = ("KEY", "TOKEN", "SECRET", "PASSWORD", "PASSWD", "PASSPHRASE", "CREDENTIAL",
               "CREDENTIALS")
    return any((part.endswith(endings) and part != "PKEY") or
               part in ("AUTH", "PASS", "PWD", "COOKIE", "KEYS") for part in name.split("_"))


def main(verbs):
    """Runs the verb that the first word names: a function of the request."""
    verb = sys.argv[1] if len(sys.argv) == 2 else ""
    if verb not in verbs:
        print("usage:", os.path.basename(sys.argv[0]), " | ".join(verbs), file=sys.stderr)
        sys.exit(2)
    code = 125
    try:
        code = verbs[verb](Request(sys.stdin.buffer)) or 0
    except Trouble as trouble:
        if verb == "start":
            fact("wrong" if trouble.lasts else "failed infrastructure", trouble)
        elif verb in ("about", "check"):
            fact("wrong", trouble)
            code = 0
        print(trouble, file=sys.stderr)
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)  # a thread may wait for standard input
