import math

import pytest
import torch
from objectives.samples import Samples, gradients, silent, source_of, target_of

from paretoda.objectives import Dan, Ddc
from paretoda.objectives.alignment.dan import squared_mean_difference


def loss(objective, source, target):
    return objective(source_of(source, torch.zeros(len(source), 3)), target_of(target, torch.zeros(len(target), 3)))


def column(*values):
    return torch.tensor(values, dtype=torch.float64).unsqueeze(1)


def drawn(size, seed, width=4):
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(size, width, dtype=torch.float64, generator=generator)


@pytest.mark.parametrize(("estimator", "expected"), [("u", 0.768906), ("v", 1.162376), ("linear", 0.595422)])
def test_the_values_of_the_specification_when_the_bandwidth_comes_from_both_domains(estimator, expected):
    """The mean squared distance of 0, 1, 2, 3 is 2.5, of which 0.4 is 1."""
    objective = Dan(1, 3, estimator=estimator, scales=[0.4])
    assert loss(objective, column(0, 1), column(2, 3)).item() == pytest.approx(expected, abs=1e-6)


def test_the_kernels_are_added_up():
    source, target = drawn(5, 0), drawn(7, 1)
    each = [loss(Dan(4, 3, scales=[scale]), source, target).item() for scale in (0.125, 0.25, 0.5, 1.0, 2.0)]
    assert loss(Dan(4, 3), source, target).item() == pytest.approx(sum(each))


def test_turning_shifting_and_scaling_both_domains_changes_nothing():
    source, target = drawn(5, 0), drawn(7, 1)
    turn = torch.linalg.qr(drawn(4, 2)).Q
    before = loss(Dan(4, 3), source, target).item()
    for change in (lambda x: x @ turn, lambda x: x + 3, lambda x: 0.01 * x, lambda x: 100 * x):
        assert loss(Dan(4, 3), change(source), change(target)).item() == pytest.approx(before)
    assert loss(Dan(4, 3), source, target + 1).item() != pytest.approx(before, rel=1e-2)


def test_the_gradient_pulls_the_domains_together_and_a_step_lowers_the_value():
    source, target = column(0, 1, 2).requires_grad_(), column(4, 5).requires_grad_()
    for objective in (Dan(1, 3), Dan(1, 3, estimator="u"), Ddc(1, 3), Ddc(1, 3, kernel="gaussian")):
        value = loss(objective, source, target)
        pulls = torch.autograd.grad(value, [source, target])
        assert pulls[0].sum().item() < 0 < pulls[1].sum().item()
        assert loss(objective, source - 0.1 * pulls[0], target - 0.1 * pulls[1]).item() < value.item()


def test_the_bandwidth_is_a_constant_to_the_encoder():
    """A distance that did not feel a common scale would have no gradient along it."""
    source, target = drawn(5, 0).requires_grad_(), drawn(7, 1).requires_grad_()
    for objective in (Dan(4, 3), Ddc(4, 3, kernel="gaussian")):
        pulls = torch.autograd.grad(loss(objective, source, target), [source, target])
        along_scale = (pulls[0] * source).sum() + (pulls[1] * target).sum()
        assert abs(along_scale.item()) > 1e-3


def test_the_v_statistic_of_equal_batches_is_zero_and_the_others_show_their_chance():
    rows = drawn(6, 0)
    assert loss(Dan(4, 3), rows, rows).item() == pytest.approx(0, abs=1e-12)
    assert loss(Dan(4, 3, estimator="u"), rows, rows).item() < 0


def test_dan_has_no_warm_up_and_the_strength_scales_value_and_row():
    samples = Samples()
    weak, full = Dan(6, 3, strength=0.3), Dan(6, 3)
    full.advance(0.0)
    one, other = weak(*samples.batch()), full(*samples.batch())
    assert one.item() == pytest.approx(0.3 * other.item())
    for small, large in zip(gradients(one, samples.body()), gradients(other, samples.body()), strict=True):
        torch.testing.assert_close(small, 0.3 * large)


def test_the_heads_get_nothing():
    samples = Samples()
    for objective in (Dan(6, 3), Ddc(6, 3), Ddc(6, 3, kernel="gaussian")):
        assert silent(objective(*samples.batch()), samples.heads())


def test_ddc_is_a_quarter_of_the_squared_distance_of_the_means():
    source, target = torch.tensor([[1.0, 0.0], [3.0, 2.0]]), torch.tensor([[0.0, 1.0], [0.0, 3.0], [0.0, 5.0]])
    assert squared_mean_difference(source, target).item() == pytest.approx(2**2 + 2**2)
    assert loss(Ddc(2, 3), source, target).item() == pytest.approx(2)
    assert loss(Ddc(2, 3, strength=1.0), source, target).item() == pytest.approx(8)


def test_ddc_is_the_discrepancy_of_the_linear_kernel():
    source, target = drawn(5, 0), drawn(7, 1)
    expected = (source @ source.T).mean() + (target @ target.T).mean() - 2 * (source @ target.T).mean()
    assert squared_mean_difference(source, target).item() == pytest.approx(expected.item())


def test_ddcs_gaussian_is_dans_with_one_kernel():
    source, target = drawn(5, 0), drawn(7, 1)
    one = loss(Ddc(4, 3, kernel="gaussian"), source, target).item()
    assert one == pytest.approx(0.25 * loss(Dan(4, 3, scales=[1.0]), source, target).item())
    two = column(0.0, 2.0)  # mean squared distance 2: e^-1 across, 1 with itself
    assert loss(Ddc(1, 3, kernel="gaussian"), two[:1], two[1:]).item() == pytest.approx(0.25 * 2 * (1 - math.exp(-1)))


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: Dan(4, 3, estimator="w"), "estimator must be one of v, u, linear"),
        (lambda: Dan(4, 3, scales=[]), "scales are positive"),
        (lambda: Dan(4, 3, scales=[1.0, 0.0]), "scales are positive"),
        (lambda: Ddc(4, 3, kernel="cubic"), "kernel must be"),
    ],
)
def test_options_without_sense_are_refused(make, said):
    with pytest.raises(ValueError, match=said):
        make()
