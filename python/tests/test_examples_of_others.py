# SPDX-License-Identifier: Apache-2.0
"""The examples with Ax and Ray, where these are installed."""

from __future__ import annotations

import importlib.util
import subprocess
import sys

import pytest

from support import environment, package


def run(example: str, seconds: float) -> str:
    named = environment | {"RAY_USAGE_STATS_ENABLED": "0", "RAY_AUTH_MODE": "disabled"}
    words = [sys.executable, str(package / "examples" / example)]
    ran = subprocess.run(words, capture_output=True, text=True, timeout=seconds, env=named)
    assert ran.returncode == 0, ran.stderr[-2000:]
    return ran.stdout


@pytest.mark.skipif(importlib.util.find_spec("ax") is None, reason="Ax is not installed: its example is not run")
def test_ax() -> None:
    said = run("ax_experiment.py", 300)
    assert "method = adam" in said
    assert said.count("COMPLETED") >= 3


@pytest.mark.skipif(importlib.util.find_spec("ray") is None, reason="Ray is not installed: its example is not run")
def test_ray_tune() -> None:
    last = run("ray_tune.py", 600).strip().splitlines()[-1]
    assert last.startswith("loss") and float(last.split()[1]) < 1.5
