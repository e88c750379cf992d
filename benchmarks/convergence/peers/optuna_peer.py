# SPDX-License-Identifier: Apache-2.0
"""Optuna: `optuna_peer.py tpe|tpe_alone|gp fail|worst`; tpe_alone: each parameter by itself, Optuna's own default.

Ordered parameters are integers, the position of the level; all others categorical. A failed trial is told as FAIL, which Optuna's samplers do not look at, or as
the worst value seen so far. A configuration that breaks a known constraint is told as FAIL. The default is trial 0.
"""

import sys
import warnings

import optuna
from driver import configured, serve

optuna.logging.set_verbosity(optuna.logging.ERROR)
warnings.simplefilter("ignore")
which, failures = sys.argv[1], sys.argv[2]


def sampler(seed):
    if which == "tpe":
        return optuna.samplers.TPESampler(multivariate=True, group=True, seed=seed)
    if which == "tpe_alone":
        return optuna.samplers.TPESampler(seed=seed)
    if which == "gp":
        if not hasattr(optuna.samplers, "GPSampler"):
            raise SystemExit("Optuna " + optuna.__version__ + " has no GPSampler")
        return optuna.samplers.GPSampler(seed=seed)
    raise SystemExit("tpe, tpe_alone or gp wanted, got " + which)


class OptunaPeer:
    def __init__(self, space, direction, budget, seed):
        self.space = space
        self.worse = min if direction == "maximize" else max
        self.study = optuna.create_study(direction=direction, sampler=sampler(seed))
        self.asked = None
        self.values = []

    def suggest(self, trial):
        def place_of(parameter):
            count = len(parameter["values"])
            if count == 1:
                return 0
            if parameter["ordered"]:
                return trial.suggest_int(parameter["name"], 0, count - 1)
            return trial.suggest_categorical(parameter["name"], list(range(count)))

        return configured(self.space, place_of)

    def ask(self):
        trial = self.study.ask()
        configuration = self.suggest(trial)
        self.asked = trial, configuration
        return configuration

    def tell(self, configuration, value, failed, infeasible):
        if self.asked is None or self.asked[1] != configuration:
            places = {p["name"]: p["values"].index(configuration[p["name"]]) for p in self.space if p["name"] in configuration}
            self.study.enqueue_trial(places)
            trial = self.study.ask()
            self.suggest(trial)
        else:
            trial = self.asked[0]
        self.asked = None
        if value is not None:
            self.values.append(value)
            self.study.tell(trial, value)
        elif failed and failures == "worst" and self.values:
            self.study.tell(trial, self.worse(self.values))
        else:
            self.study.tell(trial, state=optuna.trial.TrialState.FAIL)


serve(OptunaPeer)
