# SPDX-License-Identifier: Apache-2.0
"""Draws every level evenly: a check of the driver, to be compared with the contender `random`."""

import random

from driver import active, serve


class RandomPeer:
    def __init__(self, space, direction, budget, seed):
        self.space = space
        self.random = random.Random(seed)
        self.seen = set()

    def draw(self):
        configuration = {}
        for parameter in self.space:
            if active(parameter, configuration):
                configuration[parameter["name"]] = self.random.choice(parameter["values"])
        return configuration

    def ask(self):
        for _ in range(1000):
            configuration = self.draw()
            if repr(configuration) not in self.seen:
                break
        return configuration

    def tell(self, configuration, value, failed, infeasible):
        self.seen.add(repr({p["name"]: configuration[p["name"]] for p in self.space if p["name"] in configuration}))


serve(RandomPeer)
