# SPDX-License-Identifier: Apache-2.0
"""The tools that an agent may use, over the Model Context Protocol on standard input and output: `autotune mcp`.

Each tool is a subcommand of the program with typed arguments. What an agent says comes from a model that may have
read anything, so every file lies in one folder, links followed; load tests go to this machine; and no word of an agent
becomes a program: what runs is what the study's file says, which a person writes or `init` does.
"""

from __future__ import annotations

import argparse
import functools
import json
import os
import re
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import anyio
import mcp_types as types
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server
from mcp.shared.exceptions import MCPError

from ._program import find, start_in_session
from ._version import __version__

Answer = dict[str, Any]
Progress = Callable[[float, str], Awaitable[None]]

_most_wait_seconds = 50  # clients give up after a minute
_longest_text = 4000
_proposed = "proposed.json"  # in the folder of a run: the configurations that agents proposed


class Refused(Exception):
    """Arguments that cannot be, with what is wanted."""


# The JSON Schema of what an argument may be; else it is a text.
_schemas: dict[str, Answer] = {
    "count": {"type": "integer", "minimum": 0},
    "number": {"type": "number", "exclusiveMinimum": 0},
    "flag": {"type": "boolean"},
    "files": {"type": "array", "items": {"type": "string"}, "minItems": 1},
    "settings": {"type": "object", "additionalProperties": {"type": ["string", "number", "boolean"]}},
}

_run = """
    study* file - The study's YAML file, or the folder of its run
    directory file --directory The folder of the run (./<name of the study>)"""
_table = """
init writes | init --yes | Write a study (YAML) from answers; what is left out is found on this machine. Then `validate`.
    output* file --output The file to write, such as study.yaml
    engine name --engine vllm, sglang, tensorrt-llm or llama.cpp (one that is installed)
    model text --model A name on the hub, a folder or a file
    hardware name --hardware The chip, such as h100-sxm (as nvidia-smi says)
    gpus count --gpus How many; 0: serve from the CPU
    traffic name --traffic A workload such as chat, or INPUTxOUTPUT tokens
    concurrency count --concurrency Requests in flight
    goal text --goal throughput, latency, or throughput under a limit such as 'ttft_p95 < 2s'
    budget text --budget When to end, such as '30 trials' or 8h
    attach url --attach A server of this machine that runs already: only its load is tuned
    as text --as Where engines start, if not here: kubernetes or ray
    force flag --force Replace the file
validate reads | validate --json | Check a study: errors with their place, what is searched, how long it takes.
    study* file - The study's YAML file, or the folder of its run
suggest reads | suggest --json | The best known command for a model on a chip, with its source, without a trial.
    model* model - A name on the hub
    hardware* name --hardware The chip, such as h100-sxm
    engine* name --engine vllm, sglang, tensorrt-llm or llama.cpp
start long | run --quiet --json | Start a study, or go on with it: minutes of a GPU for each trial. It ends in good order \
when this server ends; let a person run `autotune run` for a whole night. Ask `status` for news.
    @run
    trials count --trials How many, instead of the study's budget
    accept_changes flag --accept-changes Go on although the study's file has changed
status reads long | status --json | What a study has found so far, whoever runs it, or how a job is doing. Without \
arguments: the studies of the folder.
    study file - The study's YAML file, or the folder of its run
    directory file --directory The folder of the run (./<name of the study>)
    job text - What `start`, `bench` or `compare` gave, instead of a study
propose | render --json | Suggest a configuration for a study: the next `start` tries the most promising ones.
    @run
    configuration* settings --set Parameter -> value; the others keep their defaults
stop writes | - | End a job of this server in good order. What was measured is kept.
    job* text - What `start`, `bench` or `compare` gave
explain reads | explain --json | What each parameter does to the goal, with intervals; or why one trial was made.
    @run
    trial count --trial Why this trial was made; left out: what each parameter does
    why_not settings --why-not Parameter -> value: why they are not recommended
report reads | report --json | The verdict of a study: reasons, figures, intervals, failures, the command to serve with.
    @run
recommend reads | recommend --json | The recommended configuration as a file. Writes nothing.
    @run
    as text --as The kind of file: shell (the default), systemd, compose, kubernetes or others
    host text --host Address to listen on
    port count --port Port to listen on
    image text --image Container image, if the study has none
audit reads | audit --json | Whether benchmark results of any tool can be true, with the identity that is broken.
    files* files - Results of any benchmark tool: JSON, CSV, or text with printed results
    hardware name --hardware The chip, such as h100-sxm
    model text --model The model, if the results do not name it
    study file --study The study whose workloads, model and hardware were measured
bench long | bench --quiet --json | Load-test a server of this machine, and audit the result.
    url* url --url A server of this machine, such as http://127.0.0.1:8000
    model text --model Its name on the server (the only one that it serves)
    workload name --workload A shipped workload, or random:INPUTxOUTPUT tokens
    requests count --requests How many
    concurrency count --concurrency Requests in flight
    rate number --rate Requests a second, instead of `concurrency`
    ignore_eos flag --ignore-eos Ask for exactly the workload's number of output tokens
    hardware name --hardware The chip: the audit checks figures against its peaks
compare long | compare --quiet --json | Measure A against B in turns until the better is known, within a margin.
    a* file - A study, whose default configuration is A
    b file - Another study, whose default configuration is B
    settings settings --set What B changes in A, instead of a second study: parameter -> value
    pairs count --pairs The most pairs (10)
    margin number --margin Smaller differences count as none: 0.01 is 1 %
    directory file --directory The folder of the run (./comparison)
"""


