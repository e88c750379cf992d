# SPDX-License-Identifier: Apache-2.0
"""A made-up engine's own parser: its flags, and checks that need libraries which are not there."""
import argparse

import torch_of_quill
from heavy_library.kernels import FusedKernel, register

from quill.broken import anything


@register("ink")
class Ink(FusedKernel):
    def fits(self, rows):
        return rows <= 8


def check(words):
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=1)
    parser.add_argument("--shards", type=int, default=1)
    parser.add_argument("--paper", choices=["plain", "lined"], default="plain")
    given = parser.parse_args(words)
    if torch_of_quill.has_no_ink() or anything():
        raise RuntimeError("what is not there says no")
    assert given.rows % given.shards == 0, f"rows ({given.rows}) must be divisible by shards ({given.shards})"
    if not Ink().fits(given.rows):
        raise ValueError(f"'{given.paper}' paper takes at most 8 rows, not {given.rows}")
    if given.paper == "lined":
        given.paper.is_no_such_attribute
