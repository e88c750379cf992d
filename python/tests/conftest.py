# SPDX-License-Identifier: Apache-2.0
"""Every test works in a folder of its own, with the program that SERVETUNE_AUTOTUNE names or the PATH has."""

import gc
from collections.abc import Iterator
from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture(autouse=True, scope="module")
def programs_end() -> Iterator[None]:
    """Ends the programs of samplers that nobody has any more, so that the next file's tests find no child of others."""
    yield
    gc.collect()
