"""A loss multiplied by 1e±6 takes the encoder along the same path, for the schemes that promise it and for no other.

Real training in float64: BatchNorm, a discriminator, momentum. Every step has the length 1, because weights that sum to
1 let the length depend on the scale even where the direction does not; the head follows no loss, since it would follow
a scaled one.
"""

from dataclasses import dataclass
from functools import partial

import numpy as np
import pytest
import torch
from training.networks import network_batch, network_step

from paretoda.core.problem import Weights, reads_guide
from paretoda.objectives import Information
from paretoda.schemes import IMTLG, MGDA, SCHEMES, NashMTL, ParetoDA, ParetoPaper

STEPS = 6
SCALES = [(1, 1, 1e6), (1, 1e-6, 1), (1e6, 1, 1e-6), (1e-8, 1, 1), (1e8, 1, 1e-8)]
TOGETHER = [(1e6, 1e6, 1e6), (1e-8, 1e-8, 1e-8)]
FREE = {
    "imtl-g": IMTLG,
    "nash-mtl": NashMTL,
    "mgda, normalise=l2": partial(MGDA, normalise="l2"),
    "paretoda-paper, normalise=l2": partial(ParetoPaper, normalise="l2"),
}
BOUND = {name: make for name, make in SCHEMES.items() if name not in FREE}
ABSOLUTE = ("epo", "pmtl", "uncertainty", "famo", "paretoda-paper")
"""These compare losses with fixed numbers, or gradients with the guide's, which nobody scaled."""


@dataclass
class UnitLength:
    """The scheme's direction with the length 1 in the metric of the step."""

    scheme: object

    @property
    def guided(self):
        return reads_guide(self.scheme)

    def __call__(self, problem, /):
        weights = self.scheme(problem)
        length = problem.size * np.sqrt(weights.alpha @ problem.gram @ weights.alpha)
        return Weights(weights.alpha / length, weights.move)


def path(make, factors):
    """The encoder's parameters after every step, shape (STEPS, d)."""
    step = network_step(UnitLength(make()), rates=(0.05, 0.05), guide=Information(4, 3))
    step.head_losses = ()
    for objective, factor in zip(step.objectives.values(), factors, strict=True):
        objective.forward = partial(scaled, objective.forward, factor)
        objective.__class__ = with_scaled_offset(type(objective), factor)
    step.optimiser.defaults["momentum"] = 0.9
    for group in step.optimiser.param_groups:
        group["momentum"] = 0.9
    found = []
    for index in range(STEPS):
        step.advance((index + STEPS) / (2 * STEPS))  # at 0 the alignment's warm-up makes its gradient vanish
        step(network_batch(index))
        found.append(torch.cat([p.detach().flatten() for p in step.model.encoder.parameters()]))
    return torch.stack(found)


def scaled(forward, factor, source, target):
    return factor * forward(source, target)


def with_scaled_offset(kind, factor):
    return type(kind.__name__, (kind,), {"offset": property(lambda self: factor * kind.offset.fget(self))})


def furthest(one, two):
    """The largest distance of the two paths, relative to the length of the first."""
    return float((one - two).norm(dim=1).max() / (one[-1] - one[0]).norm())


@pytest.mark.parametrize("name", FREE)
def test_the_scale_of_a_loss_does_not_matter_to_these(name):
    plain = path(FREE[name], (1, 1, 1))
    for factors in SCALES:
        assert furthest(plain, path(FREE[name], factors)) < 1e-12, factors


@pytest.mark.slow
@pytest.mark.parametrize("name", BOUND)
def test_and_it_does_matter_to_these_but_for_most_only_if_it_is_not_that_of_all(name):
    plain = path(BOUND[name], (1, 1, 1))
    assert max(furthest(plain, path(BOUND[name], factors)) for factors in SCALES[:3]) > 1e-3
    together = max(furthest(plain, path(BOUND[name], factors)) for factors in TOGETHER)
    assert together > 1e-3 if name in ABSOLUTE else together < 1e-12, together


def test_paretoda_with_normalised_gradients_is_free_as_long_as_their_lengths_differ_by_less_than_a_million():
    make = partial(ParetoDA, normalise=True)
    plain = path(make, (1, 1, 1))
    assert furthest(plain, path(make, (1, 1, 1e3))) < 1e-12
    assert furthest(plain, path(make, (1e6, 1, 1e-6))) > 1e-3
