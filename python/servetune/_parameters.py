# SPDX-License-Identifier: Apache-2.0
"""The parameters of a study, under the names of the C++ library."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Union

from ._errors import UsageError

Value = Union[bool, int, float, str, None]
"""A value of a parameter; `None` passes no flag."""
Configuration = dict[str, Any]
"""Parameter -> `Value`. A parameter that is inactive is absent."""
Condition = Mapping[str, Union[Value, Sequence[Value]]]
"""Parent -> the value or values under which a parameter is active. All must hold."""


class _Absent:
    """Tells an argument that was not given from `None`, which is a value."""

    def __repr__(self) -> str:
        return "..."


absent = _Absent()


@dataclass(frozen=True)
class Parameter:
    """A parameter and its values. Make it with `choice`, `integer`, `real` or `flag`."""

    name: str
    domain: Mapping[str, Any]
    default: Value
    when: Mapping[str, tuple[Value, ...]]

    def entry(self) -> dict[str, Any]:
        """Its entry under `space` of a study file (search_spaces/FORMAT.md)."""
        entry = dict(self.domain) | {"default": self.default}
        if self.when:
            entry["when"] = {parent: list(values) for parent, values in self.when.items()}
        return entry

    def is_active(self, configuration: Mapping[str, Value]) -> bool:
        return all(parent in configuration and configuration[parent] in self.when[parent] for parent in self.when)


def choice(
    name: str,
    values: Iterable[Value],
    *,
    default: Value | _Absent = absent,
    ordered: bool = False,
    when: Condition = {},
) -> Parameter:
    """One of these values. Without `default` the first is the default. `ordered`: from less to more.

    >>> choice("quantization", [None, "fp8"]).default is None
    True
    """
    listed = [plain_value(value) for value in values]
    if isinstance(values, str) or not listed:
        raise UsageError(f"the choice '{name}' needs a list of values, got {values!r}")
    domain: dict[str, Any] = {"choice": listed} | ({"ordered": True} if ordered else {})
    return _parameter(name, domain, listed[0] if default is absent else default, when)


def integer(
    name: str,
    low: int,
    high: int,
    *,
    step: int = 1,
    log: bool = False,
    log2: bool = False,
    default: Value | _Absent = absent,
    when: Condition = {},
) -> Parameter:
    """An integer from `low` to `high`, both included. Without `default` it is `low`; `None`: also no flag, by default.

    `log`: ratios count. `log2`: only low, 2 low, 4 low, ...

    >>> integer("seqs", 64, 1024, log2=True, default=256).entry()
    {'int': {'low': 64, 'high': 1024, 'scale': 'log2'}, 'default': 256}
    """
    domain: dict[str, Any] = {"low": plain_value(low), "high": plain_value(high)}
    if log and log2:
        raise UsageError(f"the integer '{name}' has one scale: log or log2")
    if step != 1:
        domain["step"] = plain_value(step)
    if log or log2:
        domain["scale"] = "log" if log else "log2"
    return _parameter(name, {"int": domain}, low if default is absent else default, when)


def real(
    name: str,
    low: float,
    high: float,
    *,
    log: bool = False,
    default: Value | _Absent = absent,
    when: Condition = {},
) -> Parameter:
    """A real number from `low` to `high`, both included. Without `default` it is `low`. `log`: ratios count.

    >>> real("share", 0.5, 0.95).default
    0.5
    """
    domain: dict[str, Any] = {"low": plain_value(low), "high": plain_value(high)} | ({"scale": "log"} if log else {})
    return _parameter(name, {"real": domain}, low if default is absent else default, when)


def flag(name: str, *, default: bool = False, when: Condition = {}) -> Parameter:
    """True or false.

    >>> flag("eager").default
    False
    """
    return _parameter(name, {"bool": {}}, default, when)


def completed(given: Mapping[str, Value], parameters: Sequence[Parameter]) -> Configuration:
    """A configuration with the defaults of what it leaves out, without what is inactive.

    >>> method = choice("method", ["none", "ngram"])
    >>> completed({"method": "ngram"}, [integer("guesses", 1, 7, default=3, when={"method": "ngram"}), method])
    {'method': 'ngram', 'guesses': 3}
    """
    result: Configuration = {}
    left = list(parameters)
    while True:
        active = [parameter for parameter in left if parameter.is_active(result)]
        if not active:
            return result
        for parameter in active:
            result[parameter.name] = given.get(parameter.name, parameter.default)
            left.remove(parameter)


def _parameter(name: str, domain: Mapping[str, Any], default: Value | _Absent, when: Condition) -> Parameter:
    if not isinstance(name, str) or not name:
        raise UsageError(f"a parameter's name is a text, got {name!r}")
    assert not isinstance(default, _Absent)
    conditions = {parent: tuple(plain_value(value) for value in _listed(values)) for parent, values in when.items()}
    value = plain_value(default)
    if numbers := domain.get("int") or domain.get("real"):
        low, high = numbers["low"], numbers["high"]
        if low > high or ("scale" in numbers and low <= 0):
            log = " and, with log, from above 0" if "scale" in numbers else ""
            raise UsageError(f"'{name}' goes from low to high{log}; got {low} to {high}")
        fits = type(value) in (int, float) and low <= value <= high
    else:
        fits = any(type(value) is type(one) and value == one for one in domain.get("choice", [False, True]))
    if value is not None and not fits:
        raise UsageError(f"the default of '{name}' is none of its values, got {default!r}")
    return Parameter(name, domain, value, conditions)


def _listed(values: Value | Sequence[Value]) -> Sequence[Value]:
    return values if isinstance(values, Sequence) and not isinstance(values, str) else [values]


def plain_value(value: Any) -> Value:
    """The value as Python's own type, also of a NumPy scalar."""
    if hasattr(value, "item") and not isinstance(value, (bool, int, float, str)):
        value = value.item()
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, float) and math.isfinite(value):
        return float(value)
    raise UsageError(f"a value is a bool, a finite number, a text or None (no flag), got {value!r}")


def study_text(value: Any) -> str:
    """What a study file says, as YAML in one line: JSON but for `None`, which is the plain word `engine`.

    >>> study_text({"choice": [None, "engine", "${HOME}"]})
    '{"choice": [engine, "engine", "$${HOME}"]}'
    """
    if value is None:
        return "engine"
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{_quoted(key)}: {study_text(item)}" for key, item in value.items()) + "}"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(map(study_text, value)) + "]"
    return _quoted(value.replace("${", "$${")) if isinstance(value, str) else json.dumps(value, allow_nan=False)


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
