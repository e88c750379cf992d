# SPDX-License-Identifier: Apache-2.0
"""A study of ours as a study of Optuna."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from servetune._program import find_checked, run_program

optuna = pytest.importorskip("optuna", "5", reason="Optuna is not installed: its export is not tested")

_measure = """
import json, sys
c = json.load(sys.stdin)["configuration"]
if c["shape"] == "wide":
    sys.exit(3)
rate = 100 + 7 * c["threads"] + (c["batch"] or 0)
print(json.dumps({"metrics": {"rate": rate, "watts": 300 + rate}}))
"""
_study = """
study: four kinds
model: m
engine: vllm
others: default
workloads: [random]
objective: {maximize: rate, limits: [watts <= 440]}
strategy: random
seed: 3
space:
  threads: {flag: --threads, int: {low: 1, high: 9, step: 2}, default: 1}
  batch: {flag: --batch, choice: [engine, 8, 16], default: engine}
  shape: {flag: --shape, choice: [round, wide, flat]}
evaluator: {command: [PYTHON, measure.py]}
budget: 20 trials
"""


def test_states_values_and_the_best_trial_are_ours(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from servetune.export_optuna import main

    monkeypatch.chdir(tmp_path)
    (tmp_path / "measure.py").write_text(_measure)
    (tmp_path / "study.yaml").write_text(_study.replace("PYTHON", sys.executable))
    ran = run_program([find_checked(), "run", "study.yaml", "--quiet"])
    assert ran.returncode == 0, ran.stderr
    storage = f"sqlite:///{tmp_path}/optuna.db"
    main(["study.yaml", storage])
    study = optuna.load_study(study_name="four kinds", storage=storage)
    assert [one.name for one in study.directions] == ["MAXIMIZE"]
    states = {trial.state.name for trial in study.trials}
    assert states == {"COMPLETE", "FAIL"}
    for trial in study.trials:
        if trial.params["shape"] == "wide":
            assert trial.state.name == "FAIL"
        else:
            rate = 100 + 7 * trial.params["threads"] + (trial.params["batch"] or 0)
            assert trial.user_attrs["rate"] == rate
            assert trial.state.name == "COMPLETE"
            assert trial.constraints == {"watts <= 440.0": rate - 140}
    kept = [trial.user_attrs["rate"] for trial in study.trials if trial.user_attrs.get("watts", 441) <= 440]
    assert study.best_value == max(kept)
    assert any(trial.user_attrs.get("rate", 0) > max(kept) for trial in study.trials)
