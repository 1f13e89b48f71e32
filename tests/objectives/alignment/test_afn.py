import pytest
import torch
from objectives.samples import Samples, gradients, silent, source_of, target_of

from paretoda.objectives import Afn
from paretoda.objectives.alignment.afn import hard_gap, stepwise_gap


def drawn(size, seed, width=4):
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(size, width, dtype=torch.float64, generator=generator).requires_grad_()


def loss(objective, source, target):
    return objective(source_of(source, torch.zeros(len(source), 3)), target_of(target, torch.zeros(len(target), 3)))


def test_the_goal_lies_one_step_beyond_whatever_the_norms():
    for scale in (0.1, 1.0, 50.0):
        assert stepwise_gap(scale * drawn(5, 0), 1.0).item() == pytest.approx(1)
        assert stepwise_gap(scale * drawn(5, 0), 3.0).item() == pytest.approx(9)
    assert loss(Afn(4, 3), drawn(5, 0), drawn(8, 1)).item() == pytest.approx(0.05 * 2)
    assert loss(Afn(4, 3, step=2.0, strength=1.0), drawn(5, 0), drawn(8, 1)).item() == pytest.approx(8)


def test_every_row_is_pulled_outwards_by_the_same_amount():
    """With a goal that were differentiated as well there would be no gradient at all."""
    source, target = drawn(5, 0), drawn(8, 1)
    pulls = torch.autograd.grad(loss(Afn(4, 3, step=1.5), source, target), [source, target])
    for rows, pull in zip((source, target), pulls, strict=True):
        outwards = rows.detach() / rows.detach().norm(dim=1, keepdim=True)
        torch.testing.assert_close(pull, -0.05 * 2 * 1.5 * outwards / len(rows))


def test_a_step_lengthens_all_rows_of_both_domains():
    source, target = drawn(5, 0), drawn(8, 1)
    pulls = torch.autograd.grad(loss(Afn(4, 3), source, target), [source, target])
    for rows, pull in zip((source, target), pulls, strict=True):
        assert ((rows - pull).norm(dim=1) > rows.norm(dim=1)).all()


def test_hard_norms_are_compared_with_the_radius_in_the_mean():
    rows = torch.tensor([[20.0, 0.0], [0.0, 30.0]], dtype=torch.float64)
    assert hard_gap(rows, 25.0).item() == pytest.approx(0)
    assert hard_gap(rows, 22.0).item() == pytest.approx(9)
    assert loss(Afn(2, 3, hard=True), rows, 2 * rows).item() == pytest.approx(0.05 * 25**2)
    assert loss(Afn(2, 3, hard=True, radius=24.0, strength=1.0), rows, rows).item() == pytest.approx(2)


@pytest.mark.parametrize("scale", [0.1, 100.0])
def test_a_step_of_the_hard_form_goes_to_the_radius_from_either_side(scale):
    rows = (scale * drawn(5, 0)).detach().requires_grad_()
    before = hard_gap(rows, 25.0)
    moved = rows - 0.1 * torch.autograd.grad(before, rows)[0]
    assert hard_gap(moved, 25.0).item() < before.item()
    assert (moved.norm(dim=1).mean() > rows.norm(dim=1).mean()).item() == (scale < 1)


@pytest.mark.parametrize("hard", [False, True])
def test_a_row_of_zeros_has_no_direction_and_a_finite_gradient(hard):
    rows = torch.zeros(3, 4, requires_grad=True)
    value = loss(Afn(4, 3, hard=hard), rows, rows + 1)
    assert value.isfinite()
    assert gradients(value, [rows])[0].isfinite().all()


def test_the_heads_get_nothing_and_there_is_no_warm_up():
    samples = Samples()
    objective = Afn(6, 3, hard=True)
    objective.advance(0.0)
    value = objective(*samples.batch())
    assert value.item() > 0
    assert silent(value, samples.heads())


@pytest.mark.parametrize("options", [{"step": 0.0}, {"radius": -1.0}])
def test_what_shortens_is_refused(options):
    with pytest.raises(ValueError, match="positive step"):
        Afn(4, 3, **options)
