# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import servetune as st
from servetune import _program
from support import children, environment, package, rate, script, study

real = _program.find()


@pytest.fixture(autouse=True)
def nothing_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_program, "_checked", set())


def stand_in(file: Path, lines: str) -> Path:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("#!/bin/sh\n" + lines + "\n")
    file.chmod(0o755)
    return file


def test_the_version_is_the_librarys() -> None:
    header = package.parent / "include/servetune/version.hpp"
    if not header.is_file():
        pytest.skip("skipped: no header beside this package")
    found = re.search(r'library_version = "([^"]+)"', header.read_text())
    assert found is not None and st.__version__ == found[1]


def test_the_program_is_found_in_order(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    named = stand_in(folder / "named/autotune", "true")
    on_path = stand_in(folder / "path/autotune", "true")
    script_of_ours = stand_in(folder / "scripts/autotune", "exec python3 -c 'from servetune._scripts import autotune'")
    copy = folder / "copy"
    shutil.copytree(package / "servetune", copy / "servetune", ignore=shutil.ignore_patterns("bin", "share"))
    monkeypatch.setattr(_program, "__file__", str(copy / "servetune/_program.py"))
    monkeypatch.setenv("PATH", f"{script_of_ours.parent}:/nowhere:{on_path.parent}")
    monkeypatch.setenv("SERVETUNE_AUTOTUNE", str(named))
    assert _program.find() == str(named)
    monkeypatch.delenv("SERVETUNE_AUTOTUNE")
    assert _program.find() == str(on_path)
    inside = stand_in(copy / "servetune/bin/autotune", "true")
    assert _program.find() == str(inside)
    inside.unlink()
    on_path.unlink()
    with pytest.raises(
        st.ProgramMissing, match="neither at .*servetune/bin/autotune nor on the PATH: install .* SERVETUNE_AUTOTUNE"
    ):
        study()
    monkeypatch.setenv("SERVETUNE_AUTOTUNE", "/nowhere/autotune")
    with pytest.raises(st.ProgramMissing, match="SERVETUNE_AUTOTUNE names /nowhere/autotune"):
        study()


def test_another_version_is_refused_with_both_named(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for lines, said in [
        ("echo autotune 9.8.7", f"{st.__version__}, but the program .*/autotune is of version 9.8.7"),
        ("echo hello >&2; exit 1", "does not say its version \\(hello\\)"),
        ("echo one two three", "does not say its version"),
    ]:
        monkeypatch.setenv("SERVETUNE_AUTOTUNE", str(stand_in(folder / "autotune", lines)))
        with pytest.raises(st.VersionMismatch, match=said):
            study()


def test_what_is_no_program_is_told(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = folder / "autotune"
    file.write_text("this is text")
    file.chmod(0o755)
    monkeypatch.setenv("SERVETUNE_AUTOTUNE", str(file))
    with pytest.raises(st.IoError, match="autotune cannot be started: Exec format error"):
        study()


def test_a_program_that_ends_at_once_is_told_with_its_words(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lines = f'[ "$1" = --version ] && {{ echo autotune {st.__version__}; exit; }}\necho "no such library" >&2; exit 127'
    monkeypatch.setenv("SERVETUNE_AUTOTUNE", str(stand_in(folder / "autotune", lines)))
    before = children(os.getpid())
    with pytest.raises(st.IoError, match="exit code 127.*no such library"):
        study()
    assert children(os.getpid()) == before


def test_messages_for_people_go_to_the_log(
    folder: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    lines = f'[ "$1" = --version ] && exec {real} --version\necho "autotune: take care" >&2\nexec {real} "$@"'
    monkeypatch.setenv("SERVETUNE_AUTOTUNE", str(stand_in(folder / "autotune", lines)))
    with study() as s:
        s.ask()
    assert [(record.name, record.message) for record in caplog.records] == [("servetune", "autotune: take care")]


def test_no_file_is_left_and_none_is_needed(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "tmp").mkdir()
    for temporary in [str(folder / "tmp"), "/nowhere"]:
        monkeypatch.setenv("TMPDIR", temporary)
        with study() as s:
            s.optimize(rate)
            assert os.listdir(folder) == ["tmp"] and os.listdir(folder / "tmp") == []


def test_without_files_in_memory_the_working_folder_has_one_for_a_moment(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delattr(os, "memfd_create")
    with study() as s:
        assert os.listdir(folder) == []
        assert s.optimize(rate).verdict == "recommended"
    with pytest.raises(st.UsageError):
        study(rules=["nothing >= 1"])
    assert os.listdir(folder) == []
    os.mkdir("gone")
    os.chdir("gone")
    os.rmdir(folder / "gone")
    with pytest.raises((st.IoError, FileNotFoundError)):
        study()
    os.chdir(folder)


def test_the_console_scripts_become_the_program(folder: Path) -> None:
    run = f"import sys; sys.path.insert(0, {str(package)!r}); from servetune import _scripts; sys.argv = sys.argv[1:]; _scripts.{{}}()"
    ran = subprocess.run(
        [sys.executable, "-c", run.format("autotune"), "autotune", "--version"], capture_output=True, text=True
    )
    assert ran.stdout.startswith(f"autotune {st.__version__}\n")
    shown = folder / "bin/simengine"
    shown.parent.mkdir()
    shutil.copy(shutil.which("env") or "/usr/bin/env", folder / "bin/autotune")
    stand_in(shown, 'echo "$@"')
    named = environment | {"SERVETUNE_AUTOTUNE": str(folder / "bin/autotune")}
    words = [sys.executable, "-c", run.format("simengine"), "vllm", "serve", "a b"]
    assert subprocess.run(words, env=named, capture_output=True, text=True).stdout == "serve a b\n"
    shown.unlink()
    refused = subprocess.run(words, env=named, capture_output=True, text=True)
    assert refused.returncode == 1 and refused.stderr.startswith(
        "simengine: the environment variable SERVETUNE_AUTOTUNE"
    )


@pytest.mark.parametrize("name", ["export_optuna", "optuna", "ray"])
def test_a_module_of_an_extra_says_how_to_get_it(folder: Path, name: str) -> None:
    extra = name.rpartition("_")[2]
    (folder / f"{extra}.py").write_text("raise ModuleNotFoundError('No such module')")
    named = environment | {"PYTHONPATH": f"{folder}:{package}"}
    ran = subprocess.run([sys.executable, "-m", f"servetune.{name}"], env=named, capture_output=True, text=True)
    assert ran.returncode == 1 and f"pip install 'servetune[{extra}]'" in ran.stderr.splitlines()[-1]


def test_the_example_runs(folder: Path) -> None:
    ran = subprocess.run(
        [sys.executable, str(package / "examples/first_study.py")], env=environment, capture_output=True, text=True
    )
    assert (ran.returncode, ran.stderr) == (0, "")
    assert ran.stdout.startswith("backend = flashinfer, seqs = 1024, tokens = 32768: +95.14 % over the default")


def test_the_import_is_quick_and_brings_no_large_library(folder: Path) -> None:
    text = """
        import sys, time
        began = time.process_time()
        import servetune
        seconds = time.process_time() - began
        large = {"numpy", "pandas", "polars", "asyncio", "logging", "sqlite3", "http", "urllib.request"} & set(sys.modules)
        print(seconds, sorted(large))
    """
    words = script(text, folder)
    words[1:1] = ["-S"]  # without what this machine's site-packages import by themselves
    said = [subprocess.run(words, env=environment, capture_output=True, text=True).stdout for _ in range(5)]
    assert all(line.endswith("[]\n") for line in said)
    assert min(float(line.split()[0]) for line in said) < 0.1
