from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from paretoda.data.build_pair import make_pair
from paretoda.data.pair import DomainPair
from paretoda.data.settings import PairSettings
from paretoda.errors import DataError
from paretoda.types import Batch

settings_of = st.builds(
    PairSettings, seed=st.integers(0, 2**40), batch_size=st.integers(1, 60), class_balanced=st.booleans()
)


def data(n: int = 40, m: int = 27) -> tuple[tuple[np.ndarray, np.ndarray], np.ndarray]:
    """Row i of the source is (i, ...), of the target (1000 + i, ...): a sample tells who it is."""
    x = np.arange(n, dtype=np.float64)[:, None] + [0, 0.5]
    return (x, np.arange(n) % 3), 1000 + np.arange(m, dtype=np.float64)[:, None] + [0, 0.5]


def pair(settings: PairSettings, n: int = 40, m: int = 27) -> DomainPair:
    return make_pair(*data(n, m), replace(settings, scaling="none"))


def equal(one: Batch, two: Batch) -> bool:
    ours, theirs = one.tensors(), two.tensors()
    return ours.keys() == theirs.keys() and all(torch.equal(ours[name], theirs[name]) for name in ours)


@given(settings_of, st.integers(0, 500))
def test_a_batch_is_a_pure_function_of_seed_and_step(settings: PairSettings, step: int) -> None:
    used = pair(settings)
    for other in range(3):
        used.batch(other)
    assert equal(pair(settings).batch(step), used.batch(step))


@given(settings_of, st.integers(20, 50), st.integers(20, 50))
def test_a_batch_is_full_and_says_truly_who_is_in_it(settings: PairSettings, n: int, m: int) -> None:
    built = pair(settings, n, m)
    size = built.settings.batch_size
    assert size == min(settings.batch_size, len(built.source_train), len(built.target_train))
    for step in range(5):
        batch = built.batch(step)
        assert batch.source.shape == batch.target.shape == (size, 2)
        rows = built.source_train[batch.source_index.numpy()]
        assert batch.source[:, 0].tolist() == rows.tolist()
        assert batch.labels.tolist() == (rows % 3).tolist()
        assert (batch.target[:, 0] - 1000).tolist() == built.target_train[batch.target_index.numpy()].tolist()
        assert batch.guide is not None
        assert batch.guide_index is not None
        assert (batch.guide[:, 0] - 1000).tolist() == built.target_held_out[batch.guide_index.numpy()].tolist()


@given(st.integers(0, 2**40), st.integers(1, 30), st.integers(20, 40))
def test_every_sample_comes_equally_often(seed: int, size: int, m: int) -> None:
    built = pair(PairSettings(seed=seed, batch_size=size), m=m)
    size, n, m = built.settings.batch_size, len(built.source_train), len(built.target_train)
    steps = 2 * n * m // size + 1
    batches = [built.batch(step) for step in range(min(steps, 25))]
    for name, count in (("source_index", n), ("target_index", m)):
        drawn = torch.cat([getattr(batch, name) for batch in batches])
        often = torch.bincount(drawn, minlength=count)
        assert often.max() - often.min() <= 1


@given(settings_of)
def test_held_out_samples_are_never_trained_on(settings: PairSettings) -> None:
    built = pair(settings)
    seen = torch.cat([torch.cat([b.source[:, 0], b.target[:, 0] - 1000 + 10_000]) for b in map(built.batch, range(12))])
    held = [*built.source_held_out, *(built.target_held_out + 10_000)]
    assert held
    assert not set(seen.tolist()) & set(held)


def test_balanced_batches_draw_the_classes_equally_often() -> None:
    x = np.random.default_rng(0).normal(size=(100, 2))
    y = np.repeat([0, 1, 2], [80, 15, 5])
    built = make_pair((x, y), x, PairSettings(class_balanced=True, batch_size=30))
    for step in range(10):
        assert torch.bincount(built.batch(step).labels).tolist() == [10, 10, 10]


