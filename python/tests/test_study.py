# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import datetime
import math
from collections.abc import Callable
from pathlib import Path

import pytest

import servetune as st
from support import asked, parameters, rate, study

best = {"backend": "flashinfer", "seqs": 1024, "tokens": 32768}


def test_optimize_finds_the_best() -> None:
    with study() as s:
        found = s.optimize(rate)
        assert s.stop_reason == "trials_spent"
        assert 20 <= len(s.trials) <= 25 and all(trial.state == "measured" for trial in s.trials)
    assert found.verdict == "recommended" and not found.keep_default
    assert found.configuration == best
    assert found.gain is not None and found.gain.low is not None and found.gain.high is not None
    assert found.gain.low <= found.gain.value <= found.gain.high
    assert found.gain.value == pytest.approx(rate(best) / rate(found.default.configuration) - 1)
    assert found.metrics["tokens_per_second"] == pytest.approx(rate(best))
    assert str(found).startswith("backend = flashinfer, seqs = 1024, tokens = 32768: +95.14 % over the default (99 %: ")


def test_trials_are_shown_and_called_back(capsys: pytest.CaptureFixture[str]) -> None:
    for workers in [1, 3]:
        seen: list[st.Trial] = []
        with study(trials=9) as s:
            s.optimize(rate, workers=workers, callback=seen.append, progress=True)
            assert sorted(seen, key=lambda trial: trial.id) == s.trials
            assert repr(s) == "<servetune.Study: 3 parameters, 9 trials here, not kept>"
        lines = capsys.readouterr().err.splitlines()
        assert len(lines) == 9
        assert lines[0] == "trial 0: tokens_per_second 6451.79 (backend = flash_attn, seqs = 256, tokens = 8192)"
    with study(trials=2) as s:
        s.optimize(lambda flags: st.Failed("oom", "no room"), progress=True)
        assert capsys.readouterr().err.startswith("trial 0: out_of_memory no room (backend = ")
    with study(trials=9) as s, pytest.raises(ZeroDivisionError):
        s.optimize(rate, callback=lambda trial: 1 / 0)
    assert capsys.readouterr().err == ""  # no terminal


def test_ask_and_tell_are_what_optimize_does() -> None:
    with study(seed=7, strategy="random") as s:
        s.optimize(rate)
        wanted = s.trials
    with study(seed=7, strategy="random") as s:
        while trial := s.ask():
            s.tell(trial, {"tokens_per_second": st.Metric(rate(trial.configuration))})
        assert s.trials == wanted
    with study(seed=8, strategy="random") as s:
        s.optimize(rate)
        assert s.trials != wanted


def test_an_ask_that_has_to_wait_gives_nothing() -> None:
    with study() as s:
        open_trials = []
        while trial := s.ask():
            open_trials.append(trial)
        assert s.stop_reason is None
        assert 1 <= len(open_trials) < 25
        with pytest.raises(st.UsageError, match="waits for trials"):
            s.optimize(rate)
        for trial in reversed(open_trials):
            assert s.tell(trial.id, rate(trial.configuration)) == trial.id
        assert s.optimize(rate).configuration == best


def test_failures_are_told_raised_or_returned() -> None:
    with study() as s:
        tells: list[Callable[[st.Trial], int]] = [
            lambda t: s.tell(t, failed="oom", message="no room"),
            lambda t: s.tell(t, st.Failed("not_ready_in_time")),
            lambda t: s.tell(t, math.nan),
            lambda t: s.tell(t, {"tokens_per_second": math.inf}),
            lambda t: s.tell(t, st.Failure("hung")),
        ]
        for tell in tells:
            trial = asked(s)
            tell(trial)
        failures = [trial.failure for trial in s.trials]
    assert failures[:2] == [st.Failure("out_of_memory", "no room"), st.Failure("not_ready_in_time")]
    assert [failure.kind for failure in failures[2:] if failure] == ["invalid_result", "invalid_result", "hung"]


class OutOfMemoryError(RuntimeError):
    pass


def test_exceptions_of_the_given_kinds_are_failed_trials() -> None:
    def measure(flags: st.Configuration) -> st.Outcome:
        if flags["seqs"] == 1024:
            raise OutOfMemoryError("no room")
        if flags["seqs"] == 512:
            raise st.Failed("crashed_under_load", "it died")
        if flags["seqs"] == 64:
            return st.Failed("oom")
        return rate(flags)

    with study(trials=20) as s:
        with pytest.raises(OutOfMemoryError):
            s.optimize(measure)
        assert s.trials[-1].state == "open"
        found = s.optimize(measure, catch=OutOfMemoryError)
        trials = s.trials
    assert found.configuration is not None and found.configuration["seqs"] in (128, 256)
    assert [trial.id for trial in trials] == list(range(len(trials))) and len(trials) > 13
    for trial in trials:
        kind = {1024: "out_of_memory", 512: "crashed_under_load", 64: "out_of_memory"}.get(trial.configuration["seqs"])
        assert (trial.failure.kind if trial.failure else None) == kind


def test_what_cannot_be_told_changes_nothing() -> None:
    with study() as s:
        trial = asked(s)
        for told in ["812", {"tokens": 3}, {}, None, [1], -3, 0, {"tokens_per_second": "1"}]:
            with pytest.raises(st.UsageError):
                s.tell(trial, told)  # type: ignore[arg-type]
        with pytest.raises(st.UsageError, match="needs an outcome .* got both"):
            s.tell(trial, 3, failed="oom")
        with pytest.raises(st.UsageError, match="needs an outcome .* got none"):
            s.tell(trial, None)
        with pytest.raises(st.UsageError, match="known: "):
            s.tell(trial, failed="out_of_memoyr")
        with pytest.raises(st.UsageError, match="no trial 7"):
            s.tell(7, 3)
        assert s.trials == [trial]
        s.tell(trial, 3)
        with pytest.raises(st.UsageError, match="already told"):
            s.tell(trial, 3)


