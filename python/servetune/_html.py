# SPDX-License-Identifier: Apache-2.0
"""What a notebook shows."""
from __future__ import annotations
from typing import TYPE_CHECKING
if TYPE_CHECKING:
    from ._recommendation import Recommendation
    from ._trial import Trial


def recommendation_html(recommendation: Recommendation) -> str:
    return ""


def study_html(trials: list[Trial], recommendation: Recommendation) -> str:
    return ""
