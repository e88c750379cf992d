# SPDX-License-Identifier: Apache-2.0
"""Trials and what they come to."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any, SupportsFloat, Union

from ._errors import UsageError
from ._parameters import Configuration


@dataclass(frozen=True)
class Metric:
    """A measured figure."""

    value: float
    standard_error: float | None = None


@dataclass(frozen=True)
class Failure:
    """Why a trial failed."""

    kind: str
    """A kind of failure of search_spaces/FORMAT.md, such as `out_of_memory`."""
    message: str = ""


class Failed(Exception):
    """A failed trial: raise or return it while measuring, or give it to `tell`.

    `kind`: `oom`, or a kind of failure of search_spaces/FORMAT.md, such as `not_ready_in_time` or `other`.

    >>> Failed("oom", "no room for the cache").kind
    'oom'
    """

    def __init__(self, kind: str = "other", message: str = "") -> None:
        super().__init__(kind, message)
        self.kind = kind
        self.message = message

    def __str__(self) -> str:
        return f"{self.kind}: {self.message}" if self.message else self.kind


Figures = Union[SupportsFloat, Metric, Mapping[str, Union[SupportsFloat, Metric]]]
"""The objective's figure, or metric -> figure."""
Outcome = Union[Figures, Failed, Failure]


@dataclass(frozen=True)
class Trial:
    """A configuration that is measured, or was."""

    id: int
    """From 0, in the order of asking. Trial 0 is the default configuration."""
    configuration: Configuration
    why: str
    """The strategy's reason."""
    metrics: Mapping[str, Metric] = field(default_factory=dict)
    """Empty unless the trial was measured."""
    failure: Failure | None = None

    def __str__(self) -> str:
        values = ", ".join(f"{name} = {value}" for name, value in self.configuration.items())
        figures = ", ".join(f"{name} {metric.value:.6g}" for name, metric in self.metrics.items())
        failed = f"{self.failure.kind} {self.failure.message}".strip() if self.failure else ""
        return f"trial {self.id}: {failed or figures or 'open'} ({values})"

    @property
    def state(self) -> str:
        """`measured`, `failed`, or `open` while it is not told."""
        return "failed" if self.failure is not None else "measured" if self.metrics else "open"


def message_of(outcome: Outcome) -> dict[str, Any]:
    """An outcome as `tell` of ask-tell has it. A figure that is not finite is a failure: `invalid_result`."""
    if isinstance(outcome, (Failed, Failure)):
        return {"failed": outcome.kind} | ({"message": outcome.message} if outcome.message else {})
    figures = {"value": outcome} if not isinstance(outcome, Mapping) else outcome
    read = {str(name): _metric(name, figure) for name, figure in figures.items()}
    for name, metric in read.items():
        if not (math.isfinite(metric.value) and math.isfinite(metric.standard_error or 0)):
            return {"failed": "invalid_result", "message": f"{name} is {metric.value}"}
    written = {name: metric.value if metric.standard_error is None else asdict(metric) for name, metric in read.items()}
    return {"metrics": written} if isinstance(outcome, Mapping) else written


def failure_of(error: BaseException) -> Failure:
    """An exception of a measurement as a failure: its kind where its type tells it, else `other`.

    >>> failure_of(MemoryError("no room"))
    Failure(kind='out_of_memory', message='MemoryError: no room')
    """
    if isinstance(error, Failed):
        return Failure(error.kind, error.message)
    name = type(error).__name__
    out_of_memory = isinstance(error, MemoryError) or name == "OutOfMemoryError"  # the latter is PyTorch's
    kind = "out_of_memory" if out_of_memory else "hung" if isinstance(error, TimeoutError) else "other"
    return Failure(kind, f"{name}: {error}")


def told_trial(asked: Trial, message: Mapping[str, Any], leading: str) -> Trial:
    """The trial with the outcome that `message_of` made; `leading` is the objective's first metric."""
    if "failed" in message:
        kind = "out_of_memory" if message["failed"] == "oom" else message["failed"]
        return replace(asked, failure=Failure(kind, message.get("message", "")))
    figures = message["metrics"] if "metrics" in message else {leading: message["value"]}
    read = {name: Metric(**figure) if isinstance(figure, dict) else Metric(figure) for name, figure in figures.items()}
    return replace(asked, metrics=read)


def trial_of(document: Mapping[str, Any]) -> Trial:
    """A trial from a line of `autotune export --format jsonl`."""
    outcome = document.get("outcome") or {}
    failure = Failure(outcome["failure"], outcome.get("message", "")) if "failure" in outcome else None
    metrics = {
        name: Metric(metric["value"], metric.get("standard_error"))
        for name, metric in outcome.get("metrics", {}).items()
    }
    return Trial(document["trial"], document["configuration"], document["why"], metrics, failure)


def _metric(name: object, figure: object) -> Metric:
    if isinstance(figure, Metric):
        return figure
    if isinstance(figure, SupportsFloat) and not isinstance(figure, (str, bytes)):
        return Metric(float(figure))
    raise UsageError(f"{name} is a number, got {figure!r}; a failed measurement is told as Failed")
