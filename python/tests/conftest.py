# SPDX-License-Identifier: Apache-2.0
"""Every test works in a folder of its own, with the program that SERVETUNE_AUTOTUNE names or the PATH has."""

from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path