@dataclass(frozen=True)
class Argument:
    name: str
    takes: str  # text, name (of the catalogue, or a file), model, file, url, or a key of `_schemas`
    option: str  # of the subcommand; empty: a word by itself
    what: str  # for the agent
    required: bool


@dataclass(frozen=True)
class Tool:
    name: str
    kind: frozenset[str]  # reads: changes nothing; writes: may replace or end; long: may outlast a call
    words: list[str]
    what: str  # for the agent: what it does, when to use it, what comes back
    arguments: list[Argument]


def _tools() -> dict[str, Tool]:
    result: dict[str, Tool] = {}
    for line in _table.replace("\n    @run", _run).strip().splitlines():
        if line.startswith(" "):
            name, takes, option, what = line.strip().split(" ", 3)
            option = option.removeprefix("-") and option
            result[next(reversed(result))].arguments.append(
                Argument(name.rstrip("*"), takes, option, what, name.endswith("*"))
            )
        else:
            head, words, what = line.split(" | ")
            name, *kind = head.split()
            result[name] = Tool(name, frozenset(kind), words.removeprefix("-").split(), what, [])
    return result


TOOLS = _tools()


def listed() -> list[types.Tool]:
    """Name, description, JSON Schema of the arguments, and annotations of each tool."""
    result = []
    for tool in TOOLS.values():
        properties = {
            one.name: _schemas.get(one.takes, {"type": "string"}) | {"description": one.what} for one in tool.arguments
        }
        if "long" in tool.kind:
            properties["wait_seconds"] = {
                "type": "number",
                "minimum": 0,
                "maximum": _most_wait_seconds,
                "description": "How long to wait for the end before saying how it stands (0)",
            }
        required = [one.name for one in tool.arguments if one.required]
        schema = {"type": "object", "properties": properties, "required": required, "additionalProperties": False}
        hints = types.ToolAnnotations(
            read_only_hint="reads" in tool.kind, destructive_hint="writes" in tool.kind, open_world_hint=False
        )
        result.append(types.Tool(name=tool.name, description=tool.what, input_schema=schema, annotations=hints))
    return result


# What an agent says becomes words of a command.


def _refuse(name: str, wanted: str, got: object) -> Refused:
    return Refused(f"`{name}`: {wanted} wanted, got {json.dumps(got)[:200]}")


def _line(name: str, value: object) -> str:
    if not isinstance(value, str) or not 0 < len(value) <= 4096 or re.search(r"[\x00-\x1f\x7f]", value):
        raise _refuse(name, "one line of text", value)
    if value.startswith("-"):
        raise _refuse(name, "a text that does not begin with '-'", value)
    return value


