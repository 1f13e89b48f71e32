import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from objectives.samples import Samples, silent, source_of, target_of

from paretoda.objectives import Tpn
from paretoda.objectives.alignment.tpn import (
    NO_CLASS,
    averages,
    class_gaps,
    linear_kernel,
    log_memberships,
    membership,
    scale_free_gaussians,
    symmetric_divergences,
)
from paretoda.objectives.parts.mmd import squared_distances


def rows_of(values):
    return torch.tensor(values, dtype=torch.float64).unsqueeze(1)


def pair(source, labels, target):
    """Domains on a line."""
    logits = torch.zeros(1, 2)
    return (
        source_of(rows_of(source), logits.expand(len(source), 2), torch.tensor(labels)),
        target_of(rows_of(target), logits.expand(len(target), 2)),
    )


def tpn(classes=2, **options):
    return Tpn(features=1, classes=classes, **options).double()


def test_prototypes_are_means_of_members():
    source, target = membership(torch.tensor([0, 0, 1]), 2), membership(torch.tensor([1, NO_CLASS, 0, 0]), 2)
    rows = rows_of([1, 3, 10, 20, 99, 4, 6])
    first, second, both = (weight.double().T @ rows for weight in averages(source, target))
    assert first.flatten().tolist() == [2, 10]
    assert second.flatten().tolist() == [5, 20]
    assert both.flatten().tolist() == [14 / 4, 15]


def test_with_a_linear_kernel_gaps_are_squared_distances_of_prototypes():
    source, target = membership(torch.tensor([0, 0, 1]), 2).double(), membership(torch.tensor([1, 0]), 2).double()
    gaps = class_gaps(linear_kernel(rows_of([1, 3, 10, 20, 8])), averages(source, target))
    assert gaps.tolist() == pytest.approx([(2 - 8) ** 2 + (2 - 4) ** 2 + (8 - 4) ** 2, 10**2 + 5**2 + 5**2])


def test_with_gaussians_the_gap_of_two_single_samples_is_known():
    """‖φ(x) - φ(y)‖² = 2 k(0) - 2 k(d), and half as far each from their middle: 3/2 of it in all."""
    one = torch.ones(1, 1, dtype=torch.float64)
    kernel = scale_free_gaussians(squared_distances(rows_of([0, 7])))
    near = sum(math.exp(-2 / (2 * scale)) for scale in (0.125, 0.25, 0.5, 1.0, 2.0))  # 49 over the mean of 0, 49, 49, 0
    assert class_gaps(kernel, averages(one, one)).item() == pytest.approx(1.5 * (10 - 2 * near))


def test_log_memberships_are_a_softmax_of_distances_in_units_of_their_mean():
    found = log_memberships(rows_of([0, 5]), rows_of([1, 4]), 0.5).exp()
    distances = torch.tensor([[1.0, 16.0], [16.0, 1.0]], dtype=torch.float64)
    torch.testing.assert_close(found, (-distances / (0.5 * 8.5)).softmax(1))


@given(st.integers(0, 1000))
def test_neither_a_shift_nor_a_scale_of_all_features_changes_anything(seed):
    generator = torch.Generator().manual_seed(seed)
    rows, prototypes = (torch.randn(n, 3, dtype=torch.float64, generator=generator) for n in (5, 4))
    shift = 10 * torch.randn(3, dtype=torch.float64, generator=generator)
    plain = log_memberships(rows, prototypes, 0.1)
    torch.testing.assert_close(log_memberships(3 * rows + shift, 3 * prototypes + shift, 0.1), plain)
    kernel = scale_free_gaussians(squared_distances(rows))
    torch.testing.assert_close(scale_free_gaussians(squared_distances(3 * rows + shift)), kernel)


@given(st.integers(0, 1000))
def test_the_divergence_is_symmetric_and_the_mean_of_two(seed):
    generator = torch.Generator().manual_seed(seed)
    one, other = torch.randn(2, 5, 4, dtype=torch.float64, generator=generator).log_softmax(2)
    found = symmetric_divergences(one, other)
    assert (found >= 0).all()
    forth, back = (one.exp() * (one - other)).sum(1), (other.exp() * (other - one)).sum(1)
    torch.testing.assert_close(found, (forth + back) / 2)
    torch.testing.assert_close(symmetric_divergences(other, one), found)


