# SPDX-License-Identifier: Apache-2.0
"""Trials as data frames. The libraries are imported here only."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ._errors import UsageError
from ._trial import Trial

if TYPE_CHECKING:
    import pandas
    import polars


def to_pandas(trials: Sequence[Trial]) -> pandas.DataFrame:
    try:
        import pandas
    except ImportError as error:
        raise UsageError("to_pandas needs pandas: pip install pandas") from error
    frame: pandas.DataFrame = pandas.DataFrame(columns_of(trials))
    return frame


def to_polars(trials: Sequence[Trial]) -> polars.DataFrame:
    try:
        import polars
    except ImportError as error:
        raise UsageError("to_polars needs polars: pip install polars") from error
    # A column of a choice may mix numbers and texts, which polars has no type for: texts then.
    columns = {name: _of_one_type(column) for name, column in columns_of(trials).items()}
    return polars.DataFrame(columns, infer_schema_length=None, strict=False)


def columns_of(trials: Sequence[Trial]) -> dict[str, list[Any]]:
    """A column for each parameter and each metric between `trial` and `state`, `failure`, `message`, `why`.

    A parameter or metric whose name is taken by a column before it gets `parameter.` or `metric.` in front.
    """
    columns: dict[str, list[Any]] = {"trial": [trial.id for trial in trials]}
    last: dict[str, list[Any]] = {
        "state": [trial.state for trial in trials],
        "failure": [trial.failure.kind if trial.failure else None for trial in trials],
        "message": [trial.failure.message if trial.failure else None for trial in trials],
        "why": [trial.why for trial in trials],
    }

    def free(name: str, kind: str) -> str:
        return f"{kind}.{name}" if name in columns or name in last else name

    for name in dict.fromkeys(name for trial in trials for name in trial.configuration):
        columns[free(name, "parameter")] = [trial.configuration.get(name) for trial in trials]
    for name in dict.fromkeys(name for trial in trials for name in trial.metrics):
        values = [trial.metrics[name].value if name in trial.metrics else None for trial in trials]
        columns[free(name, "metric")] = values
    columns.update(last)
    return columns


def _of_one_type(column: list[Any]) -> list[Any]:
    types = {type(value) for value in column if value is not None}
    return column if len(types) < 2 or types == {int, float} else [None if v is None else str(v) for v in column]