def inside(root: Path, file: str) -> str:
    """The file's path, links followed. Refuses one that is not in the folder."""
    whole = (root / file).resolve()
    if not whole.is_relative_to(root):
        raise Refused(
            f"'{file}' is not in the folder of this server, {root}; files elsewhere are neither read nor written"
        )
    return str(whole)


def _names_file(value: str, model: bool) -> bool:
    """As the program reads a name: a model's may have a slash and be none."""
    if value.endswith((".yaml", ".yml")) or value.startswith("~"):
        return True
    return value.startswith(("/", ".")) or ".." in value or value.endswith(".json") if model else "/" in value


_local = re.compile(r"https?://(localhost|127(\.\d{1,3}){3}|\[::1\])(:\d{1,5})?(/[A-Za-z0-9._~/-]*)?", re.ASCII)


def _text_of(root: Path, argument: Argument, value: object) -> str:
    name, takes = argument.name, argument.takes
    whole = isinstance(value, int) and not isinstance(value, bool)
    if takes == "count":
        if not whole or value < 0:  # type: ignore[operator]
            raise _refuse(name, "a whole number of at least 0", value)
        return str(value)
    if takes == "number":
        if not (whole or isinstance(value, float)) or not value > 0:  # type: ignore[operator]
            raise _refuse(name, "a number above 0", value)
        return str(value)
    text = _line(name, value)
    if takes == "url" and not _local.fullmatch(text):
        raise _refuse(name, "a server of this machine, such as http://127.0.0.1:8000", value)
    is_file = takes == "file" or (takes in ("name", "model") and _names_file(text, takes == "model"))
    return inside(root, text) if is_file else text


def words_of(root: Path, tool: Tool, arguments: Mapping[str, Any]) -> list[str]:
    """The command's words. Refuses arguments that cannot be."""
    known = [one.name for one in tool.arguments] + (["wait_seconds"] if "long" in tool.kind else [])
    for name in arguments:
        if name not in known:
            raise Refused(f"`{tool.name}` takes no `{name}`")
    words = list(tool.words)
    places: list[str] = []
    for one in tool.arguments:
        value = arguments.get(one.name)
        if value is None:
            if one.required:
                raise Refused(f"`{one.name}` is missing: {one.what}")
            continue
        texts: Iterable[str]
        if one.takes == "flag":
            if not isinstance(value, bool):
                raise _refuse(one.name, "true or false", value)
            words += [one.option] if value else []
            continue
        if one.takes == "files":
            if not isinstance(value, list) or not value:
                raise _refuse(one.name, "a list of files", value)
            texts = [inside(root, _line(one.name, file)) for file in value]
        elif one.takes == "settings":
            if not isinstance(value, dict) or not value:
                raise _refuse(one.name, "an object, parameter -> value,", value)
            if any(not name or name.startswith("-") or "=" in name for name in value):
                raise _refuse(one.name, "names", value)
            plain = (bool, int, float)
            texts = [
                f"{name}={json.dumps(one_value) if isinstance(one_value, plain) else _line(one.name, one_value)}"
                for name, one_value in value.items()
            ]
        else:
            texts = [_text_of(root, one, value)]
        for text in texts:
            (words if one.option else places).append(f"{one.option}={text}" if one.option else text)
    return words + (["--", *places] if places else [])


# What the program says, shortened for an agent.


def _first(values: Sequence[Any], most: int) -> list[Any]:
    return [*values[:most], f"... and {len(values) - most} more"] if len(values) > most else list(values)


def _picked(read: Answer, names: str) -> Answer:
    return {name: read[name] for name in names.split() if read.get(name) is not None}


def _shortened(text: str) -> str:
    return text if len(text) <= _longest_text else f"{text[:_longest_text]}\n... ({len(text) - _longest_text} more)"


_next_of_verdict = {
    "recommended": "`recommend` makes the file to serve with; `explain` says why it is faster",
    "keep_default": "serve with the default; `explain` says what was tried",
    "inconclusive": "`start` with more `trials`, or mend what `reason` names; keep the default until then",
}


