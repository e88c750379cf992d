# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path

import pytest

import servetune as st
from support import asked, children, comes_true, environment, lives, rate, script, study


def test_a_study_goes_on_where_it_stopped(folder: Path) -> None:
    with study(trials=20) as s:
        wanted = s.optimize(rate)
        trials = s.trials
    for _ in range(4):
        with study(trials=20, journal="tune.db") as s:
            for _ in range(3):
                trial = asked(s)
                s.tell(trial, rate(trial.configuration))
            assert s.ask() is not None  # stays open, and comes again
    with study(trials=20, journal=folder / "tune.db") as s:
        assert [trial.state for trial in s.trials] == ["measured"] * 12 + ["open"]
        assert s.optimize(rate).configuration == wanted.configuration
        assert [(t.configuration, t.metrics) for t in s.trials] == [(t.configuration, t.metrics) for t in trials]
        assert "data:image/svg+xml" in s._repr_html_()


def test_one_process_at_a_time() -> None:
    with study(journal="j") as s:
        s.ask()
        with pytest.raises(st.JournalInUse, match="another process is running this study"):
            study(journal="j")
        assert len(children(os.getpid())) == 1
    study(journal="j").close()


def test_another_study_is_not_mixed_in() -> None:
    study(journal="j").close()
    study(journal="j", trials=99).close()  # a larger budget is the same study
    with pytest.raises(st.UsageError, match="(?s)tokens >= seqs.*accept_changes=True.*another journal") as error:
        study(journal="j", rules=[])
    assert "--" not in str(error.value)
    study(journal="j", rules=[], accept_changes=True).close()


def test_a_journal_that_cannot_be_written() -> None:
    Path("file").touch()
    with pytest.raises(st.IoError, match="cannot make the study's folder"):
        study(journal="file")
    with pytest.raises(OSError, match="cannot make"):
        study(journal="/proc/none")


def test_a_journal_that_vanishes_ends_the_study() -> None:
    with study(journal="j") as s:
        trial = asked(s)
        for name in ("study.db", "study.db-wal", "study.db-shm"):
            Path("j", name).unlink(missing_ok=True)
        for _ in range(2):
            with pytest.raises(st.IoError, match="study.db"):
                s.tell(trial, 3)


def test_a_program_that_is_killed_loses_nothing_that_was_told() -> None:
    with study(journal="j") as s:
        for _ in range(3):
            trial = asked(s)
            s.tell(trial, rate(trial.configuration))
        trial = asked(s)
        os.kill(children(os.getpid())[0], signal.SIGKILL)
        with pytest.raises(st.IoError, match="signal 9 has ended it.*a new Study with the same journal"):
            s.tell(trial, 3)
    with study(journal="j") as s:
        assert s.ask() == trial


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM])
def test_the_program_ends_with_its_parent(folder: Path, how: signal.Signals) -> None:
    text = """
        from support import study
        s = study(journal="j")
        s.ask()
        print("asked", flush=True)
        input()
    """
    with subprocess.Popen(script(text, folder), env=environment, stdin=-1, stdout=-1) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"asked\n"
        [child] = children(process.pid)
        process.send_signal(how)
        process.wait()
    assert comes_true(lambda: not lives(child))
    with study(journal="j") as s:
        assert [trial.state for trial in s.trials] == ["open"]


def test_an_exception_or_the_end_of_python_ends_the_program(folder: Path) -> None:
    text = """
        from support import study, children
        import os
        s = study()
        print(children(os.getpid()), flush=True)
        {}
    """
    for end, code in [("", 0), ("raise SystemExit(3)", 3), ("1 / 0", 1)]:
        ran = subprocess.run(script(text.format(end), folder), env=environment, capture_output=True, text=True)
        assert ran.returncode == code
        [child] = [int(word) for word in ran.stdout.strip(" []\n").split(",")]
        assert not lives(child)
        assert "Exception ignored" not in ran.stderr and ("ZeroDivisionError" in ran.stderr) == (code == 1)
