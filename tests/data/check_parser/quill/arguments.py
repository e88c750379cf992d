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


def optional(kind):
    def read(text):
        return None if text == "None" else kind(text)
    return read


def parser():
    result = argparse.ArgumentParser()
    result.add_argument("--rows", "-r", type=int, default=1)
    result.add_argument("--shards", type=int, default=1)
    result.add_argument("--paper", choices=["plain", "lined", None], default="plain")
    result.add_argument("--margin", type=optional(int))
    result.add_argument("--copies", type=int, choices=[1, 2, 4], default=1)
    result.add_argument("--enable-ink", "-i", action=argparse.BooleanOptionalAction, help="Deprecated.")
    return result


def check(words):
    given = parser().parse_args(words)
    if torch_of_quill.has_no_ink() or anything():
        raise RuntimeError("what is not there says no")
    assert given.rows % given.shards == 0, f"rows ({given.rows}) must be divisible by shards ({given.shards})"
    if not Ink().fits(given.rows):
        raise ValueError(f"'{given.paper}' paper takes at most 8 rows, not {given.rows}")
    if given.paper == "lined":
        given.paper.is_no_such_attribute
