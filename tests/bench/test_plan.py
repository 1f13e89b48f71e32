"""Who takes part, under which names, and which runs are the same run."""

import json

import pytest
from bench.made import SUITE, SUM

import paretoda.bench.contenders
from paretoda.bench.contenders import Contender, RunSpec, cross, make_baseline, plan, read_contenders
from paretoda.bench.jobs import Bench, Tally
from paretoda.bench.suites import SUITES, find_suite
from paretoda.errors import DataError, SettingsError


def spec(**settings):
    return RunSpec(SUITE, "A-C", Contender("any", settings), 0)


def names(contenders):
    return [contender.name for contender in contenders]


def test_every_method_meets_every_loss_and_scheme_but_source_only_runs_once():
    found = cross(["source-only", "dann"], ["none", "tcm"], ["linear", "paretoda"], steps=7)
    rest = ["dann, sum", "dann, paretoda", "dann+tcm, sum", "dann+tcm, paretoda"]
    assert names(found) == ["source-only", *rest]
    assert all(contender.settings["steps"] == 7 for contender in found)


def test_a_method_may_fix_its_loss_and_nothing_is_listed_twice():
    found = cross(["dann+im", "dann+im", "source-only+im"], ["tcm"], ["linear"])
    assert names(found) == ["dann+im, sum", "source-only+im, sum"]


@pytest.mark.parametrize(
    ("methods", "losses", "schemes", "said"),
    [(["dannn"], ["tcm"], ["linear"], "dann"), (["dann"], ["tmc"], ["linear"], "tcm"), (["dann"], ["tcm"], ["x"], "x")],
)
def test_unknown_names_are_told_before_anything_runs(methods, losses, schemes, said):
    with pytest.raises(SettingsError, match=said):
        cross(methods, losses, schemes)


def test_unknown_suites_tasks_and_baselines_are_told():
    with pytest.raises(DataError, match="did you mean 'digits'"):
        find_suite("digit")
    with pytest.raises(SettingsError, match="there is no task 'A-X'"):
        plan(SUITE, SUITES[SUITE], [SUM], seeds=1, tasks=["A-X"])
    with pytest.raises(SettingsError, match="did you mean 'logistic-coral'"):
        make_baseline("logistic-corall")


def test_two_contenders_of_one_name_are_refused():
    with pytest.raises(SettingsError, match="two contenders are called 'sum'"):
        plan(SUITE, SUITES[SUITE], [SUM, SUM], seeds=1)


def test_seeds_come_first_so_that_an_early_look_sees_everything():
    runs = plan(SUITE, SUITES[SUITE], [SUM], seeds=2, tasks=["A-C", "C-A", "A-C"])
    assert [(run.seed, run.task) for run in runs] == [(0, "A-C"), (0, "C-A"), (1, "A-C"), (1, "C-A")]


def test_variants_are_for_those_who_train_and_fix_nothing_themselves():
    fixed = Contender("fixed", {"method": "dann", "lr": 0.5})
    runs = plan(
        SUITE,
        SUITES[SUITE],
        [SUM, fixed, make_baseline("logistic")],
        seeds=1,
        tasks=["A-C"],
        variants=[{"lr": 1}, {"lr": 2}],
    )
    assert [run.settings.get("lr") for run in runs] == [1.0, 2.0, 0.5, None]
    assert [run.variant for run in runs] == [{"lr": 1}, {"lr": 2}, {}, {}]


def test_the_key_is_that_of_the_settings_however_they_are_written():
    weights = {"method": "dann", "target_loss": "tcm", "scheme": "linear"}
    written = spec(**weights, loss_weights=(1, 2, 3), lr=1, steps=5)
    assert written.key == spec(lr=1.0, steps=5, loss_weights=[1.0, 2.0, 3.0], **weights).key
    assert json.loads(json.dumps(written.line)) == written.line
    assert spec(method="dann+im").key == spec(method="dann", target_loss="im").key


def test_the_key_differs_with_everything_that_decides_the_result():
    base = spec(method="dann", target_loss="im")
    others = [spec(method="dann", target_loss="tcm"), spec(method="cdan", target_loss="im")]
    others += [spec(method="dann", target_loss="im", steps=9), RunSpec(SUITE, "A-C", base.contender, 1)]
    others += [RunSpec(SUITE, "C-A", base.contender, 0), RunSpec("pacs", "A-C", base.contender, 0)]
    others += [RunSpec(SUITE, "A-C", base.contender, 0, {"lr": 0.5})]
    assert len({run.key for run in [base, *others]}) == 8
    assert RunSpec(SUITE, "A-C", Contender("renamed", base.contender.settings), 0).key == base.key


