"""Sources with values: what is read, what is refused with a sentence, and how values are standardised."""

import numpy as np
import pytest
from PIL import Image

from paretoda.data import PairSettings
from paretoda.data.doctor.values import examine_values
from paretoda.data.values import make_value_pair, open_values
from paretoda.errors import DataError

RNG = np.random.default_rng(0)
X, Z = RNG.normal(size=(60, 4)), RNG.normal(size=(40, 4))
Y = RNG.normal(1000, 50, size=60)


def test_values_are_standardised_by_the_training_part_of_the_source():
    pair = make_value_pair((X, Y), Z, PairSettings(batch_size=8))
    trained = Y[pair.source_train]
    assert (pair.mean, pair.deviation) == (pytest.approx(trained.mean()), pytest.approx(trained.std()))
    np.testing.assert_allclose(pair.mean + pair.deviation * pair.labels, Y, rtol=1e-5)
    assert len(pair.source_held_out) == 6
    assert not set(pair.source_held_out) & set(pair.source_train)


def test_values_of_held_out_samples_do_not_change_the_scale():
    held = make_value_pair((X, Y), Z).source_held_out
    changed = Y.copy()
    changed[held] = 1e6
    assert make_value_pair((X, changed), Z).mean == make_value_pair((X, Y), Z).mean


def test_values_of_the_target_are_never_read():
    pair = make_value_pair((X, Y), (Z, np.full(40, np.nan)))
    assert len(pair.target_train) == 36


def test_an_npz_and_a_list_of_paths_and_values_are_sources(tmp_path):
    np.savez(tmp_path / "s.npz", x=X, y=Y[:, None])
    samples, values = open_values(tmp_path / "s.npz")
    assert samples.labels is None
    np.testing.assert_array_equal(values, Y)
    lines = []
    for place in range(6):
        Image.fromarray(np.full((8, 8), 40 * place, np.uint8)).save(tmp_path / f"{place}.png")
        lines.append(f"{place}.png {place / 4 - 1}")
    (tmp_path / "list.txt").write_text("\n".join(lines))
    samples, values = open_values(tmp_path / "list.txt")
    assert samples.kind == "images"
    assert values.tolist() == [-1, -0.75, -0.5, -0.25, 0, 0.25]


def test_values_stay_with_their_images_where_a_bad_one_is_left_out(tmp_path):
    for place in (0, 2):
        Image.fromarray(np.full((8, 8), 40 * place, np.uint8)).save(tmp_path / f"{place}.png")
    (tmp_path / "1.png").write_bytes(b"no image")
    (tmp_path / "list.txt").write_text("0.png 0.5\n1.png 1.5\n2.png 2.5\n")
    samples, values = open_values(tmp_path / "list.txt", skip_bad=True)
    assert (len(samples), values.tolist()) == (2, [0.5, 2.5])


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (np.array(["cat"] * 60), "instead of numbers"),
        (np.where(np.arange(60) == 7, np.nan, Y), r"the value in row 7 is NaN \(1 of 60 are\)"),
        (np.where(np.arange(60) == 7, np.inf, Y), "the value in row 7 is infinite"),
        (np.ones(60), "all samples of the source have the value 1"),
        (np.stack([Y, Y], axis=1), "one number per sample, and train a run for each"),
        (Y[:50], "60 samples but 50 values"),
        (Y.astype(complex), "instead of numbers"),
    ],
)
def test_what_is_no_value_is_refused_and_the_doctor_says_the_same(values, message):
    with pytest.raises(DataError, match=message):
        make_value_pair((X, values), Z)
    errors = [finding.message for finding in examine_values((X, values), Z) if finding.severity == "error"]
    assert len(errors) == 1
    with pytest.raises(DataError, match=message):
        raise DataError(errors[0])


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ((X, Y, ["a", "b"]), r"give \(x, y\)"),
        (X, "no source of values"),
        ((X[:3], Y[:3]), "collect at least"),
        ((X[:, :2], Y), "give both the same features"),
        ((np.where(X > 2, np.nan, X), Y), "is NaN"),
    ],
)
def test_other_sources_are_refused(source, message):
    with pytest.raises(DataError, match=message):
        make_value_pair(source, Z)


def test_a_list_with_words_for_labels_is_refused(tmp_path):
    for name in "ab":
        Image.fromarray(np.zeros((8, 8), np.uint8)).save(tmp_path / f"{name}.png")
    (tmp_path / "list.txt").write_text("a.png cat\nb.png 2\n")
    with pytest.raises(DataError, match=r"the label 'cat' of .* is no number"):
        open_values(tmp_path / "list.txt")


def test_the_doctor_reports_range_outliers_and_values_that_look_like_classes():
    wild = Y.copy()
    wild[5] = 1e9
    told = {name: examine_values((X, values), Z) for name, values in (("wild", wild), ("classes", Y > 1000.0))}
    assert any("in row 5" in finding.message for finding in told["wild"])
    assert any("instead of numbers" in finding.message for finding in told["classes"])
    told = examine_values((X, (Y > 1000).astype(int)), Z)
    assert any("only 2 different values (0, 1)" in finding.message for finding in told)
    assert any("values from" in finding.message for finding in examine_values((X, Y), Z))
