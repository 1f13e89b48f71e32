import pytest
import torch
from objectives.samples import Samples, silent, source_of, target_of

from paretoda.objectives import Bsp
from paretoda.objectives.target.bsp import largest_energy


def drawn(rows, width, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(rows, width, dtype=torch.float64, generator=generator)


def test_the_value_of_the_specification():
    rows = torch.diag(torch.tensor([3.0, 4.0]))
    assert largest_energy(rows, 1).item() == pytest.approx(16)
    assert largest_energy(rows, 2).item() == pytest.approx(25)
    assert largest_energy(rows, 9).item() == pytest.approx(25)


def test_both_domains_count_and_the_strength_is_a_ten_thousandth():
    one, other = torch.diag(torch.tensor([3.0, 4.0])), torch.diag(torch.tensor([1.0, 2.0]))
    domains = source_of(one, one), target_of(other, other)
    assert Bsp(2, 2)(*domains).item() == pytest.approx(1e-4 * (16 + 4))
    assert Bsp(2, 2, k=2, strength=1.0)(*domains).item() == pytest.approx(25 + 5)


@pytest.mark.parametrize("shape", [(3, 8), (8, 3), (1, 4), (5, 5)])
@pytest.mark.parametrize("k", [1, 2])
def test_the_energies_are_squared_singular_values_of_rows_that_are_not_centred(shape, k):
    rows = drawn(*shape) + 2
    expected = torch.linalg.svdvals(rows)[:k].square().sum()
    assert largest_energy(rows, k).item() == pytest.approx(expected.item())
    assert largest_energy(rows - rows.mean(0), k).item() != pytest.approx(expected.item())


def test_turning_the_rows_or_the_columns_changes_nothing():
    rows = drawn(4, 6)
    before = largest_energy(rows, 2).item()
    assert largest_energy(torch.linalg.qr(drawn(4, 4)).Q @ rows, 2).item() == pytest.approx(before)
    assert largest_energy(rows @ torch.linalg.qr(drawn(6, 6)).Q, 2).item() == pytest.approx(before)


@pytest.mark.parametrize("shape", [(4, 6), (6, 4)])
def test_the_gradient_is_twice_the_value_times_its_two_vectors(shape):
    rows = drawn(*shape).requires_grad_()
    left, values, right = torch.linalg.svd(rows.detach())
    expected = 2 * values[0] * torch.outer(left[:, 0], right[0])
    torch.testing.assert_close(torch.autograd.grad(largest_energy(rows, 1), rows)[0], expected)


@pytest.mark.parametrize("rows", [torch.eye(4), torch.ones(5, 3), torch.zeros(3, 5)])
def test_equal_and_vanishing_singular_values_have_finite_gradients(rows):
    rows = rows.clone().requires_grad_()
    value = largest_energy(rows, 2)
    assert value.isfinite()
    assert torch.autograd.grad(value, rows)[0].isfinite().all()


def test_a_step_of_the_encoder_lowers_it_in_both_domains_and_the_heads_get_nothing():
    samples = Samples()
    source, target = samples.batch()
    value = Bsp(6, 3)(source, target)
    assert silent(value, samples.heads())
    steps = torch.autograd.grad(value, [source.features, target.features])
    for domain, step in zip((source, target), steps, strict=True):
        assert largest_energy(domain.features - 10 * step, 1).item() < largest_energy(domain.features, 1).item()


def test_no_singular_value_is_refused():
    with pytest.raises(ValueError, match="k must be 1 or more"):
        Bsp(6, 3, k=0)
