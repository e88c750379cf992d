# SPDX-License-Identifier: Apache-2.0
"""The sampler of Optuna: what it learns of a study, and that studies go on whatever happens."""

from __future__ import annotations

import copy
import gc
import math
import multiprocessing
import os
import pickle
import signal
import threading
import time
import warnings
from pathlib import Path
from typing import Any

import pytest

optuna = pytest.importorskip("optuna", "5", reason="Optuna is not installed: its sampler is not tested")

from optuna.distributions import (
    BaseDistribution,
    CategoricalDistribution,
    FloatDistribution,
    IntDistribution,
)  # noqa: E402
from optuna.trial import FrozenTrial, Trial, TrialState, create_trial  # noqa: E402

from servetune import IoError, UsageError  # noqa: E402
from servetune._optuna_child import Child  # noqa: E402
from servetune._optuna_space import Dimension, ProgramSpace, learned_space, middle_of  # noqa: E402
from servetune.optuna import ServetuneSampler  # noqa: E402

optuna.logging.set_verbosity(optuna.logging.WARNING)
warnings.simplefilter("ignore", FutureWarning)
warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)

distributions: list[BaseDistribution] = [
    FloatDistribution(-1.5, 2.25),
    FloatDistribution(1e-7, 10, log=True),
    FloatDistribution(-10.2, 10.2, step=0.1),
    FloatDistribution(0, 1, step=0.3),
    IntDistribution(-10, 10),
    IntDistribution(-9, 10, step=3),
    IntDistribution(1, 100, log=True),
    IntDistribution(2**40, 2**52),
    CategoricalDistribution([None, True, False, 0.5, 7, "true", "engine", "", "${HOME}", "é\n"]),
    CategoricalDistribution([float("nan"), 1.0, "x"]),
]


def bowl(trial: Trial) -> float:
    x = trial.suggest_float("x", -5, 5)
    y = trial.suggest_int("y", 1, 64, log=True)
    return (x - 1) ** 2 + abs(math.log2(y) - 3)


def seeded(seed: int = 1, **study: Any) -> Any:
    """A new study with our sampler."""
    return optuna.create_study(sampler=ServetuneSampler(seed=seed), **study)


def params_of(study: Any) -> list[dict[str, Any]]:
    return [trial.params for trial in study.trials]


def starts(monkeypatch: pytest.MonkeyPatch) -> list[Child]:
    """The programs that are started from now on."""
    started: list[Child] = []
    initialize = Child.__init__

    def noted(self: Child, *arguments: Any) -> None:
        initialize(self, *arguments)
        started.append(self)

    monkeypatch.setattr(Child, "__init__", noted)
    return started


def is_running(process_id: int) -> bool:
    try:
        return Path(f"/proc/{process_id}/stat").read_text().rsplit(")", 1)[1].split()[0] != "X"
    except OSError:
        return False


@pytest.mark.parametrize("distribution", distributions, ids=str)
def test_values_are_the_same_after_the_way_to_the_program_and_back(distribution: BaseDistribution) -> None:
    dimension = Dimension("x", "p0", distribution)
    study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=1))
    for _ in range(200):
        value = study.ask({"x": distribution}).params["x"]
        level = dimension.level(value)
        assert level is not None
        back = dimension.value(level)
        assert type(back) is type(value)
        assert back == value or back != back
    assert distribution._contains(distribution.to_internal_repr(middle_of(distribution)))
    if isinstance(distribution, (FloatDistribution, IntDistribution)):
        assert dimension.level(distribution.low) is not None and dimension.level(distribution.high) is not None
        assert dimension.level(distribution.high + 1) is None and dimension.level("x") is None


def test_the_program_takes_every_distribution() -> None:
    space = {f"a '{i}'": distribution for i, distribution in enumerate(distributions)}
    study = optuna.create_study(sampler=ServetuneSampler(search_space=space, seed=1))
    for i in range(15):
        trial = study.ask(space)
        assert trial.params.keys() == space.keys()
        study.tell(trial, float(i))
    assert len({str(params) for params in params_of(study)}) == 15


