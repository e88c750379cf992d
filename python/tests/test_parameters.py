# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest

import servetune as st
from servetune._parameters import completed
from support import asked


class Scalar:
    """Behaves as a NumPy scalar does."""

    def __init__(self, value: Any) -> None:
        self.value = value

    def item(self) -> Any:
        return self.value


awkward = [
    "engine",
    "${HOME}",
    "$${x}",
    "null",
    "true",
    "256",
    "",
    " a ",
    "a: b",
    "- c",
    "# d",
    "é😀",
    '"',
    "'",
    "\\",
    "{[,]}",
    "@",
    "8k",
    "0x10",
    "1e3",
    "~",
    "a\tb",
    "<<",
]


def test_every_value_comes_back_as_it_was_given() -> None:
    values: list[st.Value] = [*awkward, None, True, False, 7, -3, 2**53, 0.1, 1e-05, 1e20, -2.5]
    parameter = st.choice("p", values)
    with st.Study([parameter], maximize="m", strategy="exhaustive", trials=200) as study:
        seen: list[st.Value] = []
        while len(seen) < len(values) and (trial := study.ask()):
            seen.append(trial.configuration["p"])
            study.tell(trial, 1)
    assert sorted(map(repr, seen)) == sorted(map(repr, values))


@pytest.mark.parametrize("name", ["a: b", "engine", "${HOME}", "é", "true", "1", "a-b.c", "a b", "#"])
def test_a_name_that_is_awkward_in_yaml_is_taken_or_refused_in_words(name: str) -> None:
    try:
        with st.Study([st.choice(name, ["x", "y"])], maximize="m") as study:
            assert study.ask() is not None
            assert study.trials[0].configuration == {name: "x"}
    except st.UsageError as error:
        assert name in str(error)


def test_defaults_and_no_flag() -> None:
    made = [
        st.choice("a", ["x", None, "y"]),
        st.choice("b", ["x", "y"], default="y", ordered=True),
        st.integer("c", 1, 9, step=2),
        st.integer("d", 1, 1000, log=True, default=None),
        st.real("e", 0.001, 1, log=True, default=0.1),
        st.flag("f", default=True),
        st.flag("g"),
    ]
    with st.Study(made, maximize="m") as study:
        trial = asked(study)
    assert trial.configuration == {"a": "x", "b": "y", "c": 1, "d": None, "e": 0.1, "f": True, "g": False}
    assert type(trial.configuration["c"]) is int and type(trial.configuration["e"]) is float


def test_scalars_of_numpy_are_numbers() -> None:
    parameter = st.integer("n", Scalar(1), Scalar(8), default=Scalar(2))  # type: ignore[arg-type]
    assert parameter.entry() == {"int": {"low": 1, "high": 8}, "default": 2}


def test_conditions() -> None:
    method = st.choice("method", ["none", "ngram", "draft"])
    guesses = st.integer("guesses", 1, 7, default=3, when={"method": ["ngram", "draft"]})
    window = st.integer("window", 1, 4, when={"method": "ngram", "guesses": (3, 4)})
    with st.Study([window, guesses, method], maximize="m", strategy="random", trials=40, seed=3) as study:
        seen: list[st.Configuration] = []
        while trial := study.ask():
            seen.append(trial.configuration)
            study.tell(trial, 1)
    assert {"method": "none"} in seen
    for configuration in seen:
        assert ("guesses" in configuration) == (configuration["method"] != "none")
        assert completed(configuration, [window, guesses, method]) == configuration
    assert any("window" in configuration for configuration in seen)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: st.choice("a", []), "the choice 'a' needs a list of values"),
        (lambda: st.choice("a", "xyz"), "the choice 'a' needs a list of values"),
        (lambda: st.choice("", ["x"]), "a parameter's name is a text"),
        (lambda: st.choice("a", [float("nan")]), "a value is a bool, a finite number"),
        (lambda: st.choice("a", [Fraction(1, 2)]), "got Fraction"),  # type: ignore[list-item]
        (lambda: st.integer("a", 1, 8, log=True, log2=True), "has one scale"),
        (lambda: st.Study([st.flag("a"), st.flag("a")], maximize="m"), "several parameters are called 'a'"),
        (lambda: st.Study([st.flag("a")]), "objective"),
        (lambda: st.Study([], maximize="m"), "a list of choice, integer, real and flag, got []"),
        (lambda: st.Study({"a": [1, 2]}, maximize="m"), "got {'a': [1, 2]}"),  # type: ignore[dict-item]
        (lambda: st.Study("abc", maximize="m"), "got 'abc'"),  # type: ignore[arg-type]
        (lambda: st.Study(st.flag("a"), maximize="m"), "flag, got Parameter("),  # type: ignore[arg-type]
        (lambda: st.integer("a", 8, 1), "'a' goes from low to high; got 8 to 1"),
        (lambda: st.real("a", 0, 8, log=True), "and, with log, from above 0; got 0 to 8"),
        (lambda: st.integer("a", 1, 8, default=9), "the default of 'a' is none of its values, got 9"),
        (lambda: st.flag("a", default=3), "the default of 'a'"),  # type: ignore[arg-type]
        (lambda: st.Study([st.integer("a", 1, 8)], rules=["b >= 1"], maximize="m"), "'rules[0]"),
        (lambda: st.Study([st.integer("a", 1, 8)], rules=["a >="], maximize="m"), "'rules[0]"),
        (lambda: st.Study([st.integer("a", 1, 8)], rules="a >= 2", maximize="m"), "not feasible"),
        (lambda: st.Study([st.integer("a", 1, 8)], limits=["m"], maximize="m"), "'limits[0]'"),
        (lambda: st.Study([st.flag("a", when={"b": 1})], maximize="m"), "'b' is not a parameter"),
        (lambda: st.Study([st.choice("b", [1, 2]), st.flag("a", when={"b": 7})], maximize="m"), "'7' is no value"),
        (lambda: st.Study([st.flag("a")], maximize="m", strategy="clever"), "clever"),
        (lambda: st.Study([st.flag("a")], maximize="m", trials=0), "'trials'"),
        (lambda: st.Study([st.flag("a")], maximize="m", knowledge=["none.csv"]), "none.csv"),
    ],
)
def test_what_cannot_be_is_a_usage_error(make: Any, message: str) -> None:
    with pytest.raises(st.UsageError) as error:
        make()
    assert message in str(error.value)
    assert "/proc" not in str(error.value) and len(error.traceback) < 6
