# SPDX-License-Identifier: Apache-2.0
"""A search space of Optuna as one of `autotune ask-tell`: its dimensions, what they depend on, and where to begin."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Union

from optuna.distributions import BaseDistribution, CategoricalDistribution, FloatDistribution, IntDistribution
from optuna.trial import FrozenTrial, TrialState

Space = Mapping[str, BaseDistribution]
Level = Union[int, float, str]
"""A value as the program has it."""

_most_levels = 2**20
"""Of an integer of the program (include/servetune/search_space.hpp)."""
_most_parent_values = 64
"""An integer of more values is not taken for what other parameters depend on."""


@dataclass
class Dimension:
    """A parameter of Optuna, and what it is for the program: a real, an integer or a choice."""

    name: str
    key: str  # the program's name of it: Optuna's may hold anything
    distribution: BaseDistribution
    parent: Dimension | None = None
    parent_levels: tuple[Level, ...] = ()  # under which it is active
    default: Level = field(init=False)

    def __post_init__(self) -> None:
        self.default = self._middle()

    def entry(self) -> dict[str, Any]:
        """Its entry under `space` (search_spaces/FORMAT.md)."""
        entry = dict(self._domain()) | {"default": self.default}
        if self.parent is not None:
            entry["when"] = {self.parent.key: list(self.parent_levels)}
        return entry

    def level(self, value: Any) -> Level | None:
        """The program's value for one of Optuna. `None`: it lies outside."""
        distribution = self.distribution
        if isinstance(distribution, CategoricalDistribution):
            try:
                return f"v{int(distribution.to_internal_repr(value))}"
            except ValueError:
                return None
        assert isinstance(distribution, (FloatDistribution, IntDistribution))
        if not isinstance(value, (int, float)) or not distribution.low <= value <= distribution.high:
            return None
        if isinstance(distribution, FloatDistribution) and distribution.step is None:
            return float(value)
        step = distribution.step or 1
        index = round((value - distribution.low) / step)
        if abs(distribution.low + index * step - value) > 1e-8 * max(step, abs(value)):
            return None
        return self._as_level(index if isinstance(distribution, FloatDistribution) else int(value))

    def value(self, level: Level) -> Any:
        """Optuna's value for one of the program."""
        distribution = self.distribution
        if isinstance(distribution, CategoricalDistribution):
            return distribution.choices[int(str(level)[1:])]
        assert isinstance(distribution, (FloatDistribution, IntDistribution)) and not isinstance(level, str)
        if isinstance(distribution, IntDistribution):
            nearest = distribution.low + round((level - distribution.low) / distribution.step) * distribution.step
            return min(max(int(nearest), distribution.low), distribution.high)
        if distribution.step is None:
            return min(max(float(level), distribution.low), distribution.high)
        # As Optuna's own samplers round.
        return min(round(level) * distribution.step + distribution.low, distribution.high)

    def depends_on(self, parent: Dimension, levels: Iterable[Level]) -> None:
        self.parent = parent
        self.parent_levels = tuple(sorted(levels, key=lambda level: (str(type(level)), level)))

    def is_active(self, configuration: Mapping[str, Level]) -> bool:
        return self.parent is None or configuration.get(self.parent.key) in self.parent_levels

    def _domain(self) -> dict[str, Any]:
        distribution = self.distribution
        if isinstance(distribution, CategoricalDistribution):
            return {"choice": [f"v{i}" for i in range(len(distribution.choices))]}
        assert isinstance(distribution, (FloatDistribution, IntDistribution))
        scale = {"scale": "log"} if distribution.log else {}
        if self._is_wide():
            low, high = self.level(distribution.low), self.level(distribution.high)
            return {"real": {"low": low, "high": high} | scale}
        if isinstance(distribution, IntDistribution):
            step = {} if distribution.log else {"step": distribution.step}
            return {"int": {"low": distribution.low, "high": distribution.high} | step | scale}
        if distribution.step is not None:
            return {"int": {"low": 0, "high": round((distribution.high - distribution.low) / distribution.step)}}
        return {"real": {"low": distribution.low, "high": distribution.high} | scale}

    def _middle(self) -> Level:
        distribution = self.distribution
        if isinstance(distribution, CategoricalDistribution):
            return "v0"
        assert isinstance(distribution, (FloatDistribution, IntDistribution))
        low, high = distribution.low, distribution.high
        middle = math.exp((math.log(low) + math.log(high)) / 2) if distribution.log else low + (high - low) / 2
        if isinstance(distribution, FloatDistribution) and distribution.step is None:
            return min(max(middle, low), high)
        step = distribution.step or 1
        index = round((middle - low) / step)
        return self._as_level(index if isinstance(distribution, FloatDistribution) else int(low) + index * int(step))

    def _is_wide(self) -> bool:
        """Whether it has more values than an integer of the program may have: there it is a real, and is rounded."""
        distribution = self.distribution
        assert isinstance(distribution, (FloatDistribution, IntDistribution))
        return (
            distribution.step is not None and (distribution.high - distribution.low) / distribution.step >= _most_levels
        )

    def _as_level(self, number: int) -> Level:
        return float(number) if self._is_wide() else number


def middle_of(distribution: BaseDistribution) -> Any:
    """The middle of a range, by ratios where it is logarithmic; the first of several choices."""
    dimension = Dimension("", "", distribution)
    return dimension.value(dimension.default)