def trial_with(params: dict[str, Any], state: TrialState = TrialState.COMPLETE) -> FrozenTrial:
    kinds: dict[type, BaseDistribution] = {
        str: CategoricalDistribution(["a", "b", "c"]),
        int: IntDistribution(1, 4),
        float: FloatDistribution(0, 1),
    }
    return create_trial(
        state=state,
        params=params,
        distributions={name: kinds[type(value)] for name, value in params.items()},
        value=1.0 if state == TrialState.COMPLETE else None,
    )


def dependence(trials: list[FrozenTrial]) -> dict[str, Any]:
    space = ProgramSpace(learned_space(trials), trials)
    return {d.name: (d.parent.name, d.parent_levels) for d in space.dimensions if d.parent is not None}


def test_a_parameter_depends_on_the_one_whose_values_tell_where_it_is() -> None:
    assert dependence([trial_with({"c": "a", "x": 0.5}), trial_with({"c": "b"})]) == {"x": ("c", ("v0",))}
    # A trial that was pruned may lack what it would have asked for.
    assert dependence([trial_with({"c": "a", "x": 0.5}), trial_with({"c": "b"}, TrialState.PRUNED)]) == {}
    # Both values come with and without it: it depends on nothing that is known.
    both = [trial_with({"c": "a", "x": 0.5}), trial_with({"c": "b"}), trial_with({"c": "b", "x": 0.5})]
    assert dependence(both) == {}
    layers = [trial_with({"n": n} | {f"w{i}": 0.5 for i in range(n)}) for n in (1, 3)]
    assert dependence(layers) == {"w1": ("n", (2, 3, 4)), "w2": ("n", (2, 3, 4))}
    assert dependence([*layers, trial_with({"n": 2, "w0": 0.5, "w1": 0.5})])["w2"] == ("n", (3, 4))
    deep = [trial_with({"c": "a", "d": "a", "x": 0.5}), trial_with({"c": "a", "d": "b"}), trial_with({"c": "b"})]
    assert dependence(deep) == {"d": ("c", ("v0",)), "x": ("d", ("v0",))}


def test_a_range_is_the_widest_that_a_parameter_had() -> None:
    def learned(*several: FloatDistribution | IntDistribution) -> BaseDistribution:
        failed = TrialState.FAIL
        trials = [create_trial(state=failed, params={"x": d.low}, distributions={"x": d}) for d in several]
        return learned_space(trials)["x"]

    assert learned(IntDistribution(0, 5), IntDistribution(3, 9)) == IntDistribution(0, 9)
    assert learned(IntDistribution(0, 6, step=2), IntDistribution(4, 8, step=2)) == IntDistribution(0, 8, step=2)
    assert learned(IntDistribution(0, 6, step=2), IntDistribution(3, 9, step=2)) == IntDistribution(0, 9)
    assert learned(FloatDistribution(0, 1, step=0.1), FloatDistribution(0.5, 2, step=0.1)) == FloatDistribution(
        0, 2, step=0.1
    )
    assert learned(FloatDistribution(0, 1, step=0.1), FloatDistribution(0.05, 2, step=0.05)) == FloatDistribution(0, 2)
    assert learned(FloatDistribution(1, 2), FloatDistribution(1, 9, log=True)) == FloatDistribution(1, 9, log=True)


def test_conditional_parameters_are_suggested_together_where_they_are_known() -> None:
    def objective(trial: Trial) -> float:
        if trial.suggest_categorical("kind", ["line", "curve"]) == "line":
            return 3 + abs(trial.suggest_float("slope", -1, 1) - 0.3)
        return 1 + 0.2 * (trial.suggest_float("bend", 0, 10) - 7) ** 2 + 0.1 * trial.suggest_int("knots", 1, 9)

    study = seeded(3)
    study.optimize(objective, n_trials=35)
    assert study.best_params["kind"] == "curve"
    assert study.best_value < 1.3
    last = study.trials[-1]
    assert isinstance(study.sampler, ServetuneSampler)
    trial = study.ask()
    space = study.sampler.infer_relative_search_space(study, trial._cached_frozen_trial)
    assert space.keys() == {"kind", "slope", "bend", "knots"}
    suggested = study.sampler.sample_relative(study, trial._cached_frozen_trial, space)
    assert suggested.keys() in ({"kind", "slope"}, {"kind", "bend", "knots"})
    assert last.params.keys() in ({"kind", "slope"}, {"kind", "bend", "knots"})