def test_the_key_is_the_same_in_every_process_and_release():
    """A directory that was begun yesterday goes on today; whoever changes this makes everybody's runs anew."""
    settings = {"method": "dann+tcm+propagation", "scheme": "linear", "options": ("alignment.hidden=8",), "lr": 1}
    assert RunSpec(SUITE, "A-C", Contender("x", settings), 3, {"steps": 9}).key == "1a38d61d0230e0bd"


def test_a_file_names_contenders(tmp_path):
    file = tmp_path / "rows.toml"
    file.write_text('["our best"]\nmethod = "cdan+im"\nsteps = 9\n["shallow"]\nbaseline = "logistic-z"\n')
    best, shallow = read_contenders(file, {"steps": 5, "batch_size": 8})
    assert (best.name, dict(best.settings)) == ("our best", {"steps": 9, "batch_size": 8, "method": "cdan+im"})
    assert (shallow.name, dict(shallow.settings)) == ("shallow", {"baseline": "logistic-z"})


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("steps = 5", "'steps' is not a contender"),
        ("[a]\nstep = 5", "steps"),
        ("[a]\nbaseline = 'logistic'\nsteps = 5", "takes no other settings"),
    ],
)
def test_a_wrong_file_of_contenders_is_told(tmp_path, text, said):
    (tmp_path / "rows.toml").write_text(text)
    with pytest.raises(SettingsError, match=said):
        read_contenders(tmp_path / "rows.toml", {})


def test_two_names_for_one_run_are_run_once_and_shown_twice(tmp_path):
    runs = plan(SUITE, SUITES[SUITE], [SUM, Contender("the same", SUM.settings)], seeds=1, tasks=["A-C"])
    bench = Bench(runs, tmp_path)
    assert [run.contender.name for run in bench.missing()] == ["sum"]
    bench.store.add({**runs[0].line, "error": "died"})
    assert len(bench.missing()) == 1, "what failed is tried again"
    bench.store.add({**runs[0].line, "accuracy": {"chosen": 1.0}})
    assert bench.missing() == []
    assert [row["name"] for row in bench.rows()] == ["sum", "the same"]


def test_the_tally_forgets_the_steps_of_a_run_that_begins_anew():
    runs, told = plan(SUITE, SUITES[SUITE], [SUM, make_baseline("logistic")], seeds=1, tasks=["A-C"]), []
    tally = Tally(runs, lambda *far: told.append(far))
    for change in (tally.step, tally.step, tally.restart, tally.step, tally.finish):
        change(runs[0])
    tally.finish(runs[1])
    assert told == [("training", done, 7) for done in (1, 2, 0, 1, 6, 7)]


def test_the_tally_adds_up_what_runs_do_besides_their_steps():
    runs, told = plan(SUITE, SUITES[SUITE], [SUM], seeds=2, tasks=["A-C"]), []
    tally = Tally(runs, lambda *far: told.append(far))
    for run, what, done, total in (
        (runs[0], "features", 16, 40),
        (runs[1], "waiting", 16, 40),
        (runs[1], "features", 20, 30),
        (runs[0], "features", 40, 40),
    ):
        tally.work(run, what, done, total)
    assert told == [("features", 16, 40), ("waiting", 16, 40), ("features", 36, 70), ("features", 60, 70)]
    tally.finish(runs[0])
    tally.restart(runs[1])
    tally.work(runs[1], "features", 4, 30)
    assert told[-1] == ("features", 4, 30)


def test_the_settings_of_a_planned_run_are_checked_once(tmp_path, monkeypatch):
    runs = plan(SUITE, SUITES[SUITE], [SUM, make_baseline("logistic")], seeds=2, tasks=["A-C"])
    checks = []
    real = paretoda.tasks.settings.make_settings
    monkeypatch.setattr(paretoda.bench.contenders, "make_settings", lambda given: checks.append(given) or real(given))
    bench = Bench(runs, tmp_path)
    for _ in range(3):
        assert len(bench.missing()) == 4
        assert [run.line["key"] for run in runs] == [run.key for run in runs]
        Tally(runs, None)
    assert len(checks) == 2, "one for each run that is no baseline"