def test_equal_prototypes_leave_the_sources_own_error():
    source, target = pair([0, 1, 10, 11], [0, 0, 1, 1], [0, 1, 10, 11])
    objective = tpn(temperature=0.2)
    assert objective.pseudo_labels(source, target).tolist() == [0, 0, 1, 1]
    only = tpn(temperature=0.2, classwise=0.0, samplewise=0.0)(source, target).item()
    assert 0 < only < 0.01
    assert objective(source, target).item() == pytest.approx(only, abs=1e-12)
    assert objective(*pair([0, 1, 10, 11], [0, 0, 1, 1], [1, 2, 11, 12])).item() > only + 0.01


def test_the_terms_and_their_weights():
    source, target = pair([0, 2, 10, 12], [0, 0, 1, 1], [3, 9, 10])
    options = {"temperature": 0.7, "gate": 0.5}
    objective = tpn(**options, sourcewise=0.0, classwise=1.0, samplewise=0.0, kernel="linear")
    assert objective.pseudo_labels(source, target).tolist() == [0, 1, 1]
    both = [5 / 3, (22 + 19) / 4]
    gaps = [(1 - 3) ** 2 + (1 - both[0]) ** 2 + (3 - both[0]) ** 2, 1.5**2 + (11 - both[1]) ** 2 + (9.5 - both[1]) ** 2]
    assert objective(source, target).item() == pytest.approx(sum(gaps) / 2)
    rows = torch.cat([source.features, target.features])
    p = [log_memberships(rows, rows_of(at), 0.7).exp() for at in ([1, 11], [3, 9.5], both)]
    j = [((a - b) * (a / b).log()).sum(1) / 2 for a, b in ((p[0], p[1]), (p[0], p[2]), (p[1], p[2]))]
    samplewise = tpn(**options, sourcewise=0.0, classwise=0.0, samplewise=2.0)(source, target).item()
    assert samplewise == pytest.approx(2 * sum(j).mean().item() / 3)
    own = -log_memberships(source.features, rows_of([1, 11]), 0.7)[torch.arange(4), source.labels].mean().item()
    assert tpn(**options, sourcewise=3.0, classwise=0.0, samplewise=0.0)(source, target).item() == pytest.approx(
        3 * own
    )
    whole = tpn(**options, sourcewise=3.0, classwise=1.0, samplewise=2.0, kernel="linear")(source, target).item()
    assert whole == pytest.approx(3 * own + sum(gaps) / 2 + samplewise)


def test_doubtful_samples_and_absent_classes_are_left_out():
    source, target = pair([0, 0, 10, 10], [0, 0, 2, 2], [1, 5, 5.1])
    objective = tpn(classes=4, temperature=0.5)
    assert objective.pseudo_labels(source, target).tolist() == [0, NO_CLASS, NO_CLASS]
    assert tpn(classes=4, temperature=0.5, gate=0.0).pseudo_labels(source, target).tolist() == [0, 0, 2]
    without = tpn(classes=4, temperature=0.5, kernel="linear", sourcewise=0.0, samplewise=0.0)(source, target).item()
    assert without == pytest.approx(1 + (1 / 3) ** 2 + (2 / 3) ** 2)  # class 0 alone, and the mean is over it alone
    nobody = tpn(classes=4, temperature=50.0, sourcewise=0.0)
    assert nobody(source, target).item() == 0


def test_the_encoder_feels_both_domains_and_the_head_nothing():
    samples = Samples()
    objective = Tpn(samples.features, samples.classes).double()
    source, target = samples.batch()
    loss = objective(source, target)
    assert not silent(loss, [source.features])
    assert not silent(loss, [target.features])
    assert silent(loss, samples.heads())
    assert objective.private_loss(source, target) is None


@pytest.mark.parametrize("options", [{"kernel": "cubic"}, {"temperature": 0.0}])
def test_what_makes_no_sense_is_refused(options):
    with pytest.raises(ValueError, match=r"kernel must be|temperature must be"):
        Tpn(features=4, classes=3, **options)
