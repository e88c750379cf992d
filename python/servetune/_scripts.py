# SPDX-License-Identifier: Apache-2.0
"""The console scripts: they become the programs beside the module, under the name that they were called by."""

import os
import sys
from typing import NoReturn

from ._errors import ProgramMissing
from ._program import find


def autotune() -> NoReturn:
    os.environ.setdefault("SERVETUNE_PYTHON", sys.executable)  # `autotune mcp` becomes this Python again
    _become("autotune")


def simengine() -> NoReturn:
    _become("simengine")


def _become(name: str) -> NoReturn:
    try:
        os.execv(find(name), sys.argv)
    except (ProgramMissing, OSError) as error:
        sys.exit(f"{name}: {error}")
