# SPDX-License-Identifier: Apache-2.0
"""Asks, measures and tells until a study is over."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING

from ._errors import UsageError
from ._parameters import Configuration
from ._trial import Failed, Outcome, Trial, failure_of

if TYPE_CHECKING:
    from ._study import Study

Measure = Callable[[Configuration], Outcome]
Catch = tuple[type[Exception], ...]
Told = Callable[[Trial], object]


class Asker:
    """Who asked for trials. Once it is gone, those that it did not tell are asked again."""

    gone = False


def optimize(study: Study, measure: Measure, workers: int, catch: Catch, told: Told) -> None:
    """Measures until nothing is left to ask. What it asked and did not tell, the next ask gives again."""
    if workers < 1:
        raise UsageError(f"workers is at least 1, got {workers}")
    asker = Asker()
    try:
        if workers == 1:
            _one_by_one(study, asker, measure, catch, told)
        else:
            _at_once(study, asker, measure, catch, told, workers)
    finally:
        study._give_back(asker)


def _one_by_one(study: Study, asker: Asker, measure: Measure, catch: Catch, told: Told) -> None:
    while trial := study._ask(asker):
        told(study._trials[study.tell(trial, _measured(measure, trial, catch))])
    if study.stop_reason is None:
        raise UsageError(_waits_for_others)


def _at_once(study: Study, asker: Asker, measure: Measure, catch: Catch, told: Told, workers: int) -> None:
    """This thread asks and tells, the others measure. They are daemons: an interrupted study does not wait for them."""
    todo: queue.SimpleQueue[Trial | None] = queue.SimpleQueue()
    done: queue.SimpleQueue[tuple[Trial, Outcome | BaseException]] = queue.SimpleQueue()

    def work() -> None:
        while trial := todo.get():
            outcome: Outcome | BaseException
            try:
                outcome = _measured(measure, trial, catch)
            except BaseException as error:
                outcome = error
            done.put((trial, outcome))

    for _ in range(workers):
        threading.Thread(target=work, name="servetune-measure", daemon=True).start()
    busy = 0
    try:
        while True:
            while busy < workers and (trial := study._ask(asker)):
                todo.put(trial)
                busy += 1
            if busy == 0:
                break
            try:
                # Not for ever: with the signal handlers of some packages, such as Polars', Ctrl-C ends no wait.
                trial, outcome = done.get(timeout=1)
            except queue.Empty:
                continue
            busy -= 1
            if isinstance(outcome, BaseException) and not isinstance(outcome, Failed):
                raise outcome
            told(study._trials[study.tell(trial, outcome)])
    finally:
        for _ in range(workers):
            todo.put(None)
    if study.stop_reason is None:
        raise UsageError(_waits_for_others)


_waits_for_others = "the study waits for trials that were asked elsewhere: tell them first, then optimize"


def _measured(measure: Measure, trial: Trial, catch: Catch) -> Outcome:
    try:
        return measure(dict(trial.configuration))
    except Exception as error:
        if isinstance(error, (Failed, *catch)):
            return failure_of(error)
        raise
