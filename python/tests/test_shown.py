# SPDX-License-Identifier: Apache-2.0
"""Data frames, and what notebooks show."""

from __future__ import annotations

import re
import sys
import urllib.parse
import xml.etree.ElementTree

import pytest

import servetune as st
from servetune import _html
from servetune._frames import columns_of
from support import rate, study


def some_trials() -> list[st.Trial]:
    return [
        st.Trial(0, {"why": "x", "a": 1, "m": None}, "first", {"m": st.Metric(2.0), "n": st.Metric(3.0)}),
        st.Trial(1, {"why": 5, "a": 2}, "second", failure=st.Failure("hung", "no answer")),
        st.Trial(2, {"why": "y"}, "third"),
    ]


def test_a_row_for_each_trial() -> None:
    assert columns_of(some_trials()) == {
        "trial": [0, 1, 2],
        "parameter.why": ["x", 5, "y"],
        "a": [1, 2, None],
        "m": [None, None, None],
        "metric.m": [2.0, None, None],
        "n": [3.0, None, None],
        "state": ["measured", "failed", "open"],
        "failure": [None, "hung", None],
        "message": [None, "no answer", None],
        "why": ["first", "second", "third"],
    }


def test_frames_of_pandas() -> None:
    pytest.importorskip("pandas")
    with study(trials=12) as s:
        s.optimize(rate)
        frame = s.to_pandas()
    assert list(frame.columns[:5]) == ["trial", "backend", "seqs", "tokens", "tokens_per_second"]
    assert len(frame) == 12 and frame["tokens_per_second"].max() > 11000


def test_frames_of_polars() -> None:
    polars = pytest.importorskip("polars")
    with st.Study([st.choice("p", [1, "a", None]), st.flag("f")], maximize="m", strategy="exhaustive", trials=20) as s:
        while trial := s.ask():
            s.tell(trial, 1) if trial.configuration["p"] != "a" else s.tell(trial, failed="oom")
        frame = s.to_polars()
    assert frame.schema["p"] == polars.String and frame.schema["m"] == polars.Float64
    assert set(zip(frame["p"], frame["failure"])) == {("1", None), ("a", "out_of_memory"), (None, None)}


def test_a_missing_library_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("pandas", "polars"):
        monkeypatch.setitem(sys.modules, name, None)
    with study() as s:
        with pytest.raises(st.UsageError, match="to_pandas needs pandas: pip install pandas"):
            s.to_pandas()
        with pytest.raises(st.UsageError, match="to_polars needs polars: pip install polars"):
            s.to_polars()


def test_a_notebook_shows_tables() -> None:
    with st.Study([st.choice("p", ["<b>", "&"])], maximize="m<i>", trials=8) as s:
        found = s.optimize(lambda flags: 1 + len(flags["p"]))
        page = s._repr_html_()
    assert found._repr_html_() in page
    assert "&lt;b&gt;" in page and "&amp;" in page and "m&lt;i&gt;" in page
    assert "<b>" not in page.replace(f"<b>{found.headline}.</b>", "") and "<i>" not in page
    xml.etree.ElementTree.fromstring(f"<div>{page}</div>")


def test_a_long_table_is_cut() -> None:
    trials = [st.Trial(i, {"a": i}, "", {"m": st.Metric(float(i))}) for i in range(120)]
    with study() as s:
        page = _html.study_html(trials, s.recommendation(), "")
    assert "The last 50 of 120 trials" in page and page.count("<tr>") < 60


def test_the_picture_of_a_study_with_a_journal_is_a_whole_drawing() -> None:
    with study(journal="j") as s:
        s.optimize(rate)
        page = s._repr_html_()
        trials = len(s.trials)
    source = re.search(r'src="data:image/svg\+xml,([^"]+)"', page)
    assert source is not None
    drawing = xml.etree.ElementTree.fromstring(urllib.parse.unquote(source[1]))
    assert drawing.tag == "{http://www.w3.org/2000/svg}svg"
    marks = [path for path in drawing.iter("{http://www.w3.org/2000/svg}path") if "mark" in path.get("class", "")]
    assert len(marks) == trials
    assert _html.path_image("<html></html>") == ""
