import pytest
import torch
from objectives.samples import Samples
from torch.nn import functional

from paretoda.objectives.guide.neighbours import other_neighbours_prediction
from paretoda.objectives.guide.prototypes import class_means, nearest_prototype
from paretoda.objectives.target.agreement import UNDECIDED, Agreement


def test_a_sample_is_never_its_own_neighbour():
    features = torch.eye(4) + 0.01 * torch.ones(4, 4)
    features[1] = features[0]  # the first two are each other's only friend
    predictions = torch.eye(4)
    found = other_neighbours_prediction(features, predictions, 1)
    assert found[0].tolist() == predictions[1].tolist()
    assert found[1].tolist() == predictions[0].tolist()


def test_neighbours_are_those_of_a_plain_search_whatever_the_size_of_the_parts(monkeypatch):
    generator = torch.Generator().manual_seed(0)
    features, predictions = torch.randn(23, 5, generator=generator), torch.rand(23, 3, generator=generator)
    expected = []
    for i in range(23):
        others = [j for j in range(23) if j != i]
        cosines = functional.cosine_similarity(features[i], features[others])
        expected.append(predictions[[others[j] for j in cosines.topk(4).indices]].mean(0))
    for part in (1024, 7):
        monkeypatch.setattr("paretoda.objectives.neighbourhood._AT_ONCE", part)
        assert torch.allclose(other_neighbours_prediction(features, predictions, 4), torch.stack(expected))


def test_the_loss_is_the_cross_entropy_of_the_agreed_samples_alone():
    samples = Samples(target=40)
    objective = Agreement(samples.features, samples.classes, k=3, strength=1.0).double()
    snapshot = samples.snapshot()
    objective.refresh(snapshot)
    one = nearest_prototype(
        snapshot.target.features, class_means(snapshot.source.features, snapshot.source.labels, samples.classes)
    )
    other = other_neighbours_prediction(snapshot.target.features, snapshot.target.logits.softmax(1), 3).argmax(1)
    agreed = one == other
    assert 0 < agreed.sum() < 40
    batch = torch.tensor([7, 3, 30, 12, 39, 5, 21, 2])
    target = samples.target(batch)
    mine = agreed[batch]
    expected = functional.cross_entropy(target.logits[mine], one[batch][mine])
    assert objective(samples.source(), target).item() == pytest.approx(expected.item())
    objective.advance(0.0)
    assert objective(samples.source(), target).item() == 0


def test_where_nothing_agrees_the_loss_and_its_gradient_are_zero():
    samples = Samples()
    objective = Agreement(samples.features, samples.classes).double()
    objective.labels.replace(torch.full((21, 1), float(UNDECIDED), dtype=torch.float64))
    loss = objective(samples.source(), samples.target())
    assert loss.item() == 0
    loss.backward()
    assert all(torch.equal(p.grad, torch.zeros_like(p)) for p in samples.encoder.parameters())


def test_a_neighbour_count_below_one_is_refused():
    with pytest.raises(ValueError, match="k must be 1 or more"):
        Agreement(4, 3, k=0)
