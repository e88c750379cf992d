# SPDX-License-Identifier: Apache-2.0
"""SMAC: `smac_peer.py gp|forest`, its BlackBoxFacade (a Gaussian process) or HyperparameterOptimizationFacade (a random forest) as they ship.

Ordered parameters are ordinals, all others categorical, conditions are conditions. A configuration is measured once. SMAC minimises: a rate is told as its
reciprocal; a failure as the worst cost seen so far. Of what breaks a known constraint it is told nothing: it proposes another.
"""

import logging
import sys
import tempfile
import warnings

from ConfigSpace import AndConjunction, CategoricalHyperparameter, Configuration, ConfigurationSpace, InCondition, OrdinalHyperparameter
from driver import configured, place_in, serve
from smac import BlackBoxFacade, HyperparameterOptimizationFacade, Scenario
from smac.main.exceptions import ConfigurationSpaceExhaustedException
from smac.runhistory import StatusType, TrialInfo, TrialValue

warnings.simplefilter("ignore")
logging.disable(logging.WARNING)
facade = {"gp": BlackBoxFacade, "forest": HyperparameterOptimizationFacade}[sys.argv[1]]


class SmacPeer:
    def __init__(self, space, direction, budget, seed):
        self.space = space
        self.maximize = direction == "maximize"
        self.folder = tempfile.TemporaryDirectory()
        self.configspace = ConfigurationSpace(seed=seed)
        self.free = {p["name"]: p for p in space if len(p["values"]) > 1}
        made = {}
        for name, p in self.free.items():
            places = list(range(len(p["values"])))
            kind = OrdinalHyperparameter if p["ordered"] else CategoricalHyperparameter
            made[name] = kind(name, places, default_value=place_in({}, p))
        self.configspace.add(list(made.values()))
        for name, p in self.free.items():
            whens = [(c["parent"], [self.free[c["parent"]]["values"].index(v) for v in c["values"]]) for c in p["when"] if c["parent"] in self.free]
            conditions = [InCondition(made[name], made[parent], places) for parent, places in whens]
            if conditions:
                self.configspace.add(conditions[0] if len(conditions) == 1 else AndConjunction(*conditions))
        scenario = Scenario(self.configspace, deterministic=True, n_trials=budget, seed=seed, output_directory=self.folder.name)
        # Called by `optimize` only.
        self.smac = facade(scenario, lambda configuration, seed: 0.0, overwrite=True, logging_level=False)
        self.asked = None
        self.costs = []
        self.early = []  # failures before the first cost: as bad as it, once it is known

    def ask(self):
        try:
            self.asked = self.smac.ask()
        except (StopIteration, ConfigurationSpaceExhaustedException):
            return None
        chosen = dict(self.asked.config)
        self.answer = configured(self.space, lambda p: int(chosen.get(p["name"], 0)))
        return self.answer

    def tell(self, configuration, value, failed, infeasible):
        if infeasible:
            return
        if self.asked is not None and self.answer == configuration:
            info = self.asked
        else:
            places = {name: p["values"].index(configuration[name]) for name, p in self.free.items() if name in configuration}
            info = TrialInfo(Configuration(self.configspace, values=places), seed=0)
        self.asked = None
        if value is None and not self.costs:
            self.early.append(info)
            return
        if value is not None:
            self.costs.append(1 / value if self.maximize else value)
        cost = self.costs[-1] if value is not None else max(self.costs)
        for one in [*self.early, info]:
            self.smac.tell(one, TrialValue(cost=cost, status=StatusType.SUCCESS), save=False)
        self.early = []


serve(SmacPeer)