def test_seeds_change_splits_and_orders() -> None:
    one, two = pair(PairSettings(seed=1)), pair(PairSettings(seed=2))
    assert one.target_held_out.tolist() != two.target_held_out.tolist()
    assert one.batch(0).source.tolist() != two.batch(0).source.tolist()


def test_there_is_no_guide_where_none_is_wanted() -> None:
    assert pair(PairSettings()).batch(0, guide=False).guide is None
    nothing = pair(PairSettings(held_out=0))
    assert nothing.batch(0).guide is None
    assert len(nothing.source_train) == 40
    assert list(nothing.inputs("held-out-source", 8)) == []


def test_the_parts_are_walked_in_order_with_their_labels() -> None:
    built = pair(PairSettings(batch_size=8))
    for part, places in (
        ("source", built.source_train),
        ("held-out-source", built.source_held_out),
        ("all-source", np.arange(40)),
        ("target", built.target_train + 1000),
        ("held-out-target", built.target_held_out + 1000),
        ("all-target", np.arange(27) + 1000),
    ):
        assert torch.cat(list(built.inputs(part, 7)))[:, 0].tolist() == places.tolist()
        assert [int(name) for name in built.names(part)] == (places % 1000).tolist()
        if part.endswith("source"):
            assert built.labels_of(part).tolist() == (places % 3).tolist()
        else:
            with pytest.raises(DataError, match="only the source has"):
                built.labels_of(part)
    assert built.images("target", [1]).tolist() == built.target.samples.read([built.target_train[1]]).tolist()


def test_features_are_scaled_by_their_training_part_and_prediction_by_the_targets() -> None:
    (x, y), z = data()
    built = make_pair((x, y), z, PairSettings(scaling="per-domain"))
    for part in ("source", "target"):
        inputs = torch.cat(list(built.inputs(part, 100)))
        assert torch.allclose(inputs.mean(0), torch.zeros(2), atol=1e-4)
        assert torch.allclose(inputs.std(0, correction=0), torch.ones(2), atol=1e-4)
    assert torch.equal(built.prediction_transform().evaluate(z), torch.cat(list(built.inputs("all-target", 100))))


def test_a_pair_of_features_keeps_splits_order_and_labels() -> None:
    images = np.random.default_rng(0).integers(0, 256, (40, 8, 8), dtype=np.uint8)
    built = make_pair((images, np.arange(40) % 2), images[:30], PairSettings(batch_size=6, scaling="none"))
    assert built.kind == "images"
    assert built.input_shape == (1, 8, 8)
    features = built.with_features(torch.arange(80.0).reshape(40, 2), torch.arange(60.0).reshape(30, 2))
    assert features.kind == "features"
    assert features.input_shape == (2,)
    for step in range(20):
        before, after = built.batch(step), features.batch(step)
        assert torch.equal(before.labels, after.labels)
        assert torch.equal(before.target_index, after.target_index)
        assert after.source[:, 0].tolist() == (2 * built.source_train[before.source_index.numpy()]).tolist()
    with pytest.raises(DataError, match="all samples"):
        built.with_features(torch.zeros(36, 2), torch.zeros(30, 2))


def test_augmentation_differs_between_steps_and_not_between_calls() -> None:
    # All images are the same one, so that only chance can make batches differ.
    image = np.random.default_rng(0).integers(0, 256, (1, 16, 16, 3), dtype=np.uint8)
    images = np.repeat(image, 40, axis=0)
    settings = PairSettings(augment="strong", batch_size=8)
    one, two = (make_pair((images, np.arange(40) % 2), images, settings) for _ in range(2))
    assert equal(one.batch(7), two.batch(7))
    assert not torch.equal(one.batch(0).source, one.batch(1).source)
    assert not torch.equal(one.batch(0).source, one.batch(0).target)
    guide = one.batch(0).guide
    assert guide is not None
    assert torch.equal(guide, guide[:1].expand_as(guide))  # never augmented
