"""Pixels as rows: which, how many, with which labels."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from objectives.segmentation.scenes import Scenes

from paretoda.maps import resize_labels
from paretoda.objectives import Coral, Information, Tcm
from paretoda.objectives.segmentation.pixel_objective import AtPixels, at_pixels, pixel_rows, zero_loss
from paretoda.types import IGNORE, Objective, Source, Target

SIZES = st.tuples(st.integers(1, 3), st.integers(1, 4), st.integers(1, 5), st.integers(1, 5))


def maps(size, seed=0):
    """Features that say where they are: image, row, column; logits likewise, with a class axis."""
    n, classes, height, width = size
    axes = torch.meshgrid(torch.arange(n), torch.arange(height), torch.arange(width), indexing="ij")
    features = torch.stack(axes, 1).double()
    logits = torch.randn(n, classes, height, width, generator=torch.Generator().manual_seed(seed))
    return features, logits


@given(SIZES, st.integers(0, 100), st.integers(1, 30))
def test_rows_are_pixels_with_their_own_features_logits_and_labels(size, seed, most):
    features, logits = maps(size, seed)
    n, _, height, width = size
    labels = torch.randint(0, 3, (n, height, width), generator=torch.Generator().manual_seed(seed))
    labels[labels == 2] = IGNORE
    torch.manual_seed(seed)
    source = pixel_rows(Source(features, logits, torch.arange(n), labels=labels), most)
    target = pixel_rows(Target(features, logits, torch.arange(n)), most)
    assert len(target.features) == min(most, n * height * width)
    assert len(source.features) == min(most, int((labels != IGNORE).sum()))
    for rows in (source, target):
        at = tuple(rows.features.long().T)
        assert len(set(zip(*(part.tolist() for part in at), strict=True))) == len(rows.features), "none twice"
        torch.testing.assert_close(rows.logits, logits.permute(0, 2, 3, 1)[at])
        assert rows.index.tolist() == list(range(len(rows.features)))
        assert rows.head is None
    assert source.labels.tolist() == labels[tuple(source.features.long().T)].tolist()
    assert not hasattr(target, "labels")


def test_the_choice_follows_torchs_seed_and_changes_from_step_to_step():
    features, logits = maps((2, 3, 9, 9))
    domain = Target(features, logits, torch.arange(2))
    chosen = []
    for seed in (0, 0, 1):
        torch.manual_seed(seed)
        chosen.append(pixel_rows(domain, 20).features)
    assert chosen[0].equal(chosen[1])
    assert not chosen[0].equal(chosen[2])
    images = [float(pixel_rows(domain, 20).features[:, 0].mean()) for _ in range(200)]
    assert sum(images) / 200 == pytest.approx(0.5, abs=0.03), "all images alike"


@given(st.integers(2, 6), st.integers(2, 6), st.integers(1, 5))
def test_nearest_labels_stand_where_enlarged_logits_do(height, width, factor):
    """Of a map that was enlarged corner to corner by whole steps, exactly the first labels come back."""
    coarse = torch.randint(0, 19, (2, height, width), generator=torch.Generator().manual_seed(factor))
    fine = torch.full((2, (height - 1) * factor + 1, (width - 1) * factor + 1), IGNORE)
    fine[:, ::factor, ::factor] = coarse
    assert resize_labels(fine, (height, width)).equal(coarse)
    assert resize_labels(coarse, (height, width)).equal(coarse)


def test_labels_are_never_mixed():
    labels = torch.tensor([[[0, 18], [IGNORE, 7]]]).repeat_interleave(8, 1).repeat_interleave(8, 2)
    assert set(resize_labels(labels, (5, 7)).flatten().tolist()) <= {0, 7, 18, IGNORE}


def test_what_is_ignored_contributes_nothing():
    scenes = Scenes()
    labels = torch.full_like(scenes.labels, IGNORE)
    labels[:, :, :20] = 1
    objective = AtPixels(Coral(6, 4), most=10**6)
    source, target = scenes.source(labels), scenes.target()
    (gradient,) = torch.autograd.grad(objective(source, target), source.features)
    assert gradient[..., :4].any()
    assert not gradient[..., 6:].any()


def test_the_same_as_the_inner_objective_on_rows_made_by_hand():
    scenes = Scenes()
    scenes.labels = scenes.labels.clamp(max=3)
    source, target = scenes.batch()
    torch.manual_seed(0)
    inner = Tcm(6, 4, width=8).double()
    labels = resize_labels(scenes.labels, (8, 10)).flatten()
    rows = [(d.features.movedim(1, 3).flatten(0, 2), d.logits.movedim(1, 3).flatten(0, 2)) for d in (source, target)]
    by_hand = Source(*rows[0], torch.arange(160), labels=labels), Target(*rows[1], torch.arange(160))
    wrapped = AtPixels(inner)
    assert wrapped(source, target).item() == pytest.approx(inner(*by_hand).item())
    assert wrapped.private_loss(source, target).item() == pytest.approx(inner.private_loss(*by_hand).item())


class Recorder(Objective):
    encoder_updates = 3

    def __init__(self, features, classes):
        super().__init__()
        self.seen, self.shape = [], (features, classes)

    def forward(self, source, target):
        self.seen.append((len(source.features), len(target.features)))
        return target.logits.sum()

    def advance(self, progress):
        self.seen.append(progress)

    def refresh(self, snapshot):
        self.seen.append(snapshot)


def test_everything_is_passed_on():
    objective = at_pixels(Recorder)(features=6, classes=4, most=17)
    assert objective.encoder_updates == 3
    assert objective.refreshes
    objective.advance(0.25)
    snapshot = Scenes().snapshot()
    objective.refresh(snapshot)
    objective(*Scenes().batch())
    assert objective.inner.seen == [0.25, snapshot, (17, 17)]
    assert objective.private_loss(*Scenes().batch()) is None


def test_without_a_labelled_pixel_nothing_is_said_and_the_graph_is_there():
    scenes = Scenes()
    objective = AtPixels(Tcm(6, 4, width=8).double())
    loss = objective(scenes.unlabelled(), scenes.target())
    assert loss.item() == 0
    assert all(not gradient.any() for gradient in torch.autograd.grad(loss, scenes.body()))
    private = objective.private_loss(scenes.unlabelled(), scenes.target())
    assert private.item() == 0
    assert all(not gradient.any() for gradient in torch.autograd.grad(private, list(objective.parameters())))


def test_nothing_is_zero_of_everything():
    tensor = torch.tensor([float("inf"), float("nan")], requires_grad=True)
    assert zero_loss(tensor).item() == 0
    assert torch.autograd.grad(zero_loss(tensor), tensor)[0].tolist() == [0, 0]


def test_one_pixel_is_too_few():
    with pytest.raises(ValueError, match="most must be 2 or more"):
        AtPixels(Information(2, 3), most=1)
