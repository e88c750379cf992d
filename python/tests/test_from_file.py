# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import os
import shutil
import signal
import subprocess
from pathlib import Path

import pytest

import servetune as st
from support import children, comes_true, environment, lives, script

space = """
study: kept
space:
  cache: {choice: [none, small, large]}
  ways: {int: {low: 1, high: 16, scale: log2}, default: 4, when: {cache: [small, large]}}
  threads: {int: {low: 1, high: 64, scale: log2}, default: 8}
objective: {maximize: rate}
strategy: bayesian
budget: {trials: 12}
"""

replayed = """
study: replayed
space: {a: [1, 2, 3], b: [x, y]}
objective: {maximize: total_tokens_per_second}
strategy: exhaustive
evaluator: {replay: {table: t.csv, delay: DELAY}}
"""


def measure(flags: st.Configuration) -> float:
    return float(flags["threads"] ** 0.3) * {"none": 1, "small": 1.2, "large": 1.5}[str(flags["cache"])]


def write_replayed(delay: str = "0s") -> None:
    Path("study.yaml").write_text(replayed.replace("DELAY", delay))
    rows = [f"{a},{b},ok,{100 * a + len(b)}" for a in (1, 2, 3) for b in ("x", "y")]
    Path("t.csv").write_text("\n".join(["a,b,status,total_tokens_per_second", *rows]) + "\n")


def test_ask_and_tell_over_a_study_file(folder: Path) -> None:
    Path("space.yaml").write_text(space)
    with st.Study.from_file("space.yaml", journal="j") as s:
        os.mkdir("elsewhere")
        os.chdir("elsewhere")
        found = s.optimize(measure)
        assert len(s.trials) == 12
    assert found.configuration is not None and found.configuration["cache"] == "large"
    assert sorted(os.listdir(folder)) == ["elsewhere", "j", "space.yaml"] and os.listdir() == []
    with st.Study.from_file(folder / "space.yaml", strategy="random") as s:
        s.tell({"cache": "small"}, 3)
        assert s.trials[0].configuration == {"cache": "small"}
        with pytest.raises(st.UsageError, match="takes no suggestions"):
            s.suggest({"threads": 4})


def test_a_file_that_cannot_be_read_is_told() -> None:
    with pytest.raises(st.IoError, match="there is no study file none.yaml"):
        st.Study.from_file("none.yaml")
    Path("space.yaml").write_text(space.replace("threads:", "threads"))
    with st.Study.from_file("space.yaml") as s, pytest.raises(st.UsageError, match="space.yaml"):
        s.ask()


def test_run_measures_with_the_files_own_evaluator(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    write_replayed()
    with st.Study.from_file("study.yaml") as s:
        found = s.run()
        assert found.verdict == "recommended" and found.configuration == {"a": 3, "b": "x"}
        assert found.command is None
        assert len(s.trials) >= 6 and (folder / "replayed/report.json").is_file()
        assert "data:image/svg+xml" in s._repr_html_()
    assert "Recommended" in capfd.readouterr().out
    with st.Study.from_file("study.yaml", journal="other") as s:
        s.run(trials=2)
        assert len(s.trials) == 2 and (folder / "other/study.db").is_file()
    with st.Study([st.flag("f")], maximize="m") as s, pytest.raises(st.UsageError, match="has no evaluator"):
        s.run()
    Path("study.yaml").write_text(space)
    with st.Study.from_file("study.yaml") as s, pytest.raises(st.UsageError, match="its reason is above"):
        s.run()


def test_a_run_stops_with_ctrl_c_and_with_its_parent(folder: Path) -> None:
    write_replayed("300ms")
    text = """
        import servetune as st
        s = st.Study.from_file("study.yaml")
        try:
            s.run()
        except KeyboardInterrupt:
            print("interrupted", len(s.trials) > 0, flush=True)
    """

    def running(parent: int) -> list[int]:
        return [child for child in children(parent) if b"\0run\0" in Path("/proc", str(child), "cmdline").read_bytes()]

    for how, said in [(signal.SIGINT, True), (signal.SIGKILL, False)]:
        with subprocess.Popen(script(text, folder), env=environment, stdout=-1, text=True) as process:
            journal = Path("replayed/study.db-wal")
            assert comes_true(
                lambda: journal.exists() and journal.stat().st_size > 0 and len(running(process.pid)) == 1
            )
            [child] = running(process.pid)
            process.send_signal(how)
            out = process.communicate(timeout=30)[0]
        assert ("interrupted True" in out) == said
        assert comes_true(lambda: not lives(child))
        shutil.rmtree("replayed")
