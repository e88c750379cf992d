# SPDX-License-Identifier: Apache-2.0
"""The trials of a study as a study of Optuna. Needs `pip install servetune[optuna]`.

    python3 -m servetune.export_optuna STUDY sqlite:///optuna.db

STUDY: its file, folder or journal. A trial is COMPLETE when its configuration may win or breaks a limit, PRUNED when it
was measured and refused for something else, FAIL when it failed. A limit is a constraint: above 0 where it is broken.
Every metric is a user attribute.
"""

from __future__ import annotations

import datetime
import json
import sys
from typing import Any

try:
    import optuna
    from optuna.distributions import BaseDistribution, CategoricalDistribution, FloatDistribution, IntDistribution
    from optuna.trial import TrialState, create_trial
except ImportError as error:
    if __name__ != "__main__":
        raise
    sys.exit(f"servetune.export_optuna: {error}; pip install 'servetune[optuna]'")

from ._program import find_checked, run_program


def _answer_of(*words: str) -> str:
    ran = run_program([find_checked(), *words])
    if not ran.stdout:
        sys.exit(ran.stderr.strip() or f"autotune {' '.join(words)}: exit code {ran.returncode}")
    return ran.stdout


def _distribution_of(values: list[Any]) -> BaseDistribution:
    """Of what was tried: numbers as a range, everything else as a list."""
    kinds = {type(value) for value in values}
    if kinds == {int}:
        return IntDistribution(min(values), max(values))
    if kinds <= {int, float}:
        return FloatDistribution(min(values), max(values))
    return CategoricalDistribution(sorted(set(values), key=str))


def _constraints_of(limits: list[dict[str, Any]], metrics: dict[str, float]) -> dict[str, float]:
    """Every limit, also of each workload: kept at 0 and below."""
    return {
        f"{name} <= {limit['at_most']}" if "at_most" in limit else f"{name} >= {limit['at_least']}": (
            value - limit["at_most"] if "at_most" in limit else limit["at_least"] - value
        )
        for limit in limits
        for name, value in metrics.items()
        if limit["metric"] in (name, name.split("@")[0])
    }


def _trial_of(
    line: dict[str, Any], report: dict[str, Any], distributions: dict[str, BaseDistribution]
) -> optuna.trial.FrozenTrial:
    outcome, params = line["outcome"], line["configuration"]
    metrics = {name: metric["value"] for name, metric in outcome.get("metrics", {}).items()}
    goals = report["goals"]
    values = [metrics[goal["metric"]] for goal in goals if goal["metric"] in metrics]
    constraints = _constraints_of(report["limits"], metrics)
    judged = outcome.get("verdict") != "unsound" and max(constraints.values(), default=0) > 0
    refused = not judged and params in (one["configuration"] for one in report["refused"])
    state = TrialState.PRUNED if refused or len(values) < len(goals) else TrialState.COMPLETE
    attributes = {"trial": line["trial"], "why": line["why"], **metrics}
    if "failure" in outcome:
        state = TrialState.FAIL
        attributes |= {"failure": outcome["failure"], "message": outcome["message"]}
    else:
        attributes["verdict"] = outcome["verdict"]
    trial = create_trial(
        state=state,
        params=params,
        distributions={name: distributions[name] for name in params},
        values=values if state == TrialState.COMPLETE else None,
        user_attrs=attributes,
        constraints=constraints,
    )
    began = line["started_at"] or line["asked_at"]
    trial.datetime_start = datetime.datetime.fromtimestamp(began)
    trial.datetime_complete = datetime.datetime.fromtimestamp(line["told_at"] or began)
    return trial


def main(arguments: list[str]) -> None:
    if len(arguments) != 2:
        sys.exit("usage: python3 -m servetune.export_optuna STUDY STORAGE (such as sqlite:///optuna.db)")
    report = json.loads(_answer_of("report", arguments[0], "--json"))
    report.setdefault("goals", [{"direction": way, "metric": name} for way, name in report["objective"].items()])
    lines = [json.loads(line) for line in _answer_of("export", arguments[0], "--format", "jsonl").splitlines()]
    lines = [line for line in lines if line["outcome"] is not None and not line["workload"]]
    tried: dict[str, list[Any]] = {}
    for line in lines:
        for name, value in line["configuration"].items():
            tried.setdefault(name, []).append(value)
    distributions = {name: _distribution_of(values) for name, values in tried.items()}
    study = optuna.create_study(
        study_name=report["study"], storage=arguments[1], directions=[goal["direction"] for goal in report["goals"]]
    )
    study.add_trials([_trial_of(line, report, distributions) for line in lines])


if __name__ == "__main__":
    main(sys.argv[1:])
