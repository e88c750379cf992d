# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import os
import random
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from types import FrameType

import pytest

import servetune as st
from support import children, environment, rate, script, study


class Alarm(Exception):
    pass


def raise_alarm(number: int, frame: FrameType | None) -> None:
    raise Alarm


@pytest.fixture
def alarm() -> Iterator[None]:
    """SIGALRM raises until the test ends."""
    before = signal.signal(signal.SIGALRM, raise_alarm)
    yield
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGALRM, before)


def test_a_keyboard_interrupt_leaves_the_trial_open_and_it_comes_again() -> None:
    with study(trials=20) as s:
        s.optimize(rate)
        wanted = s.trials
    measured = 0

    def interrupted(flags: st.Configuration) -> float:
        nonlocal measured
        measured += 1
        if measured % 4 == 0:
            signal.raise_signal(signal.SIGINT)
        return rate(flags)

    with study(trials=20, journal="j") as s:
        interrupts = 0
        while s.stop_reason is None:
            try:
                s.optimize(interrupted)
            except KeyboardInterrupt:
                interrupts += 1
                assert s.trials[-1].state == "open"
        assert interrupts == 5
        assert [(t.configuration, t.metrics) for t in s.trials] == [(t.configuration, t.metrics) for t in wanted]


def raise_inside(number: int, frame: FrameType | None) -> None:
    """Raises wherever the module works, not between the lines of a test."""
    while frame is not None:
        if "/servetune/" in frame.f_code.co_filename:
            raise Alarm
        frame = frame.f_back


def test_exceptions_at_any_moment_do_not_part_lines_from_answers(alarm: None) -> None:
    """A signal's handler raises at random moments of ask and tell; the study goes on as if it had not."""

    def new_study() -> st.Study:
        return st.Study([st.real("x", 0, 1)], maximize="m", trials=400, strategy="random")

    def measure(flags: st.Configuration) -> float:
        return 1 + float(flags["x"])

    with new_study() as s:
        s.optimize(measure)
        wanted = s.trials
    signal.signal(signal.SIGALRM, raise_inside)
    rng = random.Random(1)
    alarms = 0
    with new_study() as s:
        while s.stop_reason is None:
            try:
                signal.setitimer(signal.ITIMER_REAL, rng.uniform(0.00002, 0.002))
                s.optimize(measure)
            except Alarm:
                alarms += 1
        signal.setitimer(signal.ITIMER_REAL, 0)
        assert s.trials == wanted
    assert alarms > 10


def test_an_interrupted_ask_comes_again(alarm: None) -> None:
    with study() as s:
        os.kill(children(os.getpid())[0], signal.SIGSTOP)
        signal.setitimer(signal.ITIMER_REAL, 0.1)
        with pytest.raises(Alarm):
            s.ask()
        os.kill(children(os.getpid())[0], signal.SIGCONT)
        first, second = s.ask(), s.ask()
        assert first is not None and first.id == 0
        assert second is not None and second.id == 1


def test_ctrl_c_reaches_python_only(folder: Path) -> None:
    """The signal goes to the process group, as a terminal sends it."""
    text = """
        import time
        from support import rate, study
        s = study(journal="j")
        def measure(flags):
            if len(s.trials) == 3:
                print("measuring", flush=True)
                time.sleep(60)
            return rate(flags)
        try:
            s.optimize(measure)
        except KeyboardInterrupt:
            print([trial.state for trial in s.trials], flush=True)
        print(s.optimize(rate).configuration["seqs"])
    """
    with subprocess.Popen(
        script(text, folder), env=environment, stdout=-1, text=True, start_new_session=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "measuring\n"
        time.sleep(0.1)
        os.killpg(process.pid, signal.SIGINT)
        assert process.stdout.read() == "['measured', 'measured', 'open']\n1024\n"
    assert process.returncode == 0


def test_a_program_that_hangs_can_be_interrupted_and_closed(alarm: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("servetune._conversation._patience_seconds", 0.5)
    s = study()
    [child] = children(os.getpid())
    os.kill(child, signal.SIGSTOP)
    signal.setitimer(signal.ITIMER_REAL, 0.1)
    with pytest.raises(Alarm):
        s.optimize(rate)
    began = time.monotonic()
    s.close()
    assert time.monotonic() - began < 5
    assert children(os.getpid()) == []
