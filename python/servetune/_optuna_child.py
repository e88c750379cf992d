# SPDX-License-Identifier: Apache-2.0
"""One `autotune ask-tell` that knows the trials of a study of Optuna."""

from __future__ import annotations

import json
import math
import os
import weakref
from collections.abc import Sequence
from typing import Any

from optuna.storages import BaseStorage
from optuna.trial import FrozenTrial, TrialState

from ._conversation import Conversation, Say
from ._optuna_space import Level, ProgramSpace
from ._parameters import study_text
from ._program import SpaceFile, find_checked

planned_params = "servetune:params"
"""Key of the system attributes that hold what was suggested for a trial."""

_least_ratio = 1.5
"""Of the largest value and the smallest: below it, ratios and differences are about the same."""
_enough_values = 5
"""With fewer, values above 0 are taken to differ by ratios."""
_endless = 10**9  # trials: Optuna decides when a study ends


class Task:
    """What a program is started with: the space, the goals and the constraints."""

    def __init__(
        self, space: ProgramSpace, directions: Sequence[str], seed: int, noise: float, trials: Sequence[FrozenTrial]
    ) -> None:
        self.space = space
        measured = [trial for trial in trials if trial.state == TrialState.COMPLETE]
        names = sorted({name for trial in measured for name in trial.constraints})
        self.units = {name: _first_size(name, measured) for name in names}
        self.origins = [_origin([trial.values[i] for trial in measured]) for i in range(len(directions))]
        goals: dict[str, list[str]] = {}
        for i, direction in enumerate(directions):
            goals.setdefault(direction, []).append(f"v{i}")
        self.text = study_text(
            {
                "space": space.entries(),
                "objective": goals | {"limits": [f"g{i} <= -1" for i in range(len(names))]},
                "strategy": "bayesian",
                "knowledge": [],
                "min_gain": 0,
                "noise_cv": noise,
                "budget": {"trials": _endless},
                "seed": seed,
            }
        )

    def is_same(self, other: Task) -> bool:
        return (self.text, self.units, self.origins) == (other.text, other.units, other.origins)

    def outcome(self, trial: FrozenTrial) -> dict[str, Any]:
        """What a finished trial tells."""
        if trial.state == TrialState.FAIL:
            return {"failed": "other"}
        values = trial.values
        if trial.state == TrialState.PRUNED:
            if not trial.intermediate_values:
                return {"failed": "other"}
            values = [trial.intermediate_values[max(trial.intermediate_values)]]
        kept = [trial.constraints.get(name, 0.0) for name in self.units]
        if not all(map(_is_sound, values)) or any(map(math.isnan, kept)):
            return {"failed": "invalid_result"}
        metrics = {f"v{i}": _plain(value - origin) for i, (value, origin) in enumerate(zip(values, self.origins))}
        for i, (violation, unit) in enumerate(zip(kept, self.units.values())):
            # The optimizer learns how far a limit of -1 is from a figure in units of it.
            metrics[f"g{i}"] = math.asinh(min(max(violation / unit, -1e12), 1e12)) - 1
        return {"metrics": metrics}