def test_what_was_measured_elsewhere_is_told_by_its_configuration() -> None:
    with study() as s:
        number = s.tell({"seqs": 512}, 9000)
        told = {trial.id: trial for trial in s.trials}
        assert told[number].configuration == {"backend": "flash_attn", "seqs": 512, "tokens": 8192}
        first = asked(s)
        assert first.id == 0
        assert s.tell(first.configuration, 8000) == 0
        assert s.recommendation().verdict == "inconclusive"
        with pytest.raises(st.UsageError, match="seqs"):
            s.tell({"seqs": 500}, 1)


def test_a_proposal_is_an_open_trial() -> None:
    with study() as s:
        first = asked(s)
        mine = s.propose({"seqs": 512})
        assert mine.id == 1 and mine.configuration == {"backend": "flash_attn", "seqs": 512, "tokens": 8192}
        assert s.tell(mine, 8000) == 1 and s.tell(first, 7000) == 0
        with pytest.raises(st.UsageError, match="tokens >= seqs"):
            s.propose({"seqs": 1024, "tokens": 512})
        assert [trial.state for trial in s.trials] == ["measured", "measured"]


def test_a_suggestion_is_tried() -> None:
    with study() as s:
        assert s.suggest({"seqs": 1024}) == 1
        assert s.suggest({"seqs": 512, "backend": "flashinfer"}) == 2
        with pytest.raises(st.UsageError, match="tokens >= seqs"):
            s.suggest({"seqs": 1024, "tokens": 512})
        s.optimize(rate)
        assert any(trial.why.startswith("suggested") for trial in s.trials)


def test_limits_and_several_goals() -> None:
    def measure(flags: st.Configuration) -> dict[str, float]:
        wait = 0.1 + flags["seqs"] / 2000 + flags["tokens"] / 20000
        return {"rate": rate(flags), "wait": wait}

    with st.Study(parameters(), maximize="rate", limits=["wait <= 0.7"], trials=20) as s:
        found = s.optimize(measure)
        assert found.configuration is not None and measure(found.configuration)["wait"] <= 0.7
    with st.Study(parameters(), maximize=["rate"], minimize="wait", trials=20) as s:
        found = s.optimize(measure)
    assert len(found.front) > 2
    rates = [point.estimates["rate"].value for point in found.front]
    waits = [point.estimates["wait"].value for point in found.front]
    assert rates == sorted(rates, reverse=True) and waits == sorted(waits, reverse=True)


def test_where_nothing_passes_nothing_is_recommended() -> None:
    with study(trials=8) as s:
        empty = s.recommendation()
        assert empty.verdict == "nothing_passes" and empty.configuration is None and empty.gain is None
        found = s.optimize(lambda flags: st.Failed("unsupported"))
        assert found.verdict == "nothing_passes"
        assert str(found).startswith("Nothing can be recommended: ")
        assert "unsupported" in s._repr_html_()


def test_figures_below_zero_are_compared_by_differences() -> None:
    with st.Study([st.integer("x", 0, 20)], minimize="loss", trials=20) as s:
        found = s.optimize(lambda flags: (flags["x"] - 13) ** 2 - 50)
    assert found.compared_by == "differences" and found.configuration == {"x": 13}
    assert str(found).startswith("x = 13: +169 over the default")


def test_a_deadline_ends_the_search() -> None:
    def measure(flags: st.Configuration) -> float:
        import time

        time.sleep(0.1)
        return rate(flags)

    soon = datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(seconds=1.5)
    for deadline in [1.5, datetime.timedelta(seconds=1.5), soon]:
        with study(deadline=deadline) as s:
            s.optimize(measure)
            assert s.stop_reason in ("wall_clock_spent", "trials_spent")  # the trials that there was time for
            assert len(s.trials) < 25


def test_knowledge_noise_gain_and_rules() -> None:
    rows = [
        "backend,seqs,tokens,status,tokens_per_second",
        "flashinfer,1024,32768,ok,12600",
        "flash_attn,256,8192,ok,6400",
    ]
    Path("old.csv").write_text("\n".join(rows) + "\n")
    with study(
        knowledge=["old.csv"],
        noise_cv=0.05,
        min_gain=0.02,
        rules=["tokens >= seqs", {"forbid": {"backend": "flash_attn", "seqs": [64, 128]}, "because": "slow"}],
        trials=12,
    ) as s:
        found = s.optimize(rate)
        trials = s.trials
    assert found.configuration == best
    assert trials[1].configuration == best
    assert not any(t.configuration["backend"] == "flash_attn" and t.configuration["seqs"] < 256 for t in trials)


def test_a_closed_study_says_so() -> None:
    s = study()
    s.close()
    s.close()
    with pytest.raises(st.UsageError, match="closed"):
        s.ask()


def test_a_message_that_is_too_long_is_refused() -> None:
    with study() as s:
        trial = asked(s)
        with pytest.raises(st.UsageError, match="at most 1048576 bytes"):
            s.tell(trial, failed="oom", message="x" * 3_000_000)
        many: st.Outcome = {"tokens_per_second": 3.0} | {f"metric_{i}": float(i) for i in range(1000)}
        s.tell(trial, many)
        assert len(s.trials[0].metrics) == 1001
