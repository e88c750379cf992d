# SPDX-License-Identifier: Apache-2.0
"""What several tests need."""

from __future__ import annotations

import math
import os
import sys
import textwrap
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import servetune as st

package = Path(__file__).resolve().parents[1]
environment = os.environ | {"PYTHONPATH": str(package), "PYTHONFAULTHANDLER": "1"}


def parameters() -> list[st.Parameter]:
    return [
        st.choice("backend", ["flash_attn", "flashinfer"]),
        st.integer("seqs", 64, 1024, log2=True, default=256),
        st.integer("tokens", 512, 32768, log2=True, default=8192),
    ]


def rate(flags: st.Configuration) -> float:
    full = 12000 * (1 - math.exp(-flags["seqs"] / 200)) * (1 - math.exp(-flags["tokens"] / 6000))
    return full * 1.06 if flags["backend"] == "flashinfer" else full


def study(**more: Any) -> st.Study:
    settings: dict[str, Any] = {"maximize": "tokens_per_second", "trials": 25, "rules": ["tokens >= seqs"]}
    return st.Study(parameters(), **settings | more)


def asked(study: st.Study) -> st.Trial:
    """The next trial: there is one."""
    trial = study.ask()
    assert trial is not None
    return trial


def comes_true(what: Callable[[], bool], seconds: float = 10) -> bool:
    end = time.monotonic() + seconds
    while not what():
        if time.monotonic() > end:
            return False
        time.sleep(0.01)
    return True


def children(process: int) -> list[int]:
    """Processes whose parent is this one, those that only wait to be collected included."""
    found = []
    for entry in os.listdir("/proc"):
        if not entry.isdigit():
            continue
        try:
            stat = Path("/proc", entry, "stat").read_text()
        except OSError:
            continue
        if int(stat.rpartition(")")[2].split()[1]) == process:
            found.append(int(entry))
    return found


def lives(process: int) -> bool:
    try:
        return Path("/proc", str(process), "stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def script(text: str, folder: Path) -> list[str]:
    """The words that run these lines in another Python."""
    file = folder / "script.py"
    file.write_text(f"import sys\nsys.path.insert(0, {str(Path(__file__).parent)!r})\n" + textwrap.dedent(text))
    return [sys.executable, str(file)]