class Child:
    """The program for a task. What it was told already is not told again."""

    def __init__(self, task: Task, storage: BaseStorage, study_id: int) -> None:
        self._task = task
        self._storage = weakref.ref(storage)
        self._study_id = study_id
        self._process_id = os.getpid()
        self._told: set[int] = set()
        self._open: dict[int, tuple[int, dict[str, Level]]] = {}  # Optuna's number -> the program's, what is tried
        file = SpaceFile(task.text)
        try:
            self._conversation = Conversation([find_checked(), "ask-tell", file.path], file.descriptors)
            weakref.finalize(self, self._conversation.close)
            self._conversation.call(lambda say: say({"recommend": True}))  # once it answers, it has read the space
        finally:
            file.remove()

    def fits(self, task: Task, storage: BaseStorage, study_id: int) -> bool:
        here = self._process_id == os.getpid() and self._storage() is storage and self._study_id == study_id
        return here and self._task.is_same(task)

    def close(self) -> None:
        self._conversation.close()

    def suggestion(self, trial: FrozenTrial, others: Sequence[FrozenTrial]) -> dict[str, Any] | None:
        """Parameters for a trial, by what all others have come to. `None`: they must be told first."""

        def work(say: Say) -> dict[str, Any] | None:
            for other in self._in_order(others):
                self._take_up(say, other)
            if trial.number in self._open:  # another process has just taken the same
                say(_forget(self._open.pop(trial.number)[0]))
            answer = say({"ask": True})
            if "trial" not in answer:
                return None
            space = self._task.space
            params = space.params(answer["configuration"])
            asked = space.configuration(params, whole=True)
            assert asked is not None
            self._open[trial.number] = (answer["trial"], asked)
            fixed = trial.system_attrs.get("fixed_params", {})
            self._try_instead(say, trial.number, space.configuration(params | fixed, whole=False))
            return params

        return self._conversation.call(work)

    def is_alone(self, number: int, others: Sequence[FrozenTrial]) -> bool:
        """Whether no other trial tries what this one does, of those that were not known when it was suggested."""
        asked = self._open[number][1]
        new = (other for other in others if other.number not in self._told and other.state != TrialState.WAITING)
        return all(self._task.space.configuration(_all_params(other), whole=True) != asked for other in new)

    def _in_order(self, trials: Sequence[FrozenTrial]) -> Sequence[FrozenTrial]:
        """At the start one of the default configuration first: the program's first trial is that."""
        if self._told or self._open:
            return trials
        space = self._task.space
        default = space.configuration({}, whole=False)
        for i, trial in enumerate(trials):
            if trial.state.is_finished() and space.configuration(_all_params(trial), whole=False) == default:
                return [trial, *trials[:i], *trials[i + 1 :]]
        return trials

    def _take_up(self, say: Say, trial: FrozenTrial) -> None:
        """Tells a finished trial, and notes one that is under way."""
        if trial.number in self._told or trial.state == TrialState.WAITING:
            return
        configuration = self._task.space.configuration(_all_params(trial), whole=trial.state != TrialState.COMPLETE)
        if trial.state == TrialState.RUNNING:
            return self._try_instead(say, trial.number, configuration)
        self._told.add(trial.number)
        self._try_instead(say, trial.number, configuration)
        if trial.number in self._open:
            number, asked = self._open.pop(trial.number)
            say({"tell": {"trial": number} | self._task.outcome(trial)} if asked == configuration else _forget(number))

    def _try_instead(self, say: Say, number: int, configuration: dict[str, Level] | None) -> None:
        """Notes what a trial tries, unless that is known."""
        if configuration is None:
            return
        if number in self._open:
            if self._open[number][1] == configuration:
                return
            say(_forget(self._open[number][0]))
        self._open[number] = (say({"propose": configuration})["trial"], configuration)


def _all_params(trial: FrozenTrial) -> dict[str, Any]:
    """A trial's parameters, and what was suggested for those that it has not asked for."""
    parts: list[str] = []
    while (part := trial.system_attrs.get(f"{planned_params}:{len(parts)}")) is not None:
        parts.append(part)
    try:
        planned: dict[str, Any] = json.loads("".join(parts)) if parts else {}
    except json.JSONDecodeError:  # another process is just writing it
        planned = {}
    return planned | dict(trial.system_attrs.get("fixed_params", {})) | trial.params


def _forget(number: int) -> dict[str, Any]:
    """Ends a trial of the program that nobody measures; it teaches nothing."""
    return {"tell": {"trial": number, "failed": "cancelled"}}


def _first_size(name: str, trials: Sequence[FrozenTrial]) -> float:
    """The size of the first value of a constraint that is not 0: its unit, whatever comes later."""
    sizes = (abs(trial.constraints.get(name, 0.0)) for trial in trials)
    return next((size for size in sizes if 0 < size < math.inf), 1.0)


def _origin(values: Sequence[float]) -> float:
    """What is subtracted from an objective's values before they are told.

    The program judges positive figures by ratios, else by differences in units of the first one's size. Ratios fit
    values above 0 that differ by ratios, such as losses. Others are told as differences from the first one, so that
    their offset and unit do not matter.
    """
    sound = [value for value in values if _is_sound(value)]
    if not sound or (min(sound) > 0 and (len(sound) < _enough_values or max(sound) > _least_ratio * min(sound))):
        return 0.0
    return sound[0]


def _is_sound(value: float) -> bool:
    return abs(value) <= 1e100  # what the program takes (docs/reference/your-own-program.md); not NaN


def _plain(value: float) -> float:
    return 0.0 if abs(value) < 1e-100 else value