def test_the_first_trial_is_the_middle_and_all_of_a_known_space_is_suggested_at_once() -> None:
    space = {
        "x": FloatDistribution(1e-4, 1, log=True),
        "c": CategoricalDistribution([None, 2]),
        "one": IntDistribution(3, 3),
    }
    for sampler in (ServetuneSampler(seed=1), ServetuneSampler(seed=1, search_space=space)):
        study = optuna.create_study(sampler=sampler)
        assert study.ask(space).params == {"x": pytest.approx(0.01), "c": None, "one": 3}


def test_the_same_seed_gives_the_same_study_also_when_it_is_resumed(folder: Path) -> None:
    def run(seed: int | None, trials: list[int], storage: str | None = None) -> list[dict[str, Any]]:
        for count in trials:
            study = optuna.create_study(
                sampler=ServetuneSampler(seed=seed), storage=storage, study_name="s", load_if_exists=True
            )
            study.optimize(bowl, n_trials=count)
        return params_of(study)

    whole = run(7, [14])
    assert run(7, [14]) == whole
    assert run(7, [1, 6, 7], f"sqlite:///{folder}/study.db") == whole
    assert run(8, [14]) != whole
    assert run(None, [14]) != run(None, [14])


def test_copies_suggest_the_same_if_they_were_given_a_seed() -> None:
    study = seeded(5)
    study.optimize(bowl, n_trials=8)

    def next_of(sampler: Any) -> list[dict[str, Any]]:
        copied = optuna.create_study(sampler=sampler)
        copied.add_trials(study.trials)
        copied.optimize(bowl, n_trials=4)
        return params_of(copied)[8:]

    expected = next_of(ServetuneSampler(seed=5))
    assert next_of(copy.deepcopy(study.sampler)) == expected
    assert next_of(pickle.loads(pickle.dumps(study.sampler))) == expected
    study.sampler.reseed_rng()
    assert next_of(study.sampler) != expected
    unseeded = ServetuneSampler()
    assert copy.deepcopy(unseeded)._seed != unseeded._seed


def test_the_program_starts_again_only_where_the_space_has_changed(monkeypatch: pytest.MonkeyPatch) -> None:
    started = starts(monkeypatch)
    study = seeded()
    study.optimize(bowl, n_trials=10)
    assert len(started) == 1
    study.optimize(lambda trial: bowl(trial) + trial.suggest_float("z", 0, 1), n_trials=5)
    assert len(started) == 2
    study.optimize(lambda trial: trial.suggest_float("x", -9, 9) ** 2, n_trials=5)
    assert len(started) == 3
    assert [is_running(child._conversation._process.pid) for child in started] == [False, False, True]
    del study
    started.clear()


def test_the_program_ends_with_its_sampler(monkeypatch: pytest.MonkeyPatch) -> None:
    started = starts(monkeypatch)
    study = seeded()
    study.optimize(bowl, n_trials=3)
    process = started.pop()._conversation._process.pid
    assert is_running(process)
    del study
    gc.collect()
    assert not is_running(process)


def test_a_program_that_dies_is_an_error_and_the_study_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    started = starts(monkeypatch)
    study = seeded()
    study.optimize(bowl, n_trials=3)
    process = started[0]._conversation._process.pid
    os.kill(process, signal.SIGKILL)
    with pytest.raises(IoError, match="signal 9 has ended it"):
        study.optimize(bowl, n_trials=1)
    assert not is_running(process)  # no zombie
    study.optimize(bowl, n_trials=3)
    assert len(started) == 2
    assert [trial.state for trial in study.trials].count(TrialState.COMPLETE) == 6


