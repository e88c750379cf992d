# SPDX-License-Identifier: Apache-2.0
"""Ray Tune runs the trials, servetune says what to try. Needs `pip install servetune[ray]`."""

import math
from typing import Any

import ray
from ray import tune

from servetune.ray import ServetuneSearch


def train(config: dict[str, Any]) -> None:
    """Stands for your own training."""
    loss = (
        1
        + (math.log10(config["rate"]) + 2.4) ** 2
        + {"adam": 0, "sgd": 0.3}[config["method"]]
        + abs(config["layers"] - 4) / 10
    )
    tune.report({"loss": loss})


ray.init(num_cpus=2, object_store_memory=100_000_000, include_dashboard=False)
space = {
    "rate": tune.loguniform(1e-5, 1e-1),
    "method": tune.choice(["sgd", "adam"]),
    "layers": tune.randint(1, 9),
}
config = tune.TuneConfig(
    metric="loss",
    mode="min",
    search_alg=ServetuneSearch(seed=1),
    num_samples=12,
    max_concurrent_trials=2,
    reuse_actors=True,
)
best = tune.Tuner(train, param_space=space, tune_config=config).fit().get_best_result()
print("loss", round(best.metrics["loss"], 2), best.config)