def _of_report(read: Answer) -> Answer:
    wanted = set(
        "requests_per_second output_tokens_per_second total_tokens_per_second ttft_mean ttft_p95 tpot_mean latency_p95"
        " success_ratio".split()
    )
    wanted |= {value for value in read.get("objective", {}).values() if isinstance(value, str)}
    wanted |= {one.get("metric", "") for kind in ("goals", "limits") for one in read.get(kind) or []}
    told = _picked(
        read, "study verdict headline reason advice notes objective limits trials stop_reason noise recommended default"
    )
    for side, names in (
        ("recommended", "command environment keep_default gain configuration metrics"),
        ("default", "metrics verdict"),
    ):
        if isinstance(told.get(side), dict):
            told[side] = chosen = _picked(told[side], names)
            metrics = chosen.get("metrics", {})
            chosen["metrics"] = {name: value for name, value in metrics.items() if name.split("@")[0] in wanted}
            if "configuration" in chosen:
                chosen["configuration"] = {k: v for k, v in chosen["configuration"].items() if v is not None}
    for kind in ("failures", "pending", "refused", "audit", "environment_changes", "other_work"):
        if read.get(kind):
            told[kind] = _first(read[kind], 5)
    for failure in told.get("failures", []):
        if isinstance(failure, dict):
            failure.pop("log_lines", None)
    mend = "mend what `failures` and `refused` name, or loosen the limits, then `start` again"
    return told | {"next": _next_of_verdict.get(read.get("verdict", ""), mend)}


def _of_validation(read: Answer) -> Answer:
    told = _picked(read, "valid error problems study size machine installed warnings default_command plan parameters")
    if "default_command" in told:
        told["default_command"] = " ".join(told["default_command"])
    told["warnings"] = _first(told.get("warnings", []), 10)
    told["plan"] = told.get("plan", {}).get("text", "")
    told["parameters"] = _first([f"{one['name']}: {one['domain']}" for one in told.get("parameters", [])], 60)
    mend = "mend the study's file where `problems` says, then `validate` again"
    return told | {"next": "`start` the study" if read.get("valid") else mend}


def _of_effects(read: Answer) -> Answer:
    if "effects" not in read:
        return read  # of one trial
    effects = read["effects"]
    told = _picked(effects, "configurations needed learned") | _picked(read, "explanation")
    largest = sorted(effects["main"], key=lambda effect: -abs(float((effect.get("gain") or {}).get("value", 0))))
    told["effects"] = _first(largest, 12)
    told["interactions"] = _first(effects["interactions"], 3)
    return told | {"next": "`propose` a combination that was not measured, or read `report`"}


def _of_load_test(read: Answer) -> Answer:
    told = {k: v for k, v in read.items() if isinstance(v, (int, float)) or (isinstance(v, str) and len(v) < 200)}
    told |= _picked(read.get("servetune") or {}, "audit refused_fields")
    return told | {"next": "believe figures only where the audit found nothing; `start` a study to find better flags"}


def _told_by(tool: str, read: Any) -> Answer:
    if tool == "audit":
        return {"results": _first(read, 20), "next": "distrust what is unsound; the broken identity says why"}
    if tool == "recommend":
        told = _picked(read, "kind name text beside left_out")
        return told | {"next": "write `text` into a file called `name`, beside it those of `beside`"}
    if tool == "suggest":
        left_out = ("argv", "not_checked")
        told = {name: value for name, value in read.items() if name not in left_out}
        return told | {"next": "a suggestion is not measured here: `init` and `start` prove it"}
    if tool == "compare":
        undecided = {"next": "measure on with more `pairs`: the folder's are kept"}
        return _picked(read, "verdict text goals") | (undecided if read.get("verdict") == "undecided" else {})
    shorten = {"validate": _of_validation, "explain": _of_effects, "bench": _of_load_test}
    shorten |= dict.fromkeys(("report", "start", "status"), _of_report)
    return shorten.get(tool, dict)(read)


