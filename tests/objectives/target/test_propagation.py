import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from objectives.samples import Samples
from torch.nn import functional

from paretoda.objectives.parts.neighbours import find_mutual, find_nearest
from paretoda.objectives.parts.selective_pseudo_labels import label_selectively
from paretoda.objectives.target.propagation import (
    Propagation,
    measure_graph,
    propagate,
    sharpen_to,
    weigh_neighbours,
)
from paretoda.types import Snapshot, Source, Target


def test_a_sample_is_never_its_own_neighbour():
    features = torch.eye(4) + 0.01 * torch.ones(4, 4)
    features[1] = features[0]  # the first two are each other's only friend
    assert find_nearest(features, 1)[:2].tolist() == [[1], [0]]


def test_neighbours_are_those_of_a_plain_search_whatever_the_size_of_the_parts(monkeypatch):
    features = torch.randn(23, 5, generator=torch.Generator().manual_seed(0))
    expected = []
    for i in range(23):
        others = [j for j in range(23) if j != i]
        cosines = functional.cosine_similarity(features[i], features[others])
        expected.append([others[j] for j in cosines.topk(4).indices])
    for part in (1024, 7):
        monkeypatch.setattr("paretoda.objectives.parts.neighbours._AT_ONCE", part)
        assert find_nearest(features, 4).tolist() == expected


def test_mutual_neighbours_are_those_of_a_plain_search():
    features = torch.randn(30, 4, generator=torch.Generator().manual_seed(1))
    places = find_nearest(features, 4)
    found = find_mutual(places)
    sets = [set(row.tolist()) for row in places]
    expected = [[i in sets[j] for j in row.tolist()] for i, row in enumerate(places)]
    assert found.tolist() == expected
    assert 0 < found.sum() < found.numel()


def test_with_few_samples_the_missing_neighbours_are_the_sample_itself():
    places = find_nearest(torch.eye(3), 5)
    assert places[:, 2:].tolist() == [[i] * 3 for i in range(3)]
    assert sorted(places[0, :2].tolist()) == [1, 2]
    predictions = torch.tensor([[0.9, 0.1], [0.2, 0.8], [0.5, 0.5]])
    alone = propagate(predictions, places, torch.zeros(3, 5), rounds=3)
    assert torch.equal(alone, predictions)


def test_rounds_of_propagation_are_powers_of_the_averaging_matrix():
    generator = torch.Generator().manual_seed(2)
    predictions = torch.rand(12, 3, generator=generator, dtype=torch.float64).softmax(1)
    places = find_nearest(torch.randn(12, 4, generator=generator, dtype=torch.float64), 3)
    shares = find_mutual(places).double() / 3
    matrix = torch.zeros(12, 12, dtype=torch.float64)
    for i in range(12):
        for j, share in zip(places[i], shares[i], strict=True):
            matrix[i, j] += share
        matrix[i, i] += 1 - shares[i].sum()
    matrix = (torch.eye(12, dtype=torch.float64) + matrix) / 2
    expected = torch.linalg.matrix_power(matrix, 4) @ predictions
    found = propagate(predictions, places, shares, rounds=4)
    assert torch.allclose(found, expected)
    assert torch.allclose(found.sum(1), torch.ones(12, dtype=torch.float64))


def snapshot_with(samples, inputs):
    plain = samples.snapshot()
    return Snapshot(
        plain.source, plain.source, plain.target, plain.held_out_target, samples.model, lambda: iter(inputs)
    )


def test_the_loss_is_the_cross_entropy_to_what_comes_out_weighted_by_its_lead():
    samples = Samples(target=40)
    objective = Propagation(samples.features, samples.classes, k=4, rounds=3, strength=0.7).double()
    snapshot = samples.snapshot()
    objective.refresh(snapshot)
    places = find_nearest(samples.inputs["target"], 4)
    shares = find_mutual(places).double() / 4
    spread = propagate(snapshot.target.logits.softmax(1), places, shares, rounds=3)
    first, second = spread.sort(1, descending=True).values[:, :2].T
    batch = torch.tensor([3, 30, 12, 39])
    target = samples.target(batch)
    losses = functional.cross_entropy(target.logits, spread.argmax(1)[batch], reduction="none")
    expected = 0.7 * ((first - second)[batch] * losses).mean()
    assert objective(samples.source(), target).item() == pytest.approx(expected.item())


