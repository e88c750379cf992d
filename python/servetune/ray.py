# SPDX-License-Identifier: Apache-2.0
"""A search algorithm for Ray Tune whose suggestions come from servetune's optimizer. Needs `pip install servetune[ray]`."""

from __future__ import annotations

import pickle
from collections.abc import Mapping
from typing import Any

try:
    from ray.tune.search import Searcher
except ImportError as error:
    raise ImportError("servetune.ray needs Ray Tune: pip install 'servetune[ray]'") from error

from ray.tune.search.sample import Categorical, Domain, Float, Integer, LogUniform, Quantized
from ray.tune.search.variant_generator import parse_spec_vars
from ray.tune.utils.util import unflatten_dict

from ._errors import UsageError
from ._parameters import Parameter, choice, integer, real
from ._study import Study
from ._trial import Failed, Outcome

_endless = 10**9  # trials: Ray decides when it ends


class ServetuneSearch(Searcher):  # type: ignore[misc]
    """`tune.Tuner(..., param_space={...}, tune_config=tune.TuneConfig(metric="loss", mode="min", search_alg=ServetuneSearch()))`.

    Other arguments are those of Study. Without `noise_cv` nothing is tried twice.
    """

    def __init__(self, metric: str | None = None, mode: str | None = None, **options: Any) -> None:
        super().__init__(metric=metric, mode=mode)
        self._metric, self._mode = metric, mode
        self._options: dict[str, Any] = {"trials": _endless, "noise_cv": 0} | options
        self._domains: dict[str, Domain] = {}
        self._told: list[tuple[Mapping[str, Any], Outcome]] = []
        self._open: dict[str, Any] = {}  # Ray's name of a trial -> ours
        self._study: Study | None = None

    def set_search_properties(self, metric: str | None, mode: str | None, config: dict[str, Any], **spec: Any) -> bool:
        if self._study is not None:
            return False
        self._metric, self._mode = metric or self._metric, mode or self._mode
        _, domains, grids = parse_spec_vars(config)
        if grids:
            raise UsageError("servetune takes no grid_search; write tune.choice")
        self._domains = {"/".join(map(str, path)): domain for path, domain in domains}
        goal = {"min": "minimize", "max": "maximize"}[self._mode or "max"]
        parameters = [_parameter(name, domain) for name, domain in self._domains.items()]
        self._study = Study(parameters, **({goal: self._metric or "value"} | self._options))
        for configuration, outcome in self._told:
            self._study.tell(configuration, outcome)
        return True

    def suggest(self, trial_id: str) -> dict[str, Any] | str | None:
        assert self._study is not None, "Ray gives the space before it asks"
        trial = self._study.ask()
        if trial is None:
            return str(Searcher.FINISHED) if self._study.stop_reason else None
        self._open[trial_id] = trial
        found = dict(trial.configuration)
        for name, domain in self._domains.items():
            if isinstance(domain, Categorical):
                found[name] = domain.categories[int(str(found[name]))]
        return dict(unflatten_dict(found))

    def on_trial_complete(self, trial_id: str, result: dict[str, Any] | None = None, error: bool = False) -> None:
        trial = self._open.pop(trial_id, None)
        if trial is None or self._study is None:
            return
        told = Failed() if error or not result or self._metric not in result else float(result[self._metric])
        self._study.tell(trial, told)
        self._told.append((trial.configuration, told))

    def save(self, checkpoint_path: str) -> None:
        with open(checkpoint_path, "wb") as file:
            pickle.dump(self._told, file)

    def restore(self, checkpoint_path: str) -> None:
        with open(checkpoint_path, "rb") as file:
            self._told = pickle.load(file)


def _parameter(name: str, domain: Domain) -> Parameter:
    if isinstance(domain, Categorical):
        return choice(name, [str(i) for i in range(len(domain.categories))])
    sampler, step = domain.get_sampler(), 1
    if isinstance(sampler, Quantized):
        sampler, step = sampler.sampler, sampler.q
    log = isinstance(sampler, LogUniform)
    if isinstance(domain, Integer):
        high = domain.upper if step != 1 else domain.upper - 1  # as Ray draws them
        return integer(
            name,
            domain.lower,
            high,
            step=step,
            log=log,
            default=domain.lower + (high - domain.lower) // step // 2 * step,
        )
    if isinstance(domain, Float) and step == 1:
        middle = (domain.lower * domain.upper) ** 0.5 if log else (domain.lower + domain.upper) / 2
        return real(name, domain.lower, domain.upper, log=log, default=middle)
    raise UsageError(
        f"servetune takes tune.uniform, loguniform, randint, lograndint, qrandint and choice; '{name}' is another"
    )
