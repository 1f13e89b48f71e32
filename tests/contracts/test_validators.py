"""What every validator must be: listed, configured by its fields, finite, repeatable, and on the side of the good."""

import dataclasses
import inspect
import math
from pathlib import Path

import pytest
import torch
from evaluation.snapshots import clusters, collapsed, noise, permuted

import paretoda.evaluation.validators
from paretoda.evaluation.validators import COMPARABLE, ENSEMBLE, VALIDATORS, make_validator

SHARED = {"validator", "sampling"}
"""Files that hold no validator: the type, and the draws that several of them need."""


def test_every_file_is_in_the_table():
    folder = Path(inspect.getfile(paretoda.evaluation.validators)).parent
    files = {path.stem for path in folder.glob("*.py") if not path.stem.startswith("_")}
    assert files - SHARED == {make.__module__.rsplit(".", 1)[1] for make in VALIDATORS.values()}
    assert set(ENSEMBLE) <= set(VALIDATORS)
    assert set(COMPARABLE) <= set(VALIDATORS)


def test_an_unknown_name_is_answered_with_the_nearest():
    with pytest.raises(ValueError, match="did you mean 'entropy'"):
        make_validator("entropie")
    with pytest.raises(ValueError, match="choose from im, entropy"):
        make_validator("zzz")


@pytest.mark.parametrize("name", VALIDATORS)
def test_it_is_a_frozen_dataclass(name):
    one, two = VALIDATORS[name](), make_validator(name)
    assert one == two
    assert hash(one) == hash(two)
    assert dataclasses.is_dataclass(one)
    with pytest.raises(dataclasses.FrozenInstanceError):
        one.anything = 1
    assert type(one).__doc__
    assert inspect.getmodule(type(one)).__doc__


SMALL = [(1, 2), (1, 65), (2, 2), (2, 65), (3, 10), (7, 2), (130, 65)]


@pytest.mark.parametrize("name", VALIDATORS)
def test_the_score_is_a_finite_float_for_few_samples_many_classes_and_saturated_predictions(name):
    score = VALIDATORS[name]()
    for n, classes in SMALL:
        for snapshot in [
            clusters(n, classes, 1.0),
            clusters(n, classes, 1e4),
            clusters(n, classes, 0.0),
            noise(n, classes),
            collapsed(n, classes, 1e4),
            collapsed(n, classes, 0.0),
        ]:
            value = score(snapshot)
            assert type(value) is float
            assert math.isfinite(value), (n, classes)


@pytest.mark.parametrize("name", VALIDATORS)
def test_it_is_the_same_again_and_leaves_the_worlds_random_numbers_alone(name):
    snapshot = clusters(60, 5, 5.0)
    snapshot.model.train()
    before = torch.get_rng_state()
    first = VALIDATORS[name]()(snapshot)
    assert VALIDATORS[name]()(snapshot) == first
    assert torch.equal(torch.get_rng_state(), before)
    assert snapshot.model.training


@pytest.mark.parametrize("name", VALIDATORS)
@pytest.mark.parametrize("make", [lambda: clusters(40, 4, 3.0), lambda: noise(40, 4)], ids=["clusters", "noise"])
def test_the_order_of_the_samples_does_not_matter(name, make):
    snapshot = make()
    assert VALIDATORS[name]()(permuted(snapshot)) == pytest.approx(VALIDATORS[name]()(snapshot), rel=1e-6, abs=1e-9)


@pytest.mark.parametrize("name", VALIDATORS)
@pytest.mark.parametrize("classes", [2, 5, 12])
def test_separated_predictions_score_at_least_as_well_as_noise(name, classes):
    for n in (2, 60, 240):
        for seed in range(3):
            good, bad = clusters(n, classes, 30.0, seed), noise(n, classes, seed)
            assert VALIDATORS[name]()(good) >= VALIDATORS[name]()(bad), (n, seed)


@pytest.mark.parametrize("name", sorted(set(VALIDATORS) - {"entropy"}))
def test_all_but_entropy_prefer_separated_predictions_to_collapsed_ones(name):
    good, bad = clusters(60, 5, 30.0), collapsed(60, 5, 30.0)
    bad = dataclasses.replace(bad, held_out_source=dataclasses.replace(bad.source))
    assert VALIDATORS[name]()(good) > VALIDATORS[name]()(bad)


@pytest.mark.parametrize("name", VALIDATORS)
def test_double_precision_makes_no_difference(name):
    double = clusters(60, 5, 5.0, dtype=torch.float64)
    single = dataclasses.replace(
        double,
        **{
            part: dataclasses.replace(old, features=old.features.float(), logits=old.logits.float())
            for part in ("source", "held_out_source", "target")
            for old in [getattr(double, part)]
        },
    )
    assert VALIDATORS[name]()(single) == pytest.approx(VALIDATORS[name]()(double), rel=1e-4, abs=1e-5)


@pytest.mark.parametrize("name", VALIDATORS)
def test_target_labels_have_no_place(name):
    assert not hasattr(clusters(4, 2, 1.0).target, "labels")
    assert "oracle" not in inspect.getsource(inspect.getmodule(VALIDATORS[name]))