def answer_of(tool: str, exit_code: int, printed: str, said: str) -> Answer:
    """What a command came to: `{"state": "done" | "failed", ..., "reason", "next"}`."""
    failed = exit_code in (2, 3) or exit_code < 0 or exit_code > 130  # docs/reference/commands.md
    try:
        read = json.loads(printed)
    except (ValueError, RecursionError):
        read = None
    told: Answer = {"state": "failed" if failed else "done"}
    if isinstance(read, dict) or (isinstance(read, list) and not failed):
        told |= _told_by(tool, read)
    elif not failed:
        told["text"] = _shortened(printed)
    if "reason" not in told and (failed or said):
        told["reason"] = _shortened(said) or f"exit code {exit_code}"
    if failed:
        mend = "what `reason` names on this machine" if exit_code == 3 else "the arguments or the file of `reason`"
        told["next"] = f"mend {mend}, then try again"
    told.setdefault("next", "`validate` the file" if tool == "init" else "go on")
    return told


# Commands that run.


class Job:
    """A command of the program in a process of its own, which does not outlive this one."""

    def __init__(self, tool: str, folder: str, words: Sequence[str], root: Path, id: str = "") -> None:
        self.id, self.tool, self.folder, self._began = id, tool, folder, time.monotonic()
        self._out, self._err = tempfile.TemporaryFile(), tempfile.TemporaryFile()
        only_in = os.environ | {"SERVETUNE_ONLY_IN": str(root)}  # the files that a study names, too
        self._process = start_in_session([find(), *words], cwd=root, env=only_in, stdout=self._out, stderr=self._err)

    @property
    def running(self) -> bool:
        return self._process.poll() is None

    @property
    def seconds(self) -> int:
        return round(time.monotonic() - self._began)

    async def wait(self, seconds: float) -> bool:
        """Whether it has ended, after so long at most."""
        with anyio.move_on_after(seconds):
            while self.running:
                await anyio.sleep(0.05)
        return not self.running

    async def stop(self) -> None:
        """As Ctrl-C: a run ends its engine and keeps what was told."""
        with anyio.CancelScope(shield=True):
            if self.running:
                self._process.terminate()
            if not await self.wait(120):
                self._process.kill()
                await self.wait(10)

    def said(self) -> str:
        """The last lines of standard error."""
        return "\n".join(self._text(self._err).splitlines()[-20:])

    def answer(self) -> Answer:
        if self.running:
            told: Answer = {"state": "working", "job": self.id, "seconds": self.seconds}
            told |= {"said": self.said().splitlines()[-1]} if self.said() else {}
            return told | {"next": "call `status` with this job (`wait_seconds` up to 50), or `stop`"}
        return answer_of(self.tool, self._process.returncode, self._text(self._out), self.said())

    @staticmethod
    def _text(file: Any) -> str:
        return os.pread(file.fileno(), 8 << 20, 0).decode(errors="replace")


