# SPDX-License-Identifier: Apache-2.0
"""Logs of engines, proxies and web servers as JSON Lines, which `autotune import` makes a workload of.

    python3 -m servetune.traffic vllm server.log > requests.jsonl

A format is a row of data: see Format. `--row FILE` reads another from JSON: {"patterns": ["..."], "time": "%Y-..."}.
What is written has times, lengths, and numbers for sessions and for beginnings that prompts share; no text.
"""

from __future__ import annotations

import argparse
import csv
import datetime
import gzip
import json
import re
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, TextIO

_block_tokens = 16  # a page of most caches
_letters_of_token = 4


@dataclass(frozen=True)
class Format:
    """How a log tells of requests: regular expressions for lines of text, or the places of a JSON object or CSV row.

    The names are those of the groups: `id` joins lines; `time` is when it was logged, `took` the seconds before;
    `input` and `output` are tokens, `input_ids` and `output_ids` lists of them, `prompt` and `answer` texts,
    `input_bytes` and `output_bytes` what was sent; `session` is of a conversation.
    """

    patterns: tuple[str, ...] = ()
    places: Mapping[str, str] = field(default_factory=dict)  # name -> dotted keys
    time: str = "iso"  # as strptime has it; iso (or seconds)
    about: str = ""  # of lines of text: those that tell of requests
    left_out: Mapping[str, tuple[str, str]] = field(default_factory=dict)  # reason -> name, expression of its value


_vllm = r"^.{0,200}?(?P<time>\d\d-\d\d \d\d:\d\d:\d\d) .{0,200}?\] "
_asks_model = r"(?!.*/(completions?|responses|messages|generate|api/chat)/?(\?|$))"

FORMATS = {
    "vllm": Format(
        patterns=(
            _vllm + r"Received request (?P<id>[^\s:]+): (?:prompt: (?P<prompt>'.*?'), params: |params: )"
            r"(?:.*prompt_token_ids: \[(?P<input_ids>[\d, ]+)\])?",
            _vllm + r"Request (?P<id>\S+) details: prompt: (?:None|(?P<prompt>'.*'|\".*\")), prompt_token_ids: "
            r"(?:None|\[(?P<input_ids>[\d, ]*)\])",
            _vllm + r"Generated response (?P<id>[^\s:]+)(?: \(streaming (?:delta|complete)\))? details: "
            r"output_token_ids: \[(?P<output_ids>[\d, ]*)\]",
            _vllm + r"Generated response (?P<id>[^\s:]+)(?: \(streaming complete\))?: output: "
            r"(?:'<streaming_complete: (?P<output>\d+) tokens>'|(?P<answer>'.*'|\".*\")), finish_reason: (?P<end>\w+)",
            _vllm + r"Request (?P<id>\S+) (?P<end>aborted|failed)",
        ),
        time="%m-%d %H:%M:%S",
        about=r"\] (Received request |Generated response .*: output: )",
        left_out={"failed": ("end", "abort|error|failed")},
    ),
    "sglang": Format(
        patterns=(
            r"^.{0,200}?\[(?P<time>\d{4}-\d\d-\d\d \d\d:\d\d:\d\d)[^\]]*\] Finish: obj=.*?rid='(?P<id>[^']*)'"
            r"(?:, session_id='(?P<session>[^']*)')?(?:.*?\btext=(?P<prompt>'(?:[^'\\]|\\.)*'))?"
            r"(?:.*?\binput_ids=\[(?P<input_ids>[\d, ]+)\])?.*'meta_info': \{"
            r"(?=.*?'prompt_tokens': (?P<input>\d+))(?=.*?'completion_tokens': (?P<output>\d+))"
            r"(?=(?:.*?'e2e_latency': (?P<took>[\d.]+))?)(?=(?:.*?'type': '(?P<end>\w+)')?)",
        ),
        places={
            "time": "timestamp",
            "id": "rid",
            "session": "obj.session_id",
            "prompt": "obj.text",
            "input_ids": "obj.input_ids",
            "input": "out.meta_info.prompt_tokens",
            "output": "out.meta_info.completion_tokens",
            "took": "out.meta_info.e2e_latency",
            "end": "out.meta_info.finish_reason.type",
            "event": "event",
        },
        time="%Y-%m-%d %H:%M:%S",
        about=r" Finish: obj=|request\.finished",
        left_out={
            "failed": ("end", "abort"),
            "health checks": ("id", "HEALTH_CHECK"),
            "other events": ("event", "(?!request.finished)"),
        },
    ),
    "litellm": Format(
        places={
            "time": "startTime",
            "id": "id|request_id",
            "session": "session_id",
            "prompt": "messages",
            "input": "prompt_tokens",
            "output": "completion_tokens",
            "status": "status",
            "hit": "cache_hit",
            "call": "call_type",
        },
        left_out={
            "failed": ("status", "(?i)fail|error"),
            "answered by the proxy's cache": ("hit", "(?i)true"),
            "other calls": ("call", "(?!.*(completion|response|message|generate))"),
        },
    ),
    "nginx": Format(
        patterns=(
            r'^[^\[]{0,400}\[(?P<time>[^\]]+)\] "(?P<method>\S+) (?P<path>\S+)[^"]*" (?P<status>\d{3}) (?P<output_bytes>\d+)'
            r"(?=(?:.*?\b(?:rt|request_time)=(?P<took>[\d.]+))?)(?=(?:.*?\b(?:rl|request_length)=(?P<input_bytes>\d+))?)"
            r"(?=(?:.*?\b(?:ct|content_type)=(?P<type>\S+))?)",
        ),
        time="%d/%b/%Y:%H:%M:%S %z",
        about=r"\] \"",
        left_out={
            "failed": ("status", "[^2]"),
            "other paths": ("path", _asks_model),
            "no POST": ("method", "(?!POST)"),
        },
    ),
}