def test_images_have_the_neighbours_of_their_first_features_and_keep_them():
    samples = Samples(target=30)
    images = samples.inputs["target"].reshape(30, 1, 5, 1)
    objective = Propagation(samples.features, samples.classes, k=3).double()
    snapshot = snapshot_with(samples, [images])
    objective.refresh(snapshot)
    first = find_nearest(snapshot.target.features, 3)
    assert torch.equal(objective.graph().long(), first)
    moved = Target(snapshot.target.features.flip(0), snapshot.target.logits, snapshot.target.index)
    objective.refresh(
        Snapshot(
            snapshot.source,
            snapshot.source,
            moved,
            snapshot.held_out_target,
            samples.model,
            lambda: iter([images]),
        )
    )
    assert torch.equal(objective.graph().long(), first)


def test_the_labels_of_an_untrained_model_and_the_first_fifth_count_nothing():
    samples = Samples()
    objective = Propagation(samples.features, samples.classes).double()
    objective.advance(0.0)
    objective.refresh(samples.snapshot())
    objective.advance(0.5)
    assert objective(samples.source(), samples.target()).item() == 0
    objective.refresh(samples.snapshot())
    whole = objective(samples.source(), samples.target()).item()
    assert whole > 0
    for progress, share in ((0.1, 0.0), (0.3, 0.5), (0.4, 1.0), (1.0, 1.0)):
        objective.advance(progress)
        assert objective(samples.source(), samples.target()).item() == pytest.approx(share * whole)


def test_a_hub_does_not_spread_its_label():
    """The mean direction of all is near to every sample; it chooses few of them back."""
    ring = torch.eye(12) + 0.2
    features = torch.cat([ring, ring.mean(0, keepdim=True)])
    places = find_nearest(features, 3)
    hub = places[:12] == 12
    assert hub.any(1).all()
    assert (find_mutual(places)[:12] & hub).sum() == 3


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"k": 0}, "k and rounds"),
        ({"rounds": 0}, "k and rounds"),
        ({"start": 0.5, "full": 0.4}, "shares"),
        ({"strength": 0.0}, "positive"),
        ({"selective": 1.5}, "from 0 to 1"),
    ],
)
def test_options_without_sense_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        Propagation(4, 3, **options)


@given(st.integers(0, 10_000), st.floats(0.35, 0.99))
def test_sharpening_reaches_the_wanted_confidence_and_keeps_the_order(seed, confidence):
    generator = torch.Generator().manual_seed(seed)
    rows = torch.rand(20, 3, generator=generator, dtype=torch.float64).softmax(1)
    sharp = sharpen_to(rows, confidence)
    assert sharp.amax(1).mean().item() == pytest.approx(confidence, abs=1e-6)
    assert torch.equal(sharp.argsort(1), rows.argsort(1))


def test_the_measure_of_a_graph_is_the_closed_form():
    """Voters agree on 4 of 5 samples; of these, one has a neighbour with another label: (3/4 - 4/5) / (1/5)."""
    one, other = torch.eye(2)[[0, 0, 1, 1, 0]], torch.eye(2)[[0, 0, 1, 1, 1]]
    places = torch.tensor([[1], [0], [3], [0], [1]])
    found = measure_graph(one, other, one.argmax(1), places, torch.ones(5, 1))
    assert found == pytest.approx((3 / 4 - 4 / 5) / (1 / 5))
    assert measure_graph(one, one, one.argmax(1), places, torch.ones(5, 1)) == 1  # nothing to settle
    assert measure_graph(one, other, one.argmax(1), places, torch.zeros(5, 1)) == 0  # nobody has a neighbour


def test_neighbours_weigh_the_same_and_the_sample_itself_weighs_nothing():
    places = torch.tensor([[1, 2], [0, 1], [0, 2]])  # the second and third have one neighbour only
    assert weigh_neighbours(places).tolist() == [[0.5, 0.5], [1.0, 0.0], [1.0, 0.0]]


def _drawn(source, labels, target, answers, correct, classes=3):
    """Return a snapshot of inputs, with a model that is right on so many of the target's samples."""
    said = answers.clone()
    said[correct:] = (said[correct:] + 1) % classes
    rows = Source(source, torch.zeros(len(source), classes), torch.arange(len(source)), labels=labels)
    points = Target(target, 3.0 * functional.one_hot(said, classes), torch.arange(len(target)))
    return Snapshot(rows, rows, points, points, None, lambda: iter([target]), lambda: iter([source]))


