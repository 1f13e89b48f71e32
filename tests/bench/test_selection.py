"""Of several variants label-free scores choose, and accuracy has no say."""

from bench.made import SUM, specs

from paretoda.bench.contenders import select_variants


def row(lr, score, accuracy, **more):
    scores = {"im": score, "mixval": score, "mano": score, "entropy": -score}
    facts = {**specs(SUM)[0].line, "variant": {"lr": lr}, "scores": scores}
    return {**facts, "accuracy": {"chosen": accuracy, "last": accuracy}, **more}


def test_the_scores_choose_and_the_accuracy_does_not():
    rows = [row(0.1, 1.0, 0.9), row(0.2, 3.0, 0.1), row(0.3, 2.0, 0.5)]
    for order in (rows, rows[::-1]):
        assert [kept["variant"] for kept in select_variants(order)] == [{"lr": 0.2}]
    swapped = [{**each, "accuracy": {"chosen": 1 - each["accuracy"]["chosen"]}} for each in rows]
    assert [kept["variant"] for kept in select_variants(swapped)] == [{"lr": 0.2}]


def test_a_variant_that_failed_or_diverged_is_not_chosen():
    broken = {key: value for key, value in row(0.1, 9.0, 0.9).items() if key not in ("scores", "accuracy")}
    rows = [{**broken, "error": "died"}, row(0.2, float("nan"), 0.9), row(0.3, -5.0, 0.5)]
    assert [kept["variant"] for kept in select_variants(rows)] == [{"lr": 0.3}]
    assert "error" in select_variants(rows[:1])[0]


def test_every_contender_task_and_seed_keeps_one_row_in_order():
    rows = [row(0.1, 1.0, 0.5, seed=seed, name=name) for seed in (0, 1) for name in "ba"]
    rows += [row(0.2, 2.0, 0.5, seed=0, name="b")]
    kept = select_variants(rows)
    assert [(each["seed"], each["name"], each["variant"]["lr"]) for each in kept] == [
        (0, "b", 0.2),
        (0, "a", 0.1),
        (1, "b", 0.1),
        (1, "a", 0.1),
    ]
