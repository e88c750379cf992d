# SPDX-License-Identifier: Apache-2.0
"""Sets the platform of the wheel, which the programs inside it decide: scripts/package says which."""

import os
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class PlatformHook(BuildHookInterface):  # type: ignore[type-arg]
    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        platform = os.environ.get("SERVETUNE_WHEEL_PLATFORM")
        if platform is not None:
            build_data["pure_python"] = False
            build_data["tag"] = f"py3-none-{platform}"
            build_data["sbom_files"].append("sbom.spdx.json")
