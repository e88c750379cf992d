# SPDX-License-Identifier: Apache-2.0
"""Finds the best configuration of anything that you measure, such as an LLM serving engine's launch flags.

>>> import servetune as st
>>> study = st.Study([st.choice("cache", ["none", "large"]), st.integer("threads", 1, 64, log2=True)],
...                  maximize="requests_per_second", trials=10)
>>> study.ask().configuration
{'cache': 'none', 'threads': 1}
>>> study.close()

docs/guides/python.md says more.
"""

from ._errors import Error, ForkedError, IoError, JournalInUse, ProgramMissing, UsageError, VersionMismatch
from ._parameters import Configuration, Parameter, Value, choice, flag, integer, real
from ._recommendation import FrontPoint, Interval, Measured, Recommendation
from ._study import Study
from ._trial import Failed, Failure, Metric, Outcome, Trial
from ._version import __version__

__all__ = [
    "Configuration",
    "Error",
    "Failed",
    "Failure",
    "ForkedError",
    "FrontPoint",
    "Interval",
    "IoError",
    "JournalInUse",
    "Measured",
    "Metric",
    "Outcome",
    "Parameter",
    "ProgramMissing",
    "Recommendation",
    "Study",
    "Trial",
    "UsageError",
    "Value",
    "VersionMismatch",
    "__version__",
    "choice",
    "flag",
    "integer",
    "real",
]
