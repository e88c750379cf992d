# SPDX-License-Identifier: Apache-2.0
"""A study: asks what to measure, is told what came of it, and recommends."""

from __future__ import annotations

import json
import os
import sys
import threading
import weakref
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any, TypeVar, Union

from ._conversation import Conversation, Say
from ._errors import Error, IoError, UsageError, error_of, as_called
from ._html import study_html
from ._optimize import Asker, Measure, optimize
from ._parameters import Configuration, Parameter, Value, completed, plain_value, study_text
from ._program import SpaceFile, find_checked, run_program, run_visibly
from ._recommendation import Recommendation, recommendation_of
from ._trial import Failed, Outcome, Trial, message_of, told_trial, trial_of

if TYPE_CHECKING:
    import datetime

    import pandas
    import polars

Path = Union[str, "os.PathLike[str]"]
T = TypeVar("T")


class Study:
    """Finds the best configuration of what you measure.

    Each study has a process of its own, `autotune ask-tell`, which ends with `close`, with the `with` block or with
    Python. Threads may use one study at once.

    >>> from servetune import integer
    >>> with Study([integer("threads", 1, 8, default=2)], maximize="rate", trials=10) as study:
    ...     print(study.optimize(lambda configuration: 100 + configuration["threads"]))
    threads = 8: +5.88 % over the default (99 %: +5.88 % to +5.88 %)
    """

    def __init__(
        self,
        parameters: Iterable[Parameter],
        *,
        maximize: str | Sequence[str] = (),
        minimize: str | Sequence[str] = (),
        rules: Iterable[str | Mapping[str, Any]] = (),
        limits: Iterable[str] = (),
        trials: int = 30,
        deadline: float | datetime.timedelta | datetime.datetime | None = None,
        journal: Path | None = None,
        seed: int = 0,
        strategy: str | Mapping[str, Any] = "bayesian",
        knowledge: Iterable[Path] = (),
        noise_cv: float | None = None,
        min_gain: float | None = None,
        accept_changes: bool = False,
    ) -> None:
        """Starts the study, or goes on with the one in `journal`.

        Args:
            parameters: what may change; their defaults together are trial 0
            maximize, minimize: the metrics; the first one leads
            rules: what every configuration keeps, such as `tokens >= seqs`, or an entry of `constraints` of a study file
            limits: what a configuration must keep to be recommended, such as `latency_p99_seconds <= 0.5`
            trials: how many are told, those of earlier processes included
            deadline: when this process starts no further trial: seconds from now, a timedelta or a datetime
            journal: the folder that keeps every trial before it is answered; without it nothing is kept
            seed: same seed, same study
            strategy: `bayesian`, `random`, ... or a mapping, as in a study file
            knowledge: CSV tables of measured configurations, and folders or journals of earlier studies
            noise_cv: run-to-run spread, assumed until it is measured (0.01)
            min_gain: below it a change is not worth having (0.01)
            accept_changes: go on although the study has changed since its journal was written

        Raises:
            UsageError: a space, rule or limit that cannot be, or the journal of another study
            JournalInUse: another process works on the journal
            IoError: the journal cannot be written, or the program is missing (ProgramMissing) or of another
                version (VersionMismatch)
        """
        self._parameters = () if isinstance(parameters, Parameter) else tuple(parameters)
        if not self._parameters or not all(isinstance(one, Parameter) for one in self._parameters):
            raise UsageError(f"a study has a list of choice, integer, real and flag, got {parameters!r}")
        names = [parameter.name for parameter in self._parameters]
        if twice := {name for name in names if names.count(name) > 1}:
            raise UsageError(f"several parameters are called '{min(twice)}'")
        goals = {"maximize": _listed(maximize), "minimize": _listed(minimize)}
        budget: dict[str, Any] = {"trials": trials}
        if deadline is not None:
            budget["wall_clock"] = f"{max(1, round(1000 * _seconds_to(deadline)))}ms"
        name = os.path.basename(os.path.abspath(os.fspath(journal or "study"))).lstrip(".") or "study"
        space: dict[str, Any] = {
            "study": name,
            "space": {parameter.name: parameter.entry() for parameter in self._parameters},
            "constraints": [{"require": rule} if isinstance(rule, str) else dict(rule) for rule in _listed(rules)],
            "objective": {key: metrics for key, metrics in goals.items() if metrics} | {"limits": _listed(limits)},
            "strategy": strategy,
            "knowledge": [_source(path) for path in _listed(knowledge)],
            "budget": budget,
            "seed": seed,
        }
        if noise_cv is not None:
            space["noise_cv"] = noise_cv
        if min_gain is not None:
            space["min_gain"] = min_gain
        self._prepare(study_text(space), None, journal, ["--accept-changes"] if accept_changes else [])
        self._leading = (goals["maximize"] + goals["minimize"] + ["value"])[0]
        self._call(lambda say: None)

    @classmethod
    def from_file(
        cls, path: Path, *, journal: Path | None = None, strategy: str | None = None, accept_changes: bool = False
    ) -> Study:
        """The study of a file (search_spaces/FORMAT.md): ask and tell, or `run` it where it has an evaluator.

        The file is read when it is first asked, told or run.
        """
        if not os.path.isfile(path):
            raise IoError(f"there is no study file {os.fspath(path)}")
        study = cls.__new__(cls)
        study._parameters = ()
        words = ["--strategy", strategy] if strategy else []
        study._prepare("", os.fspath(path), journal, words + (["--accept-changes"] if accept_changes else []))
        return study

    def _prepare(self, text: str, file: str | None, journal: Path | None, words: list[str]) -> None:
        self._text = text
        self._file = os.path.abspath(file) if file is not None else None
        self._journal = os.path.abspath(os.fspath(journal)) if journal is not None else None
        self._words = words
        self._ran = False
        self._closed = False
        self._starting = threading.Lock()
        self._conversation: Conversation | None = None
        self._leading = "value"
        self._stop_reason: str | None = None
        # These change in the conversation's thread only, so that no interruption leaves them half changed.
        self._trials: dict[int, Trial] = {}
        self._askers: dict[int, Asker] = {}
        self._again: deque[int] = deque()

    # Ask and tell

    def ask(self) -> Trial | None:
        """The next trial to measure. `None`: the study is over (`stop_reason`), or open trials must be told first."""
        asker = Asker()
        try:
            return self._ask(asker)
        except BaseException:
            self._give_back(asker)
            raise

    def tell(
        self,
        trial: Trial | int | Mapping[str, Value],
        outcome: Outcome | None = None,
        *,
        failed: str | None = None,
        message: str = "",
    ) -> int:
        """Tells what a trial came to, and returns its number.

        Args:
            trial: as `ask` gave it, its number, or any configuration that was measured
            outcome: the objective's figure, metric -> figure, or Failed; a figure may be a Metric with its error
            failed: the kind of failure, in place of an outcome, with a message
        """
        if (outcome is None) == (failed is None):
            raise UsageError(
                "a trial needs an outcome (a number, or metric -> number) or failed, got "
                + ("none" if outcome is None else "both")
            )
        told = message_of(Failed(failed, message) if failed is not None else outcome)  # type: ignore[arg-type]
        if isinstance(trial, Mapping):
            given = {name: plain_value(value) for name, value in trial.items()}
            return self._call(lambda say: self._told(say, {"configuration": given}, told))
        number = trial.id if isinstance(trial, Trial) else trial
        return self._call(lambda say: self._told(say, {"trial": number}, told))

    def propose(self, configuration: Mapping[str, Value]) -> Trial:
        """A trial of your own choice, open as if it had been asked. What is left out has its default."""
        given = {name: plain_value(value) for name, value in configuration.items()}
        return self._call(lambda say: self._opened(say({"propose": given})))

    def suggest(self, configuration: Mapping[str, Value]) -> int:
        """Suggests a configuration, which `bayesian` may try. Returns how many were suggested in this process."""
        given = {name: plain_value(value) for name, value in configuration.items()}
        return self._call(lambda say: int(say({"suggest": given})["suggested"]))

    def recommendation(self) -> Recommendation:
        """What the trials so far say should be used."""
        if self._ran:
            return recommendation_of(json.loads(self._program_says("report", "--json")))
        return recommendation_of(self._call(lambda say: say({"recommend": True})))

    @property
    def stop_reason(self) -> str | None:
        """Why the last `ask` gave nothing: `trials_spent`, `wall_clock_spent` or `strategy_finished`. `None`: not over."""
        return self._stop_reason

    @property
    def trials(self) -> list[Trial]:
        """All trials by number, of a journal also those of earlier processes.

        Without a journal a configuration that was told and not asked has what was told of it, and the defaults of a
        study's own parameters.
        """
        if self._journal is None and not self._ran:
            return self._call(lambda say: [self._trials[number] for number in sorted(self._trials)])
        if not self._ran:
            self._call(lambda say: None)
        lines = self._program_says("export", "--format", "jsonl").splitlines()
        return [trial_of(document) for document in map(json.loads, lines) if not document["workload"]]

    # Whole studies

    def optimize(
        self,
        measure: Measure,
        *,
        workers: int = 1,
        catch: type[Exception] | tuple[type[Exception], ...] = (),
        callback: Callable[[Trial], object] | None = None,
        progress: bool | None = None,
    ) -> Recommendation:
        """Measures until the study is over, and returns its recommendation.

        Args:
            measure: configuration -> the objective's figure, or metric -> figure; raises Failed for a failed trial
            workers: how many threads measure at once
            catch: exceptions of `measure` that are failed trials; any other leaves its trial open and ends `optimize`
            callback: gets each trial that was told, in this thread; what it raises ends `optimize`
            progress: a line a trial on standard error; `None`: where that is a terminal

        The study goes on with the open trials at the next `optimize` or `ask`, also after a KeyboardInterrupt.
        """
        if progress is None:
            progress = bool(sys.stderr) and sys.stderr.isatty()

        def told(trial: Trial) -> None:
            if progress:
                print(trial, file=sys.stderr, flush=True)
            if callback:
                callback(trial)

        optimize(self, measure, workers, catch if isinstance(catch, tuple) else (catch,), told)
        return self.recommendation()

    def run(self, *, trials: int | None = None) -> Recommendation:
        """Runs the study of a file with its own evaluator (`autotune run`), and returns its recommendation.

        What the program prints goes to this process's output.
        """
        if self._file is None:
            raise UsageError(
                "this study has no evaluator: run is for a study of a file, optimize for your own function"
            )
        if self._conversation is not None:
            self._conversation.close()
            self._conversation = None
        words = self._words + ([] if trials is None else ["--trials", str(trials)])
        program = find_checked()
        self._ran = True  # also if it is interrupted
        code = run_visibly([program, "run", self._file, *self._directory(), *words])
        if code not in (0, 4):
            self._ran = code != 2
            raise error_of(code, f"`autotune run {self._file}` has failed; its reason is above")
        return self.recommendation()

    def to_pandas(self) -> pandas.DataFrame:
        """The trials as a table, a row each."""
        from ._frames import to_pandas

        return to_pandas(self.trials)

    def to_polars(self) -> polars.DataFrame:
        """The trials as a table, a row each."""
        from ._frames import to_polars

        return to_polars(self.trials)

    def close(self) -> None:
        """Ends the study's process. A journal can then be opened again."""
        self._closed = True
        if self._conversation is not None:
            self._conversation.close()

    def __enter__(self) -> Study:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        where = self._file or self._journal or "not kept"
        return f"<servetune.Study: {len(self._parameters)} parameters, {len(self._trials)} trials here, {where}>"

    def _repr_html_(self) -> str:
        kept = self._journal is not None or self._ran
        return study_html(self.trials, self.recommendation(), self._program_says("report", "--html") if kept else "")

    # What the above is made of

    def _ask(self, asker: Asker) -> Trial | None:
        return self._call(lambda say: self._asked(say, asker))

    def _asked(self, say: Say, asker: Asker) -> Trial | None:
        if not self._again:
            answer = say({"ask": True})
            self._stop_reason = answer.get("stop_reason")
            if "trial" not in answer:
                return None
            trial = self._opened(answer)
        else:
            trial = self._trials[self._again.popleft()]
            self._stop_reason = None
        if asker.gone:
            self._again.append(trial.id)
        else:
            self._askers[trial.id] = asker
        return trial

    def _opened(self, answer: Mapping[str, Any]) -> Trial:
        trial = Trial(answer["trial"], answer["configuration"], answer["why"])
        self._trials[trial.id] = trial
        return trial

    def _told(self, say: Say, which: Mapping[str, Any], told: Mapping[str, Any]) -> int:
        number = int(say({"tell": {**which, **told}})["told"])
        given = which.get("configuration", {})
        asked = self._trials.get(number) or Trial(
            number, completed(given, self._parameters) or given, "told, not asked"
        )
        self._trials[number] = told_trial(asked, told, self._leading)
        self._askers.pop(number, None)
        if number in self._again:
            self._again.remove(number)
        return number

    def _give_back(self, asker: Asker) -> None:
        asker.gone = True

        def work(say: Say) -> None:
            for number in [number for number, other in self._askers.items() if other is asker]:
                del self._askers[number]
                self._again.append(number)

        if self._conversation is not None:
            self._conversation.post(work)

    def _call(self, work: Callable[[Say], T]) -> T:
        try:
            if self._conversation is None:
                with self._starting:
                    if self._conversation is None:
                        self._conversation = self._started()
            return self._conversation.call(work)
        except Error as error:  # without the frames of the conversation
            said = error if self._file is not None else as_called(error)
            raise said.with_traceback(None) from error.__cause__

    def _started(self) -> Conversation:
        if self._closed:
            raise UsageError("this study is closed; a new Study with the same journal goes on from there")
        program = find_checked()
        space = SpaceFile(self._text) if self._file is None else None
        try:
            path = space.path if space is not None else str(self._file)
            words = [program, "ask-tell", path, *self._directory(), *self._words]
            conversation = Conversation(words, () if space is None else space.descriptors)
            weakref.finalize(self, conversation.close)
            try:
                conversation.call(lambda say: say({"recommend": True}))  # once it answers, it has read the space
            except BaseException:
                conversation.close()
                raise
            return conversation
        finally:
            if space is not None:
                space.remove()

    def _directory(self) -> list[str]:
        return [] if self._journal is None else [f"--directory={self._journal}"]

    def _program_says(self, command: str, *options: str) -> str:
        """What a command says of the journal."""
        ran = run_program([find_checked(), command, self._journal or str(self._file), *options])
        if ran.returncode not in (0, 4):
            raise error_of(ran.returncode, ran.stderr)
        return ran.stdout


def _listed(several: Any) -> list[Any]:
    return [several] if isinstance(several, (str, Mapping, os.PathLike)) else list(several)


def _seconds_to(deadline: float | datetime.timedelta | datetime.datetime) -> float:
    if isinstance(deadline, (int, float)):
        return deadline
    import datetime

    if isinstance(deadline, datetime.timedelta):
        return deadline.total_seconds()
    return (deadline - datetime.datetime.now(deadline.tzinfo)).total_seconds()


def _source(path: Path) -> dict[str, str]:
    """An entry of `knowledge`: a CSV file is a table, all else an earlier study."""
    whole = os.path.abspath(os.fspath(path))
    return {"table" if whole.endswith(".csv") else "study": whole}
