#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Our sampler of Optuna beside Optuna's own, each with its defaults, on three functions to minimize.

usage: compare.py [--seeds N] [--trials N] [--samplers NAME,...] [--functions NAME,...]    (needs optuna, torch, scipy)

Prints the mean and standard error, over the seeds, of the best value so far less the least possible one.
"""
import argparse
import math
import statistics
import time
import warnings

import optuna
from servetune.optuna import ServetuneSampler

# Hartmann, six dimensions: Surjanovic and Bingham, Virtual Library of Simulation Experiments (sfu.ca/~ssurjano/hart6.html).
SLOPES = [[10, 3, 17, 3.5, 1.7, 8], [0.05, 10, 17, 0.1, 8, 14], [3, 3.5, 1.7, 10, 17, 8], [17, 8, 0.05, 10, 0.1, 14]]
PLACES = [
    [1312, 1696, 5569, 124, 8283, 5886],
    [2329, 4135, 8307, 3736, 1004, 9991],
    [2348, 1451, 3522, 2883, 3047, 6650],
    [4047, 8828, 8732, 5743, 1091, 381],
]


def hartmann(trial):
    x = [trial.suggest_float(f"x{i}", 0, 1) for i in range(6)]
    exponents = [sum(a * (v - p / 1e4) ** 2 for a, v, p in zip(slopes, x, places)) for slopes, places in zip(SLOPES, PLACES)]
    return -sum(weight * math.exp(-e) for weight, e in zip([1, 1.2, 3, 3.2], exponents))


def rosenbrock(trial):
    x = [trial.suggest_float(f"x{i}", -2, 2) for i in range(4)]
    return sum(100 * (b - a * a) ** 2 + (1 - a) ** 2 for a, b in zip(x, x[1:]))


def network(trial):
    """A made-up loss with the parameters of a training: integers, logarithmic ranges, choices, and layers that some trials lack."""
    method = trial.suggest_categorical("method", ["sgd", "adam", "lion"])
    rate = math.log10(trial.suggest_float("rate", 1e-5, 1, log=True))
    batch = trial.suggest_categorical("batch", [16, 32, 64, 128, 256])
    loss = 1 + 0.15 * (rate - {"sgd": -1.2, "adam": -2.9, "lion": -3.7}[method] - 0.3 * math.log2(batch / 64)) ** 2
    loss += {"sgd": 0.12, "adam": 0.03, "lion": 0}[method] + 0.02 * (math.log2(batch) - 7) ** 2
    if method == "sgd":
        loss += 0.4 * (trial.suggest_float("momentum", 0, 0.99) - 0.9) ** 2
    layers = trial.suggest_int("layers", 1, 4)
    for i in range(layers):
        loss += 0.05 * (math.log2(trial.suggest_int(f"width{i}", 8, 1024, log=True)) - 8 + 0.7 * i) ** 2 / layers
    return loss + 0.1 * abs(layers - 3) + 0.5 * (trial.suggest_float("dropout", 0, 0.8, step=0.05) - 0.2) ** 2


FUNCTIONS = {"hartmann": (hartmann, -3.32237), "rosenbrock": (rosenbrock, 0), "network": (network, 1)}
SAMPLERS = {
    "servetune": lambda seed: ServetuneSampler(seed=seed),
    "tpe": lambda seed: optuna.samplers.TPESampler(seed=seed),
    "gp": lambda seed: optuna.samplers.GPSampler(seed=seed, warn_independent_sampling=False),
    "random": lambda seed: optuna.samplers.RandomSampler(seed=seed),
}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--trials", type=int, default=40)
    parser.add_argument("--samplers", default="servetune,tpe,gp,random")
    parser.add_argument("--functions", default="hartmann,rosenbrock,network")
    arguments = parser.parse_args()
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
    for name in arguments.functions.split(","):
        function, least = FUNCTIONS[name]
        for sampler in arguments.samplers.split(","):
            began = time.monotonic()
            found = []
            for seed in range(arguments.seeds):
                study = optuna.create_study(sampler=SAMPLERS[sampler](seed))
                study.optimize(function, n_trials=arguments.trials)
                values = [trial.value - least for trial in study.trials]
                found.append({n: min(values[:n]) for n in (arguments.trials // 2, arguments.trials)})
            seconds = (time.monotonic() - began) / arguments.seeds
            for n in found[0]:
                best = [run[n] for run in found]
                error = statistics.stdev(best) / len(best) ** 0.5 if len(best) > 1 else math.nan
                print(f"{name} {sampler} {n} trials: {statistics.mean(best):.4g} +- {error:.2g}, {seconds:.1f} s a study", flush=True)


if __name__ == "__main__":
    main()
