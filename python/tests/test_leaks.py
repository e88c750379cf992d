# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import gc
import os
import signal
import threading
import weakref

import pytest

import servetune as st
from support import asked, children, comes_true, rate, study

studies = int(os.environ.get("SERVETUNE_TEST_STUDIES", "60"))


def open_files() -> set[str]:
    return set(os.listdir("/proc/self/fd"))


def test_studies_leave_no_process_thread_or_file() -> None:
    study().close()
    gc.collect()
    before = len(open_files()), threading.active_count()
    for i in range(studies):
        s = study(journal=f"j{i % 5}" if i % 3 == 0 else None)
        trial = asked(s)
        if i % 5 != 0:  # a study with a journal that has the trial told refuses no second one
            with pytest.raises(st.UsageError):
                s.tell(trial, "no number")  # type: ignore[arg-type]
        if i % 2:
            s.close()
        del s, trial
        gc.collect()  # of the exceptions, whose frames hold the study
        with pytest.raises(st.UsageError):
            study(rules=["nothing >= 1"])
    gc.collect()
    assert (len(open_files()), threading.active_count(), children(os.getpid())) == (*before, [])


def test_a_study_that_nobody_holds_ends_at_once() -> None:
    gc.disable()
    try:
        s = study()
        s.optimize(rate)
        assert s.optimize(rate).verdict == "recommended"
        s.tell({"seqs": 64}, 1)
        gone = weakref.ref(s)
        assert len(children(os.getpid())) == 1
        del s
        assert gone() is None and children(os.getpid()) == []
    finally:
        gc.enable()


def test_a_program_that_died_holds_nobody() -> None:
    before = threading.active_count()
    s = study()
    [program] = children(os.getpid())
    os.kill(program, signal.SIGKILL)
    with pytest.raises(st.IoError, match="signal 9"):
        s.ask()
    gone = weakref.ref(s)
    del s
    gc.collect()
    assert gone() is None
    assert comes_true(lambda: threading.active_count() == before)


def test_an_open_trial_holds_no_study() -> None:
    gc.disable()
    try:
        s = study()
        assert s.ask() is not None
        gone = weakref.ref(s)
        del s
        assert gone() is None and children(os.getpid()) == []
    finally:
        gc.enable()


def test_a_study_that_its_own_thread_holds_last_ends_too() -> None:
    s = study()
    began, go_on = threading.Event(), threading.Event()

    def work(holder: st.Study) -> None:
        began.set()
        go_on.wait(10)

    assert s._conversation is not None
    s._conversation.post(lambda say, holder=s: work(holder))  # type: ignore[misc]
    began.wait(10)
    del s
    go_on.set()
    assert comes_true(lambda: children(os.getpid()) == [] and threading.active_count() == 1)