class Requests:
    """Reads logs. `counts`: what was left out."""

    def __init__(self, form: Format) -> None:
        self.form = form
        self.counts: Counter[str] = Counter()
        self._patterns = [re.compile(one) for one in form.patterns]
        self._about = re.compile(form.about or ".")
        self._left_out = [(why, name, re.compile(one)) for why, (name, one) in form.left_out.items()]
        self._open: dict[str, dict[str, Any]] = {}
        self._blocks: dict[tuple[int, Any], int] = {}
        self._sessions: dict[str, int] = {}
        self._last = 0.0
        self._year = datetime.date.today().year

    def read(self, lines: Iterable[str]) -> Iterator[dict[str, Any]]:
        """The requests of one log, as `autotune import` reads them. Raises ValueError where most lines tell of none."""
        about = unread = first_unread = 0
        for number, said in self._said(self._records(lines)):
            if said is None:
                unread, first_unread = unread + 1, first_unread or number
            about += 1
            if said:
                self._add(said, number)
        for one in self._open.values():
            if row := self._row(one):
                yield row
        self._open.clear()
        if unread * 2 >= about:
            raise ValueError(
                f"{unread} of {about} lines about requests are not of this format, the first is line {first_unread}"
                if about
                else "no line tells of a request"
            )
        self.counts["not read"] += unread

    def _said(self, lines: Iterable[str]) -> Iterator[tuple[int, dict[str, Any] | None]]:
        """What each line says of a request; None: nothing understood."""
        numbered = enumerate(lines, 1)
        for number, line in numbered:
            line = line.strip()
            begin = line.find("{") if line.startswith(("{", "[")) else -1
            if self.form.places and begin >= 0 and (place := self._object(line[begin:].rstrip(","))):
                yield number, place
            elif number == 1 and self.form.places and "," in line and begin < 0:
                for row, cells in enumerate(csv.DictReader([line, *(rest for _, rest in numbered)]), 2):
                    yield row, self._places(cells) or None
                return
            elif found := next((match for one in self._patterns if (match := one.search(line))), None):
                yield number, found.groupdict()
            elif line and self._about.search(line):
                yield number, None

    def _records(self, lines: Iterable[str]) -> Iterator[str]:
        """Records of JSON lists and pages, one a line; other lines as they are."""
        lines = iter(lines)
        first = next(lines, "").strip()
        whole, found, at = [first], list[str](), 0
        if self.form.places and re.match(r"\{|\[\s*(\{|$)", first) and not self._object(first):
            whole += lines
            text = "\n".join(whole)
            try:
                while at < len(text):
                    value, at = json.JSONDecoder().raw_decode(text, at)
                    at = next((i for i in range(at, len(text)) if text[i] not in ", \r\n\t"), len(text))
                    if isinstance(value, dict):
                        lists = (one for one in value.values() if isinstance(one, list) and not self._places(value))
                        value = next(lists, [value])
                    found += map(json.dumps, value)
                whole = found
            except (ValueError, RecursionError):
                pass
        yield from whole
        yield from lines

    def _object(self, text: str) -> dict[str, Any] | None:
        try:
            return self._places(json.loads(text))
        except (ValueError, RecursionError):
            return None

    def _places(self, found: Any) -> dict[str, Any]:
        said: dict[str, Any] = {}
        for name, path in self.form.places.items():
            for keys in path.split("|"):
                value = found
                for key in keys.split("."):
                    value = value.get(key) if isinstance(value, dict) else None
                if value not in (None, ""):
                    said.setdefault(name, value)
        return said

    def _add(self, said: dict[str, Any], number: int) -> None:
        said = {name: value for name, value in said.items() if value is not None}
        one = self._open.setdefault(str(said.get("id", number)), {})
        if "output_ids" in said.keys() & one.keys():  # pieces of one answer
            said["output_ids"] = f"{one['output_ids']}, {said['output_ids']}"
        for name, value in said.items():
            if name not in one or name in ("output_ids", "end"):
                one[name] = self._seconds(value) if name == "time" else value

    def _row(self, one: dict[str, Any]) -> dict[str, Any] | None:
        for why, name, pattern in self._left_out:
            if name in one and pattern.match(str(one[name])):
                self.counts[why] += 1
                return None
        blocks, estimate = self._beginnings(one.get("input_ids") or one.get("prompt"))
        counted = len(_ids(one["input_ids"])) if one.get("input_ids") else None
        inputs = _first(one.get("input"), counted, estimate, _of_bytes(one.get("input_bytes")))
        stream = str(one.get("type", "")).startswith("text/event-stream")
        outputs = _first(
            one.get("output"),
            len(_ids(one["output_ids"])) if one.get("output_ids") else None,
            len(one["answer"]) // _letters_of_token if "answer" in one else None,
            int(one["output_bytes"]) // 250 if stream and "output_bytes" in one else _of_bytes(one.get("output_bytes")),
        )
        if one.get("time") is None or inputs is None or outputs is None:
            self.counts["without time, lengths or answer"] += 1
            return None
        row = {"timestamp_seconds": one["time"] - float(one.get("took", 0)), "input_tokens": inputs}
        row["output_tokens"] = max(1, outputs)
        if "session" in one:
            row["session_id"] = self._sessions.setdefault(str(one["session"]), len(self._sessions) + 1)
        if blocks := blocks[: inputs // _block_tokens]:
            row |= {"block_tokens": _block_tokens, "hash_ids": blocks}
        return row

    def _beginnings(self, prompt: Any) -> tuple[list[int], int | None]:
        """Numbers of a prompt's blocks, each for all before it too, and how many tokens it may have."""
        if prompt is None:
            return [], None
        text = prompt if isinstance(prompt, (str, list)) else json.dumps(prompt)
        if isinstance(text, list) and not all(isinstance(one, int) for one in text):
            text = json.dumps(text)
        whole: Any = _ids(text) if isinstance(text, list) or re.fullmatch(r"[\d, ]+", text) else text
        size = _block_tokens * (_letters_of_token if isinstance(whole, str) else 1)
        result, before = [], 0
        for at in range(0, len(whole) - size + 1, size):
            before = self._blocks.setdefault((before, hash(whole[at : at + size])), len(self._blocks) + 1)
            result.append(before)
        return result, max(1, len(whole) * _block_tokens // size)

    def _seconds(self, value: Any) -> float | None:
        """Since 1970; a clock without a zone as it shows."""
        try:
            return float(value)
        except (TypeError, ValueError):
            pass
        try:
            if "%Y" not in self.form.time and self.form.time != "iso":  # no year: it goes on at New Year
                at = datetime.datetime.strptime(f"{self._year} {value}", "%Y " + self.form.time)
                if at.timestamp() < self._last - 180 * 86400:
                    self._year += 1
                    at = at.replace(year=self._year)
            else:
                try:
                    at = datetime.datetime.fromisoformat(str(value).replace("Z", "+00:00"))
                except ValueError:
                    at = datetime.datetime.strptime(value, self.form.time)
            self._last = at.timestamp()
            return (at if at.tzinfo else at.replace(tzinfo=datetime.timezone.utc)).timestamp()
        except (TypeError, ValueError):
            return None


def _ids(value: Any) -> tuple[int, ...]:
    return tuple(value) if isinstance(value, list) else tuple(int(one) for one in re.findall(r"\d+", value))


def _first(*values: Any) -> int | None:
    for value in values:
        try:
            if value is not None and 0 <= float(value) <= 1 << 24:
                return round(float(value))
        except (TypeError, ValueError):
            pass
    return None


def _of_bytes(value: Any) -> int | None:
    """Tokens in a JSON body: about 700 bytes of it are no text."""
    return None if value is None else max(1, (int(value) - 700) // _letters_of_token)


def main(words: list[str] | None = None, out: TextIO = sys.stdout) -> int:
    parser = argparse.ArgumentParser(prog="python3 -m servetune.traffic", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("format", help=", ".join(FORMATS) + ", or a name for --row")
    parser.add_argument("files", nargs="+", metavar="FILE", help="logs of one traffic, also .gz")
    parser.add_argument("--row", metavar="JSON", help="the row of another format")
    asked = parser.parse_args(words)
    try:
        if asked.row:
            with open(asked.row, encoding="utf-8") as stream:
                form = Format(**json.load(stream))
        elif asked.format in FORMATS:
            form = FORMATS[asked.format]
        else:
            raise ValueError(f"'{asked.format}' is no format: one of {', '.join(FORMATS)}, or its row with --row")
        requests = Requests(form)
        for file in asked.files:
            opened = gzip.open if file.endswith(".gz") else open
            with opened(file, "rt", encoding="utf-8", errors="replace") as lines:
                try:
                    for row in requests.read(lines):
                        print(json.dumps(row), file=out)
                except (ValueError, EOFError, csv.Error) as error:
                    raise ValueError(f"{file}: {error}") from error
    except (OSError, TypeError, ValueError, re.error) as error:
        print(f"servetune.traffic: {error}", file=sys.stderr)
        return 2
    left_out = ", ".join(f"{count} {why}" for why, count in requests.counts.items() if count)
    if left_out:
        print(f"left out: {left_out}", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