class ProgramSpace:
    """The dimensions of a space in the order in which they depend on each other."""

    def __init__(self, space: Space, trials: Sequence[FrozenTrial]) -> None:
        """What depends on what, and the defaults, are learned from trials, which are in order of their numbers."""
        dimensions = [Dimension(name, f"p{i}", space[name]) for i, name in enumerate(sorted(space))]
        _find_parents(dimensions, trials)
        complete = [trial for trial in trials if trial.state == TrialState.COMPLETE]
        for dimension in dimensions:
            levels = (
                dimension.level(trial.params[dimension.name]) for trial in complete if dimension.name in trial.params
            )
            first = next((level for level in levels if level is not None), None)
            if first is not None:
                dimension.default = first
        self.dimensions = sorted(dimensions, key=_depth)

    def entries(self) -> dict[str, Any]:
        return {dimension.key: dimension.entry() for dimension in self.dimensions}

    def configuration(self, params: Mapping[str, Any], whole: bool) -> dict[str, Level] | None:
        """What Optuna's parameters are for the program. One that is absent has its default.

        `None`: a value lies outside, or `whole` and an active parameter is absent.
        """
        result: dict[str, Level] = {}
        for dimension in self.dimensions:
            if not dimension.is_active(result):
                continue
            if dimension.name not in params:
                if whole:
                    return None
                result[dimension.key] = dimension.default
                continue
            level = dimension.level(params[dimension.name])
            if level is None:
                return None
            result[dimension.key] = level
        return result

    def params(self, configuration: Mapping[str, Level]) -> dict[str, Any]:
        """What a configuration of the program is in Optuna's parameters."""
        return {d.name: d.value(configuration[d.key]) for d in self.dimensions if d.key in configuration}


def learned_space(trials: Iterable[FrozenTrial]) -> dict[str, BaseDistribution]:
    """All parameters of these trials. A range is the widest of those that a parameter had."""
    result: dict[str, BaseDistribution] = {}
    for trial in trials:
        for name, distribution in trial.distributions.items():
            known = result.get(name)
            result[name] = distribution if known is None or known == distribution else _widest(known, distribution)
    return {name: result[name] for name in sorted(result) if not result[name].single()}


def _widest(one: BaseDistribution, other: BaseDistribution) -> BaseDistribution:
    """Both ranges in one; where they cannot be joined, the other."""
    if isinstance(one, IntDistribution) and isinstance(other, IntDistribution) and one.log == other.log:
        low, high = min(one.low, other.low), max(one.high, other.high)
        aligned = one.step == other.step and (one.low - other.low) % one.step == 0
        return IntDistribution(low, high, log=one.log, step=one.step if aligned else 1)
    if isinstance(one, FloatDistribution) and isinstance(other, FloatDistribution) and one.log == other.log:
        low_, high_ = min(one.low, other.low), max(one.high, other.high)
        between = (one.low - other.low) / one.step if one.step is not None and one.step == other.step else 0.5
        aligned = abs(between - round(between)) < 1e-8
        return FloatDistribution(low_, high_, log=one.log, step=one.step if aligned else None)
    return other


def _find_parents(dimensions: Sequence[Dimension], trials: Sequence[FrozenTrial]) -> None:
    """A parameter that some trials lack depends on the one whose values tell where it is from where it is not.

    A trial that did not end by itself may lack more. A parent is in more trials than its child, so that there are no
    circles. The one in the fewest trials counts, which is the next above it.
    """
    complete = [trial for trial in trials if trial.state == TrialState.COMPLETE]
    counts = {d.name: sum(d.name in trial.params for trial in complete) for d in dimensions}
    for dimension in dimensions:
        if counts[dimension.name] == len(complete):
            continue
        possible = [d for d in dimensions if counts[d.name] > counts[dimension.name]]
        for parent in sorted(
            possible, key=lambda d: (counts[d.name], isinstance(d.distribution, IntDistribution), d.name)
        ):
            levels = _levels_with(dimension, parent, trials)
            if levels:
                dimension.depends_on(parent, levels)
                break


def _levels_with(child: Dimension, parent: Dimension, trials: Sequence[FrozenTrial]) -> set[Level] | None:
    """The levels of the parent that come with the child. `None`: they do not decide about it."""
    present: set[Level] = set()
    absent: set[Level] = set()
    for trial in trials:
        if child.name in trial.params:
            level = parent.level(trial.params[parent.name]) if parent.name in trial.params else None
            if level is None:
                return None
            present.add(level)
        elif trial.state == TrialState.COMPLETE and parent.name in trial.params:
            level = parent.level(trial.params[parent.name])
            if level is not None:
                absent.add(level)
    if not present or not absent or present & absent:
        return None
    if isinstance(parent.distribution, CategoricalDistribution):
        return present
    if not isinstance(parent.distribution, IntDistribution):
        return None
    domain = parent.distribution
    values = range(domain.low, domain.high + 1, 1 if domain.log else domain.step)
    numbers, others = [int(level) for level in present], [int(level) for level in absent]
    if len(values) > _most_parent_values:
        return None
    if min(numbers) > max(others):  # such as the width of a further layer
        return {value for value in values if value > max(others)}
    if max(numbers) < min(others):
        return {value for value in values if value < min(others)}
    return present


def _depth(dimension: Dimension) -> int:
    return 0 if dimension.parent is None else 1 + _depth(dimension.parent)
