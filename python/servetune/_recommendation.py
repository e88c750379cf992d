# SPDX-License-Identifier: Apache-2.0
"""What a study says should be used, and how sure that is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ._html import recommendation_html, shown
from ._parameters import Configuration


@dataclass(frozen=True)
class Interval:
    """An estimate with its interval, whose ends are `None` where too little was measured."""

    value: float
    low: float | None
    high: float | None
    level: float = 0.95


@dataclass(frozen=True)
class Measured:
    """A configuration and the means of its metrics."""

    configuration: Configuration
    metrics: Mapping[str, float]


@dataclass(frozen=True)
class FrontPoint:
    """A configuration of the Pareto front, with the estimate of each goal."""

    configuration: Configuration
    estimates: Mapping[str, Interval]


@dataclass(frozen=True)
class Recommendation:
    """The conclusion of a study (docs/decisions/README.md)."""

    verdict: str
    """`recommended`, `keep_default`, `inconclusive` or `nothing_passes`."""
    headline: str
    reason: str
    advice: str
    configuration: Configuration | None
    """What to use, the default unless a gain is proven. `None`: nothing passes."""
    keep_default: bool
    gain: Interval | None
    """Over the default: 0.25 is 25 %, or a difference where `compared_by` says so. `None`: not known."""
    p_best: float | None
    """Probability that `configuration` is truly the best of those that pass."""
    metrics: Mapping[str, float]
    default: Measured
    best_observed: Measured | None
    not_distinguishable: tuple[Configuration, ...]
    compared_by: str
    """`ratios`, or `differences` if figures are 0 or below."""
    front: tuple[FrontPoint, ...]
    """The Pareto front of several goals, best in the leading one first."""
    command: str | None
    """The serving command, of a study of an engine."""
    document: Mapping[str, Any] = field(repr=False)
    """All of it, as docs/reference/json-output.md describes it."""

    def __str__(self) -> str:
        if self.verdict != "recommended" or self.configuration is None:
            return f"{self.headline}: {self.reason}"
        usual = self.default.configuration
        changed = (
            f"{name} = {shown(value)}" for name, value in self.configuration.items() if usual.get(name, ...) != value
        )
        what = ", ".join(changed) or "the default"
        if self.gain is None:
            return f"{what}: {self.reason}"
        return f"{what}: {self.gain_text(self.gain.value)} over the default{self.interval_text()}"

    def gain_text(self, gain: float) -> str:
        return f"{gain:+.6g}" if self.compared_by == "differences" else f"{100 * gain:+.2f} %"

    def interval_text(self) -> str:
        if self.gain is None or self.gain.low is None or self.gain.high is None:
            return ""
        return f" ({100 * self.gain.level:.0f} %: {self.gain_text(self.gain.low)} to {self.gain_text(self.gain.high)})"

    def _repr_html_(self) -> str:
        return recommendation_html(self)


def recommendation_of(document: Mapping[str, Any]) -> Recommendation:
    """From the answer to `recommend`, or the report of `autotune report --json`."""
    chosen = document.get("recommended") or {}
    gain = chosen.get("gain")
    best = document.get("best_observed")
    return Recommendation(
        verdict=document["verdict"],
        headline=document["headline"],
        reason=document["reason"],
        advice=document["advice"],
        configuration=chosen.get("configuration"),
        keep_default=chosen.get("keep_default", True),
        gain=_interval(gain) if gain is not None and gain["value"] is not None else None,
        p_best=gain.get("p_best") if gain is not None else None,
        metrics=chosen.get("metrics", {}),
        default=_measured(document["default"]),
        best_observed=_measured(best) if best is not None else None,
        not_distinguishable=tuple(document.get("not_distinguishable", [])),
        compared_by=document.get("compared_by", "ratios"),
        front=tuple(_front_point(point) for point in document.get("front", [])),
        command=chosen.get("command") or None,
        document=document,
    )


def _interval(document: Mapping[str, Any]) -> Interval:
    return Interval(document["value"], document["low"], document["high"], document.get("level", 0.95))


def _measured(document: Mapping[str, Any]) -> Measured:
    return Measured(document["configuration"], document["metrics"])


def _front_point(document: Mapping[str, Any]) -> FrontPoint:
    estimates = {name: _interval(estimate) for name, estimate in document["estimates"].items()}
    return FrontPoint(document["configuration"], estimates)