def _numpy(*tensors):
    return [tensor.numpy() for tensor in tensors]


def _blobs(noise):
    generator = torch.Generator().manual_seed(3)
    centres, labels = 4 * torch.eye(3, 8), torch.arange(90) % 3
    source = centres[labels] + torch.randn(90, 8, generator=generator)
    order = torch.randperm(90, generator=generator)
    target = centres[labels] + torch.randn(90, 8, generator=generator) + 0.5
    return source, labels, (target + noise * torch.randn(90, 8, generator=generator))[order], labels[order]


def test_half_of_the_vote_are_selective_pseudo_labels_as_confident_as_the_predictions():
    source, labels, target, answers = _blobs(noise=0.0)
    snapshot = _drawn(source, labels, target, answers, correct=60)
    objective = Propagation(8, 3, k=5, rounds=2)
    objective.refresh(snapshot)
    predictions = snapshot.target.logits.softmax(1)
    selected = torch.from_numpy(label_selectively(*_numpy(source, labels, target), 3, components=(8, 4, 3))).float()
    assert (selected.argmax(1) == answers).all()
    vote = (predictions + sharpen_to(selected, predictions.amax(1).mean().item())) / 2
    places = find_nearest(target, 5)
    spread = propagate(vote, places, weigh_neighbours(places), rounds=2)
    assert objective.trust == 1
    assert objective.describe_trust() is None
    wanted = objective.wanted()
    assert torch.equal(wanted.argmax(1), spread.argmax(1))
    assert torch.allclose(wanted.sum(1), spread.topk(2).values[:, 0] - spread.topk(2).values[:, 1], atol=1e-6)
    assert (wanted.argmax(1) == answers).double().mean() > 0.95  # two thirds before the vote


@pytest.mark.parametrize(("classes", "components"), [(3, (128, 64, 32)), (12, (144, 72, 36))])
def test_wide_inputs_are_labelled_by_128_components_or_12_per_class_at_most(classes, components):
    generator = torch.Generator().manual_seed(5)
    source, target = (torch.randn(80, 150, generator=generator) for _ in range(2))
    labels = torch.arange(80) % classes
    objective = Propagation(8, classes)
    objective.refresh(_drawn(source, labels, target, labels, correct=20, classes=classes))
    expected = label_selectively(*_numpy(source, labels, target), classes, components=components)
    assert torch.allclose(objective.selected(), torch.from_numpy(expected).float(), atol=1e-6)


def test_a_graph_that_does_not_know_the_classes_is_not_used():
    """Half of the inputs are topics: neighbours have the same topic, which says nothing of the class."""
    source, labels, target, answers = _blobs(noise=0.0)
    generator = torch.Generator().manual_seed(4)
    topics = 12 * torch.randn(15, 8, generator=generator)
    source = torch.cat([source, topics[torch.randint(15, (90,), generator=generator)]], 1)
    target = torch.cat([target, topics[torch.randint(15, (90,), generator=generator)]], 1)
    objective = Propagation(8, 3)
    objective.refresh(_drawn(source, labels, target, answers, correct=85))
    assert objective.trust == 0
    assert objective.wanted().sum() == 0
    assert objective.describe_trust().endswith("so the loss 'propagation' was left out.")
    objective.trust.fill_(0.25)
    assert objective.describe_trust().endswith("so the loss 'propagation' counted 25 %.")


def test_the_trust_in_the_graph_is_measured_once_while_the_voters_are_independent():
    source, labels, target, answers = _blobs(noise=0.0)
    objective = Propagation(8, 3)
    objective.advance(0.0)
    objective.refresh(_drawn(source, labels, target, answers, correct=0))
    assert objective.trust.isnan()
    objective.advance(0.1)
    objective.refresh(_drawn(source, labels, target, answers, correct=60))
    assert objective.trust == 1
    objective.refresh(_drawn(source, labels, target, answers, correct=90))  # nothing left to settle
    assert objective.trust == 1


def test_small_targets_have_fewer_neighbours():
    samples = Samples(target=40)
    objective = Propagation(samples.features, samples.classes, k=10).double()
    objective.refresh(samples.snapshot())
    k = 40 // (3 * samples.classes)
    assert 1 < k < 10
    places = objective.graph().long()
    assert torch.equal(places[:, :k], find_nearest(samples.inputs["target"], k))
    assert torch.equal(places[:, k:], torch.arange(40).unsqueeze(1).expand(-1, 10 - k))