@pytest.mark.parametrize("how", ["function", "trial"])
def test_constraints_are_kept(how: str) -> None:
    def objective(trial: Trial) -> float:
        x, y = trial.suggest_float("x", 0, 10), trial.suggest_float("y", 0, 10)
        if how == "trial":
            trial.set_constraint("sum", x + y - 8)
        return -x - 2 * y

    function = (lambda trial: (trial.params["x"] + trial.params["y"] - 8,)) if how == "function" else None
    study = optuna.create_study(sampler=ServetuneSampler(seed=2, constraints_func=function))
    study.optimize(objective, n_trials=35)
    kept = [trial for trial in study.trials if trial.params["x"] + trial.params["y"] <= 8]
    assert min(trial.value for trial in kept) < -14  # the best is -16
    assert sum(trial.number >= 10 for trial in kept) >= 10  # of 25; a random trial keeps it with 0.32


def test_failed_and_useless_trials_do_not_end_a_study() -> None:
    outcomes: list[Any] = [1.0, ValueError, math.nan, math.inf, -math.inf, 1e300, 2.0, None, 0.5]

    def objective(trial: Trial) -> Any:
        bowl(trial)
        outcome = outcomes[trial.number % len(outcomes)]
        if outcome is ValueError:
            raise ValueError("no")
        return outcome

    study = seeded()
    study.optimize(objective, n_trials=20, catch=ValueError)
    assert len(study.trials) == 20


def test_a_study_whose_trials_all_fail_goes_on() -> None:
    def objective(trial: Trial) -> float:
        bowl(trial)
        raise ValueError("no")

    study = seeded()
    study.optimize(objective, n_trials=12, catch=ValueError)
    assert len({str(params) for params in params_of(study)}) == 12


def test_where_trials_fail_is_learned() -> None:
    def objective(trial: Trial) -> float:
        x, y = trial.suggest_float("x", 0, 1), trial.suggest_float("y", 0, 1)
        if x > 0.6:
            raise MemoryError
        return (x - 0.4) ** 2 + (y - 0.4) ** 2

    study = seeded()
    study.optimize(objective, n_trials=30, catch=MemoryError)
    failed = [trial.number for trial in study.trials if trial.state == TrialState.FAIL]
    assert len(failed) <= 6  # of random trials 12 on average
    assert study.best_value < 0.01


@pytest.mark.parametrize(
    "pruner",
    [optuna.pruners.MedianPruner(n_startup_trials=3), optuna.pruners.HyperbandPruner()],
    ids=["median", "hyperband"],
)
def test_pruned_trials(pruner: Any) -> None:
    def objective(trial: Trial) -> float:
        value = bowl(trial)
        for step in range(1, 10):
            trial.report(value + 1 / step, step)
            if trial.should_prune():
                raise optuna.TrialPruned
        return value

    study = seeded(pruner=pruner)
    study.optimize(objective, n_trials=30)
    assert any(trial.state == TrialState.PRUNED for trial in study.trials)
    assert study.best_value < 0.5


def test_several_objectives() -> None:
    def objective(trial: Trial) -> tuple[float, float]:
        x, y = trial.suggest_float("x", 0, 1), trial.suggest_float("y", 0, 1)
        return x, x * (1 - (y - 0.5) ** 2)

    study = seeded(directions=["minimize", "maximize"])
    study.optimize(objective, n_trials=25)
    front = [trial.values for trial in study.best_trials]
    assert len(front) >= 6
    assert max(b for _, b in front) > 0.9


def test_threads_work_on_different_configurations() -> None:
    def objective(trial: Trial) -> float:
        value = int(trial.suggest_categorical("a", list("abcdef")) == "c")
        value += trial.suggest_int("b", 0, 5) == 3
        time.sleep(0.02)
        return -float(value)

    study = seeded()
    study.optimize(objective, n_trials=24, n_jobs=4)
    assert len(study.trials) == 24
    assert len({str(params) for params in params_of(study)}) >= 22  # the first four know nothing of each other
    assert study.best_value == -2


def test_trials_that_are_asked_at_once_differ(folder: Path) -> None:
    study = seeded()
    study.optimize(bowl, n_trials=5)
    space = learned_space(study.trials)
    asked = [study.ask(space).params for _ in range(8)]
    assert len({str(params) for params in asked}) == 8


def work_on(url: str, trials: int) -> None:
    study = optuna.load_study(study_name="s", storage=url, sampler=ServetuneSampler())
    study.optimize(bowl, n_trials=trials)


