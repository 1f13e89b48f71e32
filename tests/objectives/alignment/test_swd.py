import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from objectives.samples import Samples, adversary_fitted, gradients, silent
from scipy.optimize import linear_sum_assignment

from paretoda.objectives import Swd
from paretoda.objectives.alignment.mcd import disagreement, random_directions, sliced_wasserstein, sort_rows


def swd(samples, **options):
    torch.manual_seed(0)
    return Swd(features=samples.features, classes=samples.classes, hidden=16, **{"dropout": 0.0} | options).double()


def clouds(seed, n=6, width=4):
    generator = torch.Generator().manual_seed(seed)
    one, other = torch.randn(2, n, width, dtype=torch.float64, generator=generator)
    torch.manual_seed(seed)
    return one, other, random_directions(width, 10, one)


@given(st.integers(0, 1000))
def test_the_order_of_the_points_does_not_matter_and_neither_cloud_is_first(seed):
    one, other, directions = clouds(seed)
    shuffled = other[torch.randperm(6)]
    value = sliced_wasserstein(one, other, directions).item()
    assert value > 0
    assert sliced_wasserstein(one, shuffled, directions).item() == pytest.approx(value)
    assert sliced_wasserstein(other, one, directions).item() == pytest.approx(value)
    assert sliced_wasserstein(one, one.flip(0), directions).item() == pytest.approx(0, abs=1e-20)
    assert disagreement(one, one.flip(0)).item() > 0  # MCD compares sample by sample


def test_along_one_axis_it_is_the_mean_squared_distance_of_the_sorted_points():
    one, other = torch.tensor([[3.0, 9.0], [0.0, 9.0]]), torch.tensor([[1.0, -9.0], [5.0, -9.0]])
    assert sliced_wasserstein(one, other, torch.tensor([[1.0], [0.0]])).item() == pytest.approx((1 + 4) / 2)


@given(st.integers(0, 1000), st.integers(1, 30))
def test_of_one_number_it_is_the_wasserstein_distance(seed, n):
    one, other, directions = clouds(seed, n, width=1)
    costs = (one - other.T).square().numpy()
    cheapest = costs[linear_sum_assignment(costs)].mean()
    assert sliced_wasserstein(one, other, directions).item() == pytest.approx(cheapest)


@given(st.integers(0, 1000), st.integers(1, 19), st.floats(-10, 10))
def test_a_shift_is_seen_along_every_direction(seed, width, length):
    one, other, directions = clouds(seed, width=width)
    along = other[0]
    expected = length**2 * (along @ directions).square().mean().item()
    found = sliced_wasserstein(one, one + length * along, directions).item()
    assert found == pytest.approx(expected, rel=1e-6, abs=1e-20)


FLOATS = st.floats(width=32, allow_nan=False)
ROWS = st.integers(1, 40).flatmap(lambda n: st.lists(st.lists(FLOATS, min_size=n, max_size=n), min_size=1, max_size=4))
DIFFERENT = st.lists(FLOATS, min_size=1, max_size=60, unique=True).map(lambda row: [row])


@given(ROWS | DIFFERENT)
def test_rows_are_sorted_as_torch_sorts_them_and_every_number_is_used_once(values):
    ours = torch.tensor(values, requires_grad=True)
    found = sort_rows(ours)
    assert torch.equal(found, ours.sort(dim=-1).values)
    weights = torch.arange(1.0, found.shape[-1] + 1).expand_as(found)
    (gradient,) = torch.autograd.grad(found, ours, weights)
    assert torch.equal(gradient.sort(dim=-1).values, weights)


@given(DIFFERENT)
def test_without_ties_gradients_are_those_of_torchs_sort(values):
    points = torch.tensor(values, requires_grad=True)
    weights = torch.arange(1.0, points.shape[-1] + 1).expand_as(points)
    ours, theirs = (
        torch.autograd.grad(ranked, points, weights)[0] for ranked in (sort_rows(points), points.sort(dim=-1).values)
    )
    assert torch.equal(ours, theirs)


def test_nan_is_not_lost():
    values = torch.tensor([[3.0, float("nan"), -2.0, -float("nan"), 1.0]])
    found = sort_rows(values)
    assert found.isnan().sum() == 2
    assert found[~found.isnan()].tolist() == [-2.0, 1.0, 3.0]


@given(st.integers(0, 1000), st.integers(1, 60), st.integers(1, 11))
def test_float32_has_the_value_and_the_gradients_of_the_plain_formula(seed, n, width):
    one, other, directions = (values.float() for values in clouds(seed, n, width))

    def plain(one, other):
        ranked, other_ranked = ((points @ directions).sort(dim=0).values for points in (one, other))
        return (ranked - other_ranked).square().mean()

    found, expected = [], []
    for formula, out in ((lambda *points: sliced_wasserstein(*points, directions), found), (plain, expected)):
        points = [one.clone().requires_grad_(), other.clone().requires_grad_()]
        value = formula(*points)
        out += [value, *torch.autograd.grad(value, points)]
    for ours, theirs in zip(found, expected, strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-5, atol=1e-6)


def test_a_shifted_cloud_is_as_far_as_the_shift_over_k():
    one = clouds(0)[0]
    shift = torch.tensor([1.0, -2.0, 0.5, 3.0], dtype=torch.float64)
    torch.manual_seed(0)
    directions = random_directions(4, 200_000, one)
    torch.testing.assert_close(directions.norm(dim=0), torch.ones(200_000, dtype=torch.float64))
    expected = shift.square().sum().item() / 4
    assert sliced_wasserstein(one, one + shift, directions).item() == pytest.approx(expected, rel=0.01)


def test_directions_are_new_at_every_call_and_as_many_as_asked_for():
    samples = Samples()
    objective = swd(samples, directions=3, strength=1.0)
    assert objective(*samples.batch()).item() != objective(*samples.batch()).item()
    torch.manual_seed(5)
    found = objective(*samples.batch()).item()
    rows = torch.cat([domain.features for domain in samples.batch()])
    one, other = objective.classifiers(rows, "batch")[:, 9:].softmax(2)
    torch.manual_seed(5)
    assert found == pytest.approx(sliced_wasserstein(one, other, random_directions(3, 3, one)).item())
    with pytest.raises(ValueError, match="directions"):
        Swd(features=4, classes=3, directions=0)


def test_the_classifiers_raise_what_the_encoder_lowers():
    samples = Samples()
    objective = swd(samples, strength=20.0, directions=2000)
    start = objective(*samples.batch()).item()
    adversary_fitted(objective, samples, steps=60, lr=0.02)
    before = objective(*samples.batch())
    assert before.item() > 1.1 * start
    found = gradients(before, samples.body())
    size = 0.1 * before.item() / sum(gradient.square().sum().item() for gradient in found)
    for parameter, gradient in zip(samples.body(), found, strict=True):
        parameter.data -= size * gradient
    assert objective(*samples.batch()).item() < 0.99 * before.item()
    assert silent(before, samples.heads())


def test_the_private_loss_is_that_of_the_specification():
    samples = Samples()
    objective = swd(samples, strength=7.0, balance=0.0)
    source, target = samples.batch()
    logits = objective.classifiers(torch.cat([source.features, target.features]), "batch")
    errors = sum(-z.log_softmax(1)[torch.arange(9), source.labels].mean() for z in logits[:, :9])
    torch.manual_seed(1)
    apart = sliced_wasserstein(*logits[:, 9:].softmax(2), random_directions(3, 128, logits))
    torch.manual_seed(1)
    assert objective.private_loss(source, target).item() == pytest.approx((errors - 7 * apart).item())
