"""Arguments as engines declare them: calls of a parser, and fields with annotations."""
import argparse
from typing import Annotated as A, List, Literal, Optional

raise RuntimeError("this file is read, never run")

BACKENDS = ["one", "two"]
MORE = BACKENDS + ["three"]


class Fields:
    backend: A[str, Arg(help="x", choices=MORE, aliases=["--back-end"])] = "one"
    steps: A[Optional[int], "how many"] = None
    ratio: A[float, "how much"] = 0.5
    sizes: A[Optional[List[int]], "which"] = None
    method: A[Literal["a", "b"], "how"] = "a"
    fast: A[Optional[bool], Arg(action=argparse.BooleanOptionalAction)] = None
    hidden: A[int, Arg(no_cli=True)] = 3
    plain: int = 4


def add(parser):
    parser.add_argument("--max-num", "-m", type=int, default=8, help="x")
    parser.add_argument("--on", action="store_true")
    parser.add_argument("--kind", choices=MORE, default="two")
    parser.add_argument("--elsewhere", **kwargs["elsewhere"])
    parser.add_argument("--unknown-choice", choices=somewhere_else())
    parser.add_argument("model")
