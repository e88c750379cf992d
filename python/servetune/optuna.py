# SPDX-License-Identifier: Apache-2.0
"""A sampler for Optuna whose suggestions come from servetune's optimizer. Needs `pip install servetune[optuna]`."""

from __future__ import annotations

import json
import os
import threading
import zlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any

try:
    import optuna
except ImportError as error:
    raise ImportError("servetune.optuna needs Optuna: pip install 'servetune[optuna]'") from error

from optuna.distributions import BaseDistribution
from optuna.samplers._base import _process_constraints_after_trial
from optuna.trial import FrozenTrial, TrialState

from ._errors import UsageError
from ._optuna_child import Child, Task, planned_params
from ._optuna_space import ProgramSpace, learned_space, middle_of

_finished = (TrialState.COMPLETE, TrialState.PRUNED, TrialState.FAIL)
_most_tries = 3
"""Suggestions for one trial, where another process takes the same at the same moment."""
_most_attribute = 2045
"""Characters of an attribute that Optuna's databases take."""


class ServetuneSampler(optuna.samplers.BaseSampler):
    """Asks `autotune ask-tell` what to try next.

    It keeps no file: what it knows is the study's own history, so that a resumed study goes on as before, and several
    processes may work on one storage. Each sampler has one process of the program, which starts again only where the
    space has changed, or what its goals are told in.

    A parameter that no trial had is drawn by itself: the middle of its range, or at random where other trials run at
    the same time. From the next trial on it is part of the space. A parameter that some trials lack depends on the
    integer or categorical one whose values tell where it is. What the range of a parameter was in any trial is searched.

    - Running trials, also those of other processes, count as under way.
    - A failed trial teaches where trials fail, and so does a value that is no number or infinite.
    - A pruned trial counts with its last value; one that has none counts as failed.
    - A constraint is kept if it is 0 or below.
    - Of several objectives the front is searched.

    >>> study = optuna.create_study(sampler=ServetuneSampler(seed=1))
    >>> study.optimize(lambda trial: (trial.suggest_float("x", -5, 5) - 2) ** 2, n_trials=15)
    >>> abs(study.best_params["x"] - 2) < 0.1
    True
    """

    def __init__(
        self,
        *,
        search_space: Mapping[str, BaseDistribution] | None = None,
        seed: int | None = None,
        noise: float = 0,
        constraints_func: Callable[[FrozenTrial], Sequence[float]] | None = None,
    ) -> None:
        """Starts nothing yet.

        Args:
            search_space: all parameters; left out, they are learned from the trials
            seed: the same seed and history give the same suggestion
            noise: how much the values of one configuration differ, as a share; 0: nothing is tried twice
            constraints_func: trial -> numbers above 0 where a constraint is violated; in Optuna 5
                `Trial.set_constraint` does the same
        """
        if not 0 <= noise <= 1:
            raise UsageError(f"noise is a share from 0 to 1, got {noise}")
        self._search_space = None if search_space is None else dict(search_space)
        self._given_seed = seed
        self._seed = _random_seed() if seed is None else seed
        self._noise = noise
        self._constraints_func = constraints_func
        self._lock = threading.RLock()
        self._child: Child | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {key: value for key, value in self.__dict__.items() if key not in ("_lock", "_child")}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        if self._given_seed is None:
            self._seed = _random_seed()  # a copy must not suggest the same
        self._lock = threading.RLock()
        self._child = None

    def reseed_rng(self) -> None:
        with self._lock:
            self._given_seed = None
            self._seed = _random_seed()

    def infer_relative_search_space(self, study: optuna.Study, trial: FrozenTrial) -> dict[str, BaseDistribution]:
        if self._search_space is not None:
            return {name: d for name, d in self._search_space.items() if not d.single()}
        return learned_space(t for t in _trials_of(study) if t.state in _finished)

    def sample_relative(
        self, study: optuna.Study, trial: FrozenTrial, search_space: dict[str, BaseDistribution]
    ) -> dict[str, Any]:
        if not search_space:
            return {}
        with self._lock:
            trials = [t for t in _trials_of(study) if t.number != trial.number]
            child = self._child_for(study, ProgramSpace(search_space, trials), trials)
            try:
                for _ in range(_most_tries):
                    suggested = child.suggestion(trial, trials)
                    if suggested is None:  # nothing new is left
                        break
                    _remember(study, trial, suggested)
                    trials = [t for t in _trials_of(study) if t.number != trial.number]
                    if child.is_alone(trial.number, trials):
                        return suggested
            except BaseException:
                self._end_child()
                raise
        drawn = {name: self._drawn(study, trial, name, d) for name, d in search_space.items()}
        _remember(study, trial, drawn)
        return drawn

    def sample_independent(
        self, study: optuna.Study, trial: FrozenTrial, param_name: str, param_distribution: BaseDistribution
    ) -> Any:
        others = [t for t in _trials_of(study) if t.number != trial.number]
        known = any(param_name in t.params for t in others)
        if not known and (trial.number == 0 or any(t.state in _finished for t in others)):
            return middle_of(param_distribution)
        return self._drawn(study, trial, param_name, param_distribution)

    def after_trial(
        self, study: optuna.Study, trial: FrozenTrial, state: TrialState, values: Sequence[float] | None
    ) -> None:
        if self._constraints_func is not None:
            _process_constraints_after_trial(self._constraints_func, study, trial, state)

    def _drawn(self, study: optuna.Study, trial: FrozenTrial, name: str, distribution: BaseDistribution) -> Any:
        """At random, by seed, trial and name."""
        seed = zlib.crc32(f"{self._seed} {trial.number} {name}".encode())
        return optuna.samplers.RandomSampler(seed=seed).sample_independent(study, trial, name, distribution)

    def _child_for(self, study: optuna.Study, space: ProgramSpace, trials: Sequence[FrozenTrial]) -> Child:
        """The program that has this space, with what it was told already; another one where the space has changed."""
        task = Task(
            space, tuple(direction.name.lower() for direction in study.directions), self._seed, self._noise, trials
        )
        child = self._child
        if child is not None and child.fits(task, study._storage, study._study_id):
            return child
        self._end_child()
        self._child = Child(task, study._storage, study._study_id)
        return self._child

    def _end_child(self) -> None:
        if self._child is not None:
            self._child.close()
        self._child = None


def _random_seed() -> int:
    return int.from_bytes(os.urandom(4), "little")


def _trials_of(study: optuna.Study) -> list[FrozenTrial]:
    """All trials by number, also those of other brackets of a pruner."""
    return study._storage.get_all_trials(study._study_id, deepcopy=False)


def _remember(study: optuna.Study, trial: FrozenTrial, params: Mapping[str, Any]) -> None:
    """Keeps a suggestion with its trial: other processes see what is under way before the objective asks for it."""
    text = json.dumps(params)
    for i in range(0, len(text), _most_attribute):
        key = f"{planned_params}:{i // _most_attribute}"
        study._storage.set_trial_system_attr(trial._trial_id, key, text[i : i + _most_attribute])