@dataclass
class Tools:
    """The tools on one folder (absolute, links followed), and the jobs that they started."""

    root: Path
    jobs: dict[str, Job] = field(default_factory=dict)
    _count: int = 0
    _at_once: anyio.Semaphore = field(default_factory=lambda: anyio.Semaphore(4))  # further calls wait

    async def call(self, name: str, arguments: Mapping[str, Any], progress: Progress) -> Answer:
        """What a tool says. Raises Refused for arguments that cannot be."""
        tool = TOOLS[name]
        arguments = {key: value for key, value in arguments.items() if value is not None}
        words = words_of(self.root, tool, arguments)  # refuses what cannot be
        wait = arguments.get("wait_seconds", 0)
        if isinstance(wait, bool) or not isinstance(wait, (int, float)) or not 0 <= wait <= _most_wait_seconds:
            raise _refuse("wait_seconds", f"0 to {_most_wait_seconds} seconds", wait)
        if name == "start":
            return await self._start(words, arguments, wait, progress)
        if name == "status":
            return await self._status(arguments, wait, progress)
        if name == "stop":
            return await self._stop(self._job(arguments["job"]))
        if name == "propose":
            return await self._propose(words, arguments)
        if "long" not in tool.kind:
            return (await self._ran(name, words)).answer()
        job = self._begin(name, "", words)
        try:
            return await self._waited(job, wait, progress)
        except anyio.get_cancelled_exc_class():
            await job.stop()  # nobody hears of it
            raise

    async def _ran(self, name: str, words: Sequence[str]) -> Job:
        async with self._at_once:
            job = Job(name, "", words, self.root)
            try:
                if await job.wait(60):
                    return job
            finally:
                await job.stop()
        raise Refused(f"`{name}` did not end within a minute")

    def _begin(self, tool: str, folder: str, words: Sequence[str]) -> Job:
        if sum(job.running for job in self.jobs.values()) >= 8:
            raise Refused("8 commands run already, the most at once: wait for one (`status`) or end one (`stop`)")
        for ended in [one.id for one in self.jobs.values() if not one.running][: max(0, len(self.jobs) - 19)]:
            del self.jobs[ended]
        self._count += 1
        job = Job(tool, folder, words, self.root, f"{tool}-{self._count}")
        self.jobs[job.id] = job
        return job

    def _job(self, id: object) -> Job:
        if not isinstance(id, str) or id not in self.jobs:
            raise _refuse("job", "what `start`, `bench` or `compare` gave", id)
        return self.jobs[id]

    def _running(self, folder: str) -> Job | None:
        of_folder = (one for one in self.jobs.values() if one.tool == "start" and one.folder == folder and one.running)
        return next(of_folder, None)

    async def _folder(self, arguments: Mapping[str, Any]) -> str:
        """The folder of a study's run, which has the study's name: the program reads it."""
        if "directory" in arguments:
            return inside(self.root, arguments["directory"])
        study = inside(self.root, arguments["study"])
        if os.path.isdir(study):
            return study
        job = await self._ran("validate", ["validate", "--json", "--no-installed", "--", study])
        told = job.answer()
        if "study" in told:
            return inside(self.root, told["study"])
        raise Refused(told.get("error") or told.get("reason") or f"{study} cannot be read")

    async def _waited(self, job: Job, seconds: float, progress: Progress) -> Answer:
        until = time.monotonic() + seconds
        while not await job.wait(min(2.0, max(0.0, until - time.monotonic()))) and time.monotonic() < until:
            await progress(job.seconds, f"{job.tool} runs")
        return job.answer()

    async def _start(self, words: list[str], arguments: Mapping[str, Any], wait: float, progress: Progress) -> Answer:
        folder = await self._folder(arguments)
        if earlier := self._running(folder):
            return earlier.answer()
        proposed = os.path.join(folder, _proposed)
        if os.path.exists(proposed):
            words.insert(words.index("--"), f"--suggest={proposed}")
        job = self._begin("start", folder, words)
        if await job.wait(2) or not wait:  # what fails at once is said at once
            return job.answer()
        return await self._status({"job": job.id}, wait, progress)

    async def _status(self, arguments: Mapping[str, Any], wait: float, progress: Progress) -> Answer:
        if "job" in arguments:
            job: Job | None = self._job(arguments["job"])
            assert job
            if job.tool != "start":
                return await self._waited(job, wait, progress)
            words = [*TOOLS["status"].words, "--", job.folder]
        elif "study" in arguments:
            job = self._running(await self._folder(arguments))
            words = words_of(self.root, TOOLS["status"], arguments)
        else:
            return await self._studies()
        until = time.monotonic() + wait
        while True:
            ended = job is None or not job.running
            told = (await self._ran("status", words)).answer()
            if ended or time.monotonic() >= until:
                break
            assert job
            await progress(
                job.seconds, f"{told.get('trials', {}).get('told', 0)} trials told; {told.get('headline', '')}"
            )
            await job.wait(min(5.0, max(0.0, until - time.monotonic())))
        if job and told["state"] == "failed":
            return job.answer()  # its journal is not there yet, or it never began
        if not ended:
            assert job
            told |= {"state": "working", "job": job.id, "next": "call `status` with `wait_seconds`, or `stop`"}
        return told | ({} if told["state"] == "failed" else {"running": not ended})

    async def _stop(self, job: Job) -> Answer:
        ran = job.running
        await job.stop()
        told = job.answer()
        if ran and job.tool == "start":
            told |= {"state": "done", "next": "what was measured is kept: `status` shows it, `start` goes on"}
        return told

    async def _propose(self, words: list[str], arguments: Mapping[str, Any]) -> Answer:
        folder = await self._folder(arguments)
        words = [word for word in words if not word.startswith("--directory=")]
        asked = (await self._ran("propose", words)).answer()  # knows what the study's space takes
        if asked["state"] == "failed":
            return asked
        file = os.path.join(folder, _proposed)
        proposals = []
        if os.path.exists(file):
            with open(file, encoding="utf-8") as stream:
                proposals = json.load(stream)
        if not isinstance(proposals, list):
            raise Refused(f"{file} is not a list of configurations: remove it")
        if arguments["configuration"] not in proposals:
            proposals.append(arguments["configuration"])
        os.makedirs(folder, exist_ok=True)
        with open(file + ".new", "w", encoding="utf-8") as stream:
            json.dump(proposals, stream, indent=2)
        os.replace(file + ".new", file)
        begun = os.path.exists(os.path.join(folder, "study.db"))
        again = "; the run has begun, so `stop` it, and `start` with `accept_changes`" if begun else ""
        next = "`start` tries the most promising in at most 3 of 10 trials" + again
        return {"state": "done", "proposed": len(proposals), "file": file, "next": next}

    def runs(self) -> list[str]:
        return sorted(one.name for one in self.root.iterdir() if (one / "study.db").is_file())

    async def _studies(self) -> Answer:
        studies = []
        for name in self.runs()[:20]:
            told = (await self._ran("status", [*TOOLS["status"].words, "--", str(self.root / name)])).answer()
            job = self._running(str(self.root / name))
            keep = _picked(told, "verdict headline trials" + (" reason" if told["state"] == "failed" else ""))
            studies.append({"study": name, **keep, **({"job": job.id} if job else {})})
        texts = (one for one in self.root.iterdir() if one.suffix in (".yaml", ".yml") and one.is_file())
        small = (one for one in texts if one.stat().st_size < 1 << 20)
        files = sorted(one.name for one in small if re.search(rb"^study:", one.read_bytes(), re.MULTILINE))
        any = "`report` a study, or `validate` and `start` a file"
        told = {"state": "done", "studies": studies, "files": files}
        return told | {"next": any if studies or files else "`init` writes a study"}

    async def end(self) -> None:
        """Ends all that runs, at the same time."""
        with anyio.CancelScope(shield=True):
            async with anyio.create_task_group() as group:
                for job in self.jobs.values():
                    group.start_soon(job.stop)


