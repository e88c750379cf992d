# SPDX-License-Identifier: Apache-2.0
"""Optuna's own tests of samplers, run on ours: all but those of samplers that take a single objective only."""

from __future__ import annotations

from collections.abc import Callable

import pytest

suite = pytest.importorskip("optuna.testing.pytest_samplers", reason="Optuna's tests of samplers are not installed")

from optuna.samplers import BaseSampler  # noqa: E402

from servetune.optuna import ServetuneSampler  # noqa: E402


class _OurSampler:
    @pytest.fixture
    def sampler(self) -> Callable[[], BaseSampler]:
        return lambda: ServetuneSampler(seed=0)


class TestBasic(_OurSampler, suite.BasicSamplerTestCase):  # type: ignore[misc, name-defined]
    pass


class TestRelative(_OurSampler, suite.RelativeSamplerTestCase):  # type: ignore[misc, name-defined]
    pass


class TestSeveralObjectives(_OurSampler, suite.MultiObjectiveSamplerTestCase):  # type: ignore[misc, name-defined]
    pass
