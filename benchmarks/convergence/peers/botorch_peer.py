# SPDX-License-Identifier: Apache-2.0
"""BoTorch: a MixedSingleTaskGP with its default priors, and qLogNEI (`qLogNoisyExpectedImprovement`).

Ordered parameters are numbers from 0 to 1 by the position of the level, all others categories; an inactive one is at its default's level. A Sobol start as
long as Ax's. The acquisition is evaluated on all configurations, of more than 4096 on a random half of that and on what differs from the best in one
parameter, as long as that gains. A fit takes 50 steps at most. Failures are told as the worst value seen so far; what breaks a known constraint is not proposed again.
"""

import itertools
import math
import random
import warnings

import torch
from botorch.acquisition.logei import qLogNoisyExpectedImprovement
from botorch.fit import fit_gpytorch_mll
from botorch.models import MixedSingleTaskGP, SingleTaskGP
from botorch.sampling import SobolQMCNormalSampler
from driver import configured, place_in, serve
from gpytorch.mlls import ExactMarginalLogLikelihood

warnings.simplefilter("ignore")
torch.set_default_dtype(torch.float64)
torch.set_num_threads(1)
torch.distributions.Distribution.set_default_validate_args(False)
MOST = 4096


class BotorchPeer:
    def __init__(self, space, direction, budget, seed):
        self.space = space
        self.sign = 1 if direction == "maximize" else -1
        self.free = [p for p in space if len(p["values"]) > 1]
        self.categories = [i for i, p in enumerate(self.free) if not p["ordered"]]
        self.random = random.Random(seed)
        self.seed = seed
        torch.manual_seed(seed)
        self.start = max(5, min(2 * len(self.free), budget // 5))
        self.sobol = torch.quasirandom.SobolEngine(len(self.free), scramble=True, seed=seed)
        self.points, self.values = [], []  # None: failed
        self.known = set()
        self.fitted = None
        self.ranked = []
        whole = math.prod(len(p["values"]) for p in self.free) <= MOST
        self.all = [self.plain(x) for x in itertools.product(*(range(len(p["values"])) for p in self.free))] if whole else None
        if whole:
            self.all = list(dict.fromkeys(self.all))

    def configuration(self, point):
        places = dict(zip((p["name"] for p in self.free), point))
        return configured(self.space, lambda p: places.get(p["name"], 0))

    def plain(self, point):
        """The same with what is inactive at its default."""
        return self.point(self.configuration(point))

    def point(self, configuration):
        return tuple(place_in(configuration, p) for p in self.free)

    def drawn(self):
        return self.plain([self.random.randrange(len(p["values"])) for p in self.free])

    def neighbours(self, point):
        for i, p in enumerate(self.free):
            for place in range(len(p["values"])):
                if place != point[i]:
                    yield self.plain(point[:i] + (place,) + point[i + 1 :])

    def tensor(self, points):
        rows = [[x if i in self.categories else x / (len(p["values"]) - 1) for i, (p, x) in enumerate(zip(self.free, point))] for point in points]
        return torch.tensor(rows, dtype=torch.float64)

    def acquisition(self):
        told = [v for v in self.values if v is not None]
        x = self.tensor(self.points)
        y = torch.tensor([[min(told) if v is None else v] for v in self.values])
        model = MixedSingleTaskGP(x, y, cat_dims=self.categories) if self.categories else SingleTaskGP(x, y)
        if self.fitted:  # begins where the last fit ended: a tenth of the time
            for name, parameter in model.named_parameters():
                parameter.data.copy_(self.fitted[name])
        fit_gpytorch_mll(ExactMarginalLogLikelihood(model.likelihood, model), optimizer_kwargs={"options": {"maxiter": 50}})
        self.fitted = {name: parameter.data.clone() for name, parameter in model.named_parameters()}
        return qLogNoisyExpectedImprovement(model, x, sampler=SobolQMCNormalSampler(torch.Size([128]), seed=self.seed))

    def rank(self, acquisition, points):
        points = [p for p in dict.fromkeys(points) if p not in self.known]
        if not points:
            return []
        with torch.no_grad():
            scores = torch.cat([acquisition(part.unsqueeze(1)) for part in self.tensor(points).split(1024)])
        return sorted(zip(scores.tolist(), points))

    def ask(self):
        if len(self.points) < self.start or all(v is None for v in self.values):
            for _ in range(200):
                point = self.plain([min(int(u * len(p["values"])), len(p["values"]) - 1) for u, p in zip(self.sobol.draw(1)[0].tolist(), self.free)])
                if point not in self.known:
                    return self.configuration(point)
            return self.configuration(self.drawn())
        if not self.ranked:
            acquisition = self.acquisition()
            if self.all:
                self.ranked = self.rank(acquisition, self.all)
            else:
                measured = [p for v, p in sorted((v, p) for v, p in zip(self.values, self.points) if v is not None)[-3:]]
                self.ranked = self.rank(acquisition, [self.drawn() for _ in range(MOST // 2)] + [n for p in measured for n in self.neighbours(p)])
                for _ in range(10):
                    better = [one for one in self.rank(acquisition, self.neighbours(self.ranked[-1][1])) if one[0] > self.ranked[-1][0] + 1e-9]
                    if not better:
                        break
                    self.ranked += better
        return self.configuration(self.ranked[-1][1] if self.ranked else self.drawn())

    def tell(self, configuration, value, failed, infeasible):
        point = self.point(configuration)
        self.known.add(point)
        if infeasible:
            self.ranked = [one for one in self.ranked if one[1] != point]
            return
        self.ranked = []
        self.points.append(point)
        self.values.append(None if value is None else self.sign * value)


serve(BotorchPeer)
