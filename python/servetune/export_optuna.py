# SPDX-License-Identifier: Apache-2.0
"""The trials of a study as a study of Optuna. Needs `pip install servetune[optuna]`.

    python3 -m servetune.export_optuna STUDY sqlite:///optuna.db

STUDY: its file, folder or journal. A trial is COMPLETE when its configuration may win, PRUNED when it was measured and
refused, FAIL when it failed. Every metric is a user attribute.
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


def _trial_of(
    line: dict[str, Any],
    goals: list[dict[str, str]],
    refused: list[dict[str, Any]],
    distributions: dict[str, BaseDistribution],
) -> optuna.trial.FrozenTrial:
    outcome, params = line["outcome"], line["configuration"]
    metrics = {name: metric["value"] for name, metric in outcome.get("metrics", {}).items()}
    values = [metrics[goal["metric"]] for goal in goals if goal["metric"] in metrics]
    state = TrialState.PRUNED if params in refused or len(values) < len(goals) else TrialState.COMPLETE
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
    )
    began = line["started_at"] or line["asked_at"]
    trial.datetime_start = datetime.datetime.fromtimestamp(began)
    trial.datetime_complete = datetime.datetime.fromtimestamp(line["told_at"] or began)
    return trial


def main(arguments: list[str]) -> None:
    if len(arguments) != 2:
        sys.exit("usage: python3 -m servetune.export_optuna STUDY STORAGE (such as sqlite:///optuna.db)")
    report = json.loads(_answer_of("report", arguments[0], "--json"))
    goals = report.get("goals") or [{"direction": way, "metric": name} for way, name in report["objective"].items()]
    lines = [json.loads(line) for line in _answer_of("export", arguments[0], "--format", "jsonl").splitlines()]
    lines = [line for line in lines if line["outcome"] is not None and not line["workload"]]
    tried: dict[str, list[Any]] = {}
    for line in lines:
        for name, value in line["configuration"].items():
            tried.setdefault(name, []).append(value)
    distributions = {name: _distribution_of(values) for name, values in tried.items()}
    refused = [one["configuration"] for one in report["refused"]]
    study = optuna.create_study(
        study_name=report["study"], storage=arguments[1], directions=[goal["direction"] for goal in goals]
    )
    study.add_trials([_trial_of(line, goals, refused, distributions) for line in lines])


if __name__ == "__main__":
    main(sys.argv[1:])
