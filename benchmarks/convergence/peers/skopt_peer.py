# SPDX-License-Identifier: Apache-2.0
"""scikit-optimize: `skopt_peer.py GP|ET|RF`, its Optimizer with defaults but for the surrogate.

Ordered parameters are integers, the position of the level; all others categorical. It knows no conditions: an inactive parameter is at its default's
level, or its first. It minimises, and knows no failures: one is told as the worst value seen so far, as is a configuration that breaks a known constraint.
"""

import sys
import warnings

from driver import configured, place_in, serve
from skopt import Optimizer
from skopt.space import Categorical, Integer

warnings.simplefilter("ignore")


class SkoptPeer:
    def __init__(self, space, direction, budget, seed):
        self.space = space
        self.sign = -1 if direction == "maximize" else 1
        self.free = [p for p in space if len(p["values"]) > 1]
        dimensions = []
        for p in self.free:
            last = len(p["values"]) - 1
            dimensions.append(Integer(0, last) if p["ordered"] else Categorical(list(range(last + 1)), transform="onehot"))
        self.optimizer = Optimizer(dimensions, base_estimator=sys.argv[1], random_state=seed)
        self.values = []
        self.early = []  # failures before the first value: worse than it, once it is known

    def ask(self):
        places = dict(zip((p["name"] for p in self.free), self.optimizer.ask()))
        return configured(self.space, lambda p: int(places.get(p["name"], 0)))

    def tell(self, configuration, value, failed, infeasible):
        point = [place_in(configuration, p) for p in self.free]
        if value is not None:
            self.values.append(self.sign * value)
            self.optimizer.tell(point, self.values[-1])
            for one in self.early:
                self.optimizer.tell(one, self.values[-1])
            self.early = []
        elif self.values:
            self.optimizer.tell(point, max(self.values))
        else:
            self.early.append(point)


serve(SkoptPeer)
