# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import os
import signal
import threading
import time

import pytest

import servetune as st
from support import asked, children, comes_true, rate, study


def test_workers_measure_at_once() -> None:
    now = 0
    most = 0
    lock = threading.Lock()

    def measure(flags: st.Configuration) -> float:
        nonlocal now, most
        with lock:
            now += 1
            most = max(most, now)
        time.sleep(0.02)
        with lock:
            now -= 1
        return rate(flags)

    with study() as s:
        found = s.optimize(measure, workers=4)
        assert 20 <= len(s.trials) <= 25 and all(trial.state == "measured" for trial in s.trials)
        assert s.stop_reason == "trials_spent"
    assert found.configuration is not None and found.configuration["seqs"] == 1024
    assert 2 <= most <= 4
    assert comes_true(lambda: threading.active_count() == 1)
    with study() as s, pytest.raises(st.UsageError, match="workers is at least 1"):
        s.optimize(measure, workers=0)


def test_an_exception_of_a_worker_ends_optimize_and_leaves_the_trials_open() -> None:
    def measure(flags: st.Configuration) -> float:
        if flags["seqs"] == 1024:
            raise RuntimeError("broken")
        return rate(flags)

    with study() as s:
        with pytest.raises(RuntimeError, match="broken"):
            s.optimize(measure, workers=3)
        assert any(trial.state == "open" for trial in s.trials)
        assert s.optimize(rate, workers=3).configuration is not None
        assert all(trial.state == "measured" for trial in s.trials)
        s2 = s.optimize(measure, workers=3, catch=RuntimeError)  # it is over already
        assert s2.verdict == "recommended"


def test_an_interrupt_does_not_wait_for_the_workers() -> None:
    measuring: list[st.Configuration] = []
    go_on = threading.Event()

    def measure(flags: st.Configuration) -> float:
        if flags["seqs"] != 256:
            measuring.append(flags)
            if len(measuring) == 2:
                os.kill(os.getpid(), signal.SIGINT)
            go_on.wait(30)
        return rate(flags)

    with study() as s:
        began = time.monotonic()
        with pytest.raises(KeyboardInterrupt):
            s.optimize(measure, workers=2)
        assert time.monotonic() - began < 20
        opened = [trial.id for trial in s.trials if trial.state == "open"]
        assert len(opened) == 2
        again = asked(s)
        assert again.id in opened
        go_on.set()


def test_threads_ask_and_tell_at_once() -> None:
    problems: list[BaseException] = []
    told: list[int] = []

    def work(s: st.Study) -> None:
        try:
            while s.stop_reason is None:
                if trial := s.ask():
                    assert s.recommendation().verdict
                    told.append(s.tell(trial, rate(trial.configuration)))
        except BaseException as problem:
            problems.append(problem)

    with study(trials=70, strategy="random") as s:
        threads = [threading.Thread(target=work, args=(s,)) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert problems == []
        assert sorted(told) == [trial.id for trial in s.trials] and len(told) >= 40


def test_a_thread_that_waits_hears_that_the_study_was_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("servetune._conversation._patience_seconds", 0.5)
    before = children(os.getpid())
    s = study()
    [child] = set(children(os.getpid())) - set(before)
    os.kill(child, signal.SIGSTOP)
    problems: list[object] = []

    def work() -> None:
        with pytest.raises(st.Error) as error:
            s.ask()
        problems.append(error)

    threads = [threading.Thread(target=work) for _ in range(2)]
    for thread in threads:
        thread.start()
    time.sleep(0.1)
    s.close()
    for thread in threads:
        thread.join(10)
    assert len(problems) == 2
