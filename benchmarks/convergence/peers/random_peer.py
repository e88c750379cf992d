# SPDX-License-Identifier: Apache-2.0
"""Draws every level evenly: a check of the driver, to be compared with the contender `random`."""

import random

from driver import configured, serve


class RandomPeer:
    def __init__(self, space, direction, budget, seed):
        self.space = space
        self.random = random.Random(seed)
        self.seen = set()

    def ask(self):
        for _ in range(1000):
            configuration = configured(self.space, lambda p: self.random.randrange(len(p["values"])))
            if repr(configuration) not in self.seen:
                break
        return configuration

    def tell(self, configuration, value, failed, infeasible):
        self.seen.add(repr({p["name"]: configuration[p["name"]] for p in self.space if p["name"] in configuration}))


serve(RandomPeer)