def test_several_processes_work_on_one_storage(folder: Path) -> None:
    url = f"sqlite:///{folder}/study.db"
    study = optuna.create_study(study_name="s", storage=url, sampler=ServetuneSampler())
    study.optimize(bowl, n_trials=2)
    context = multiprocessing.get_context("spawn")
    workers = [context.Process(target=work_on, args=(url, 6)) for _ in range(2)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(120)
        assert worker.exitcode == 0
    assert len(study.trials) == 14
    assert len({str(params) for params in params_of(study)}) == 14


def test_what_another_process_has_under_way_is_not_suggested_again(folder: Path) -> None:
    url = f"sqlite:///{folder}/study.db"
    one = seeded(study_name="s", storage=url)
    one.optimize(bowl, n_trials=6)
    other = optuna.load_study(study_name="s", storage=url, sampler=ServetuneSampler(seed=1))
    space = learned_space(one.trials)
    assert one.ask(space).params != other.ask(space).params


def test_a_journal_storage(folder: Path) -> None:
    from optuna.storages import JournalStorage
    from optuna.storages.journal import JournalFileBackend

    storage = JournalStorage(JournalFileBackend(f"{folder}/journal"))
    study = seeded(storage=storage)
    study.optimize(bowl, n_trials=6)
    assert len(study.trials) == 6


def test_enqueued_trials_are_tried_and_told() -> None:
    study = seeded()
    study.enqueue_trial({"x": 4.0, "y": 60})
    study.enqueue_trial({"x": 1.0})  # y is suggested
    study.enqueue_trial({"y": 8})
    study.optimize(bowl, n_trials=12)
    assert params_of(study)[0] == {"x": 4.0, "y": 60}
    assert params_of(study)[1]["x"] == 1.0 and params_of(study)[2]["y"] == 8
    assert study.best_value < 0.2


def test_a_value_outside_the_space_is_left_out() -> None:
    study = optuna.create_study(sampler=ServetuneSampler(seed=1, search_space={"x": FloatDistribution(-5, 5)}))
    study.add_trial(create_trial(params={"x": 7.0}, distributions={"x": FloatDistribution(0, 8)}, value=1.0))
    study.optimize(lambda trial: trial.suggest_float("x", -5, 5) ** 2, n_trials=6)
    assert len(study.trials) == 7


def test_the_offset_and_the_unit_of_values_do_not_matter() -> None:
    def run(unit: float, offset: float) -> list[dict[str, Any]]:
        study = seeded()
        study.optimize(lambda trial: offset + unit * bowl(trial), n_trials=12)
        return params_of(study)

    assert run(1024.0, 0.0) == run(1.0, 0.0)
    best = seeded()
    best.optimize(lambda trial: 1e6 + bowl(trial), n_trials=25)
    assert best.best_value - 1e6 < 0.1


def test_two_studies_take_turns_with_one_sampler() -> None:
    sampler = ServetuneSampler(seed=1)
    studies = [optuna.create_study(sampler=sampler, direction=direction) for direction in ("minimize", "maximize")]
    for _ in range(3):
        for study in studies:
            study.optimize(bowl, n_trials=4)
    alone = seeded()
    alone.optimize(bowl, n_trials=12)
    assert params_of(studies[0]) == params_of(alone)


def test_a_forked_child_has_a_program_of_its_own() -> None:
    study = seeded()
    study.optimize(bowl, n_trials=5)
    child = os.fork()
    if child == 0:
        try:
            study.optimize(bowl, n_trials=3)
            os._exit(0 if len(study.trials) == 8 else 1)
        except BaseException:
            os._exit(2)
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 0
    study.optimize(bowl, n_trials=3)
    assert threading.active_count() < 10


def test_an_ask_after_a_thousand_trials_is_quick() -> None:
    study = seeded()
    random = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=1))
    random.optimize(bowl, n_trials=1000)
    study.add_trials(random.trials)
    study.optimize(bowl, n_trials=1)  # starts and tells all
    began = time.monotonic()
    study.optimize(bowl, n_trials=1)
    assert time.monotonic() - began < 20  # 0.8 s on an idle machine


def test_a_noise_that_cannot_be_is_refused_at_once() -> None:
    with pytest.raises(UsageError, match="noise is a share from 0 to 1, got 2"):
        ServetuneSampler(noise=2)
