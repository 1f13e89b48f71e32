import pytest
import torch
from objectives.samples import Samples
from torch.nn import functional

from paretoda.objectives.parts.neighbours import find_mutual, find_nearest
from paretoda.objectives.target.propagation import Propagation, propagate
from paretoda.types import Snapshot, Target


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
    ],
)
def test_options_without_sense_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        Propagation(4, 3, **options)
