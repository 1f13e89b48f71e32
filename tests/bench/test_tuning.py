"""Loss weights of plain sums: which are tried, by whom, and that a label-free judge chooses."""

import pytest
from bench.made import ALONE, FLAGS, SUITE, SUM, specs

from paretoda.bench.contenders import (
    GRID,
    Contender,
    describe_tuned_weights,
    list_weight_variants,
    make_baseline,
    select_variants,
    tune_weights,
)
from paretoda.bench.jobs import collect_results
from paretoda.errors import SettingsError
from paretoda.tasks.settings import make_settings

BOTH = {"method": "dann+tcm+im", "scheme": "linear"}


def weights(settings):
    return [variant.get("loss_weights") for variant in list_weight_variants(settings)]


def test_the_source_keeps_its_weight_and_losses_on_the_target_share_one():
    assert weights({"method": "dann", "target_loss": "none", "scheme": "linear"}) == [(1.0, 0.1), (1.0, 0.3), None]
    assert weights({"method": "source-only+im", "scheme": "linear"}) == [(1.0, 0.1), (1.0, 0.3), None]
    found = weights(BOTH)
    assert len(found) == len(set(found)) == len(GRID) ** 2
    assert (1.0, 0.3, 0.1, 0.1) in found
    assert (1.0, 1.0, 0.3, 0.3) in found
    assert None in found, "equal weights are the contender as it is"
    for variant in list_weight_variants(BOTH):
        make_settings({**BOTH, **variant})


@pytest.mark.parametrize(
    "settings",
    [
        {"method": "source-only"},
        {"method": "dann", "scheme": "paretoda"},
        {**BOTH, "loss_weights": (1, 1, 2, 2)},
        {"baseline": "logistic"},
    ],
)
def test_those_without_free_weights_stay_as_they_are(settings):
    assert weights(settings) == []


def test_the_plan_repeats_plain_sums_beside_other_variants_and_nobody_else():
    guided = Contender("guided", {"method": "dann", "scheme": "paretoda"})
    before = [spec for one in (SUM, guided, ALONE, make_baseline("logistic")) for spec in specs(one)]
    plan = tune_weights(before, "dev")
    assert [(spec.contender.name, spec.judge) for spec in plan] == [("sum", "dev")] * 9 + [
        ("guided", ""),
        ("alone", ""),
        ("logistic", ""),
    ]
    assert len({spec.key for spec in plan}) == len(plan)
    assert before[0].key in {spec.key for spec in plan}, "a plain sum that is there already is not made again"
    with pytest.raises(SettingsError, match="no contender has it"):
        tune_weights(before[1:], "dev")
    with pytest.raises(SettingsError, match="did you mean 'dev'"):
        tune_weights(before, "devv")


def rows(judge, dev, im):
    plan = tune_weights(specs(SUM), judge)
    scored = [{"dev": d, "mano": d, "im": i, "mixval": i} for d, i in zip(dev, im, strict=True)]
    facts = [{**spec.line, "scores": s, "accuracy": {"chosen": 1.0}} for spec, s in zip(plan, scored, strict=True)]
    return plan, facts


def test_the_judge_chooses_alone_and_is_remembered_in_the_file():
    dev, im = [0, 5, 1, 0, 0, 0, 0, 0, 2], [9, 0, 8, 7, 6, 5, 4, 3, 2]
    plan, made = rows("dev", dev, im)
    (chosen,) = select_variants(made)
    assert chosen["key"] == plan[1].key
    assert describe_tuned_weights([chosen]) == [
        "sum: dev chose the weights 1 source + 0.1 alignment + 0.3 target + 0.3 propagation (1 of 1)."
    ]
    made[8] = {**made[8], "judge": ""}  # made before, as the plain sum that it is
    assert select_variants(made)[0]["key"] == plan[1].key
    assert select_variants(rows("im", dev, im)[1])[0]["key"] == plan[0].key
    _, made = rows("ensemble", dev, im)
    assert select_variants(made)[0]["key"] == plan[2].key, "the best mean rank is neither's first"
    untuned = [{**row, "judge": ""} for row in made]
    assert select_variants(untuned)[0]["key"] == plan[2].key
    assert describe_tuned_weights(select_variants(untuned)) == []


def test_another_judge_needs_no_new_runs():
    _, made = rows("dev", range(9), range(9))
    plan = tune_weights(specs(SUM), "im")
    assert {row["judge"] for row in collect_results(made, plan)} == {"im"}


def test_the_command_tunes_and_says_what_was_chosen(inside, features, tmp_path):
    given = ("bench", SUITE, "--data", features, "--tasks", "A-C", "--seeds", 1, "--jobs", 1, *FLAGS, "--json")
    given = (*given, "--methods", "dann", "--target-losses", "none", "--schemes", "linear", "--out", tmp_path)
    plain = inside(*given)
    assert plain.last_line["runs"] == 1
    end = inside(*given, "--tune-weights", "dev")
    assert end.code == 0, end.err
    assert end.last_line["runs"] == 3
    assert "3 runs, 1 are done already" in end.err
    assert "dann, sum: dev chose the weights 1 source + " in " ".join(end.err.split())
    nothing = inside(*given, "--tune-weights", "dev", "--loss-weights", "1,1")
    assert "no contender has it" in nothing.sentence
