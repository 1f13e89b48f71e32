"""Runs in real processes: deaths are blamed on the right run, and errors stay where they are."""

import multiprocessing
import signal

import numpy as np
import pytest
from bench.made import ALONE, QUICK, SUITE, SUM, specs

from paretoda.bench.contenders import Contender, make_baseline
from paretoda.bench.jobs import Bench, Execution
from paretoda.bench.runner import TRIES, Worker, execute_in_worker, run_local
from paretoda.bench.store import Store
from paretoda.errors import RunError


def numbers(rows):
    """All that must not depend on the machine's mood."""
    return [{name: value for name, value in row.items() if name != "seconds"} for row in rows]


WRONG = Contender("wrong", {**QUICK, "method": "source-only", "backbone": "resnet50"})


@pytest.fixture(scope="module")
def undisturbed(features, tmp_path_factory):
    told = []
    bench = Bench(
        specs(make_baseline("logistic-z"), WRONG, ALONE, SUM), tmp_path_factory.mktemp("undisturbed"), features
    )
    return run_local(bench, 1, lambda *far: told.append(far)), told


def test_rows_come_in_the_order_of_the_plan_with_all_that_a_reader_needs(undisturbed):
    rows, told = undisturbed
    assert [row["name"] for row in rows] == ["logistic-z", "wrong", "alone", "sum"]
    row = rows[-1]
    assert 0.4 < row["accuracy"]["chosen"] <= 1
    assert row["config"]["seed"] == row["seed"] == 0
    assert row["config"]["steps"] == 6
    assert (row["selection"], row["chosen_step"]) == ("last", 6)
    assert {"paretoda", "torch", "python"} <= set(row["versions"])
    assert set(row["per_class"]["last"]) == {"a", "b", "c"}
    assert np.mean(list(row["per_class"]["last"].values())) == pytest.approx(row["mean_class_accuracy"]["last"])
    assert told[-1] == ("training", 19, 19)
    assert [far[1] for far in told] == sorted(far[1] for far in told)


def test_an_error_is_the_result_of_its_own_run_only(undisturbed):
    rows, _ = undisturbed
    assert [("error" in row, "accuracy" in row) for row in rows] == [
        (False, True),
        (True, False),
        (False, True),
        (False, True),
    ]
    assert "resnet50" in rows[1]["error"]


@pytest.mark.slow  # five workers, one after the other
def test_a_dead_worker_is_replaced_its_run_made_again_and_at_last_given_up_alone(undisturbed, features, tmp_path):
    """One worker at a time: the doomed run dies, `sum` dies once, the doomed one dies twice more."""
    deaths = []

    def kill(_what, done, _total):
        doomed_first, sum_first, doomed_later = not deaths and done == 1, len(deaths) == 1 and done == 2, done > 12
        if doomed_first or sum_first or (doomed_later and 2 <= len(deaths) < TRIES + 1 and done < 24):
            (worker,) = multiprocessing.active_children()
            worker.kill()
            worker.join()
            deaths.append(worker.pid)

    doomed = Contender("doomed", {**ALONE.settings, "steps": 12})
    rows = run_local(Bench(specs(doomed, SUM, ALONE), tmp_path, features), 1, kill)
    assert len(set(deaths)) == TRIES + 1
    assert [row["name"] for row in rows] == ["doomed", "sum", "alone"]
    assert rows[0]["error"] == f"its process died {TRIES} times, the last time with signal 9"
    assert numbers(rows)[1:] == numbers(undisturbed[0])[:1:-1]


def test_a_second_bench_in_the_same_directory_is_refused(features, tmp_path):
    with Store(tmp_path).lock(), pytest.raises(RunError, match="a bench"):
        run_local(Bench(specs(SUM), tmp_path, features), 1)


def test_nothing_is_started_where_nothing_is_missing(undisturbed, features, tmp_path):
    bench = Bench(specs(SUM), tmp_path, features)
    bench.store.add(undisturbed[0][3])
    before = bench.store.path.read_bytes()
    assert len(run_local(bench, 2, lambda *_: pytest.fail("a run was made"))) == 1
    assert bench.store.path.read_bytes() == before
    assert SUITE in before.decode()


def test_ctrl_c_while_a_worker_starts_leaves_no_process(monkeypatch, tmp_path):
    real = signal.pthread_sigmask

    def pressed(how, signals):
        old = real(how, signals)
        if how == signal.SIG_UNBLOCK:
            raise KeyboardInterrupt
        return old

    before = set(multiprocessing.active_children())
    monkeypatch.setattr("paretoda.bench.runner.signal.pthread_sigmask", pressed)
    with pytest.raises(KeyboardInterrupt):
        Worker(Execution(execute_in_worker, None, tmp_path))
    assert set(multiprocessing.active_children()) == before
