# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import gc
import os
import threading
import weakref

import pytest

import servetune as st
from support import children, rate, study

studies = int(os.environ.get("SERVETUNE_TEST_STUDIES", "60"))


def open_files() -> set[str]:
    return set(os.listdir("/proc/self/fd"))


def test_studies_leave_no_process_thread_or_file() -> None:
    study().close()
    gc.collect()
    before = len(open_files()), threading.active_count()
    for i in range(studies):
        s = study(journal=f"j{i % 5}" if i % 3 == 0 else None)
        trial = s.ask()
        assert trial is not None
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
        gone = weakref.ref(s)
        assert len(children(os.getpid())) == 1
        del s
        assert gone() is None and children(os.getpid()) == []
    finally:
        gc.enable()
