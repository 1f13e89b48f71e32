import numpy as np
import pytest
import torch
from objectives.samples import Samples, gradients, silent, source_of, target_of

from paretoda.objectives import Coral
from paretoda.objectives.alignment.coral import coral, covariance, moment_distance


def drawn(size, seed, width=4):
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(size, width, dtype=torch.float64, generator=generator)


def test_the_value_of_the_specification():
    assert coral(torch.tensor([[1.0, 0.0], [-1.0, 0.0]]), torch.tensor([[0.0, 1.0], [0.0, -1.0]])).item() == 0.5


@pytest.mark.parametrize("n", [2, 3, 30])
def test_the_covariance_is_the_unbiased_one(n):
    rows = drawn(n, 0)
    np.testing.assert_allclose(covariance(rows).numpy(), np.cov(rows.numpy().T), atol=1e-12)
    assert not covariance(rows[:1]).any()


def test_the_distance_is_the_sum_of_squares_over_4_d_squared():
    source, target = drawn(5, 0), drawn(9, 1)
    difference = np.cov(source.numpy().T) - np.cov(target.numpy().T)
    assert coral(source, target).item() == pytest.approx((difference**2).sum() / (4 * 4**2))


def test_it_feels_no_shift_of_either_domain_and_no_common_rotation_and_the_fourth_power_of_a_scale():
    source, target = drawn(5, 0), drawn(9, 1)
    turn = torch.linalg.qr(drawn(4, 2)).Q
    before = coral(source, target).item()
    assert coral(source + 5, target - 3).item() == pytest.approx(before)
    assert coral(source @ turn, target @ turn).item() == pytest.approx(before)
    assert coral(3 * source, 3 * target).item() == pytest.approx(3**4 * before)
    assert coral(source, source + 1).item() == pytest.approx(0, abs=1e-12)


def test_with_means_a_shift_counts_and_nothing_is_divided_by_four():
    source, target = drawn(5, 0), drawn(9, 1)
    means = (source.mean(0) - target.mean(0)).square().mean().item()
    assert moment_distance(source, target).item() == pytest.approx(4 * coral(source, target).item() + means)
    assert moment_distance(source, source + 2).item() == pytest.approx(4)


def test_a_step_lowers_it():
    source, target = drawn(5, 0).requires_grad_(), drawn(9, 1).requires_grad_()
    for distance in (coral, moment_distance):
        before = distance(source, target)
        steps = torch.autograd.grad(before, [source, target])
        assert distance(source - 0.1 * steps[0], target - 0.1 * steps[1]).item() < before.item()


def test_the_layer_the_means_and_the_strength_can_be_chosen():
    samples = Samples()
    source, target = samples.batch()
    of_features, of_logits = Coral(6, 3, layer="features", strength=1.0), Coral(6, 3, layer="logits", strength=1.0)
    assert of_features(source, target).item() == pytest.approx(coral(source.features, target.features).item())
    assert of_logits(source, target).item() == pytest.approx(coral(source.logits, target.logits).item())
    assert silent(of_features(source, target), samples.heads())
    assert not silent(of_logits(source, target), samples.heads())
    with_means = Coral(6, 3, layer="features", means=True, strength=2.0)(source, target)
    assert with_means.item() == pytest.approx(2 * moment_distance(source.features, target.features).item())
    assert Coral(6, 3)(source, target).item() == pytest.approx(100 * of_features(source, target).item())
    assert Coral(6, 3, layer="logits").strength == 1
    with pytest.raises(ValueError, match="layer must be"):
        Coral(6, 3, layer="inputs")


def test_single_samples_have_no_covariance():
    rows = torch.ones(1, 4, requires_grad=True)
    value = Coral(4, 3)(source_of(rows, torch.ones(1, 3)), target_of(2 * rows, torch.ones(1, 3)))
    assert value.item() == 0
    assert not gradients(value, [rows])[0].any()