def server_of(tools: Tools) -> Server[Any]:
    async def list_tools(context: Any, asked: Any) -> types.ListToolsResult:
        return types.ListToolsResult(tools=listed())

    async def call_tool(context: Any, asked: types.CallToolRequestParams) -> types.CallToolResult:
        if asked.name not in TOOLS:
            raise MCPError(types.INVALID_PARAMS, f"there is no tool {asked.name!r}")

        async def progress(done: float, what: str) -> None:
            await context.session.report_progress(done, None, what)

        try:
            told = await tools.call(asked.name, asked.arguments or {}, progress)
        except (Refused, OSError, ValueError) as error:
            told = {"state": "failed", "reason": str(error), "next": "mend what `reason` names, then try again"}
        return types.CallToolResult(
            content=[types.TextContent(type="text", text=json.dumps(told))],
            structured_content=told,
            is_error=told["state"] == "failed",
        )

    return Server("servetune", version=__version__, on_list_tools=list_tools, on_call_tool=call_tool)


async def serve(root: Path) -> None:
    """Serves one client over standard input and output, until its end."""
    tools = Tools(root)
    server = server_of(tools)
    try:
        async with stdio_server() as (incoming, outgoing):
            await server.run(incoming, outgoing, server.create_initialization_options())
    finally:
        await tools.end()


def main(words: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="autotune mcp", description=__doc__)
    parser.add_argument("--directory", default=".", help="the only folder that agents read and write")
    root = Path(parser.parse_args(words).directory).resolve()
    if not root.is_dir():
        print(f"autotune: {root} is not a folder", file=sys.stderr)
        return 2
    find()
    try:
        anyio.run(functools.partial(serve, root))
    except KeyboardInterrupt:
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
