# SPDX-License-Identifier: Apache-2.0
"""HEBO as it ships.

Ordered parameters are integers, the position of the level; all others categorical. It knows no
conditions: an inactive parameter is at its default's level, or its first. It minimises: a rate is
told as its negative, as HEBO's own tuner does; a failure as the worst cost seen so far. Of what
breaks a known constraint it is told nothing.
"""

import random
import sys
import warnings
from contextlib import redirect_stdout

import numpy
import torch
from driver import configured, place_in, serve
from hebo.design_space.design_space import DesignSpace
from hebo.optimizers.hebo import HEBO
from pandas import DataFrame

warnings.simplefilter("ignore")


class HeboPeer:
    def __init__(self, space, direction, budget, seed):
        self.space = space
        self.sign = -1 if direction == "maximize" else 1
        self.free = [p for p in space if len(p["values"]) > 1]
        dimensions = []
        for p in self.free:
            last = len(p["values"]) - 1
            kind = {"type": "int", "lb": 0, "ub": last} if p["ordered"] else {"type": "cat", "categories": list(range(last + 1))}
            dimensions.append({"name": p["name"]} | kind)
        for generator in random.seed, numpy.random.seed, torch.manual_seed:
            generator(seed)
        self.hebo = HEBO(DesignSpace().parse(dimensions), scramble_seed=seed)
        self.costs = []
        self.early = []  # failures before the first cost: as bad as it, once it is known

    def ask(self):
        with redirect_stdout(sys.stderr):  # it prints where a fit fails
            places = self.hebo.suggest().iloc[0]
        return configured(self.space, lambda p: int(places.get(p["name"], 0)))

    def tell(self, configuration, value, failed, infeasible):
        if infeasible:
            return
        self.early.append({p["name"]: place_in(configuration, p) for p in self.free})
        if value is not None:
            self.costs.append(self.sign * value)
        if self.costs:
            cost = self.costs[-1] if value is not None else max(self.costs)
            self.hebo.observe(DataFrame(self.early), numpy.full((len(self.early), 1), cost))
            self.early = []


serve(HeboPeer)
