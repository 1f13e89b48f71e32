"""With `calibrate`, a factor on a loss changes nothing in a whole run: encoder, head and discriminator end the same."""

import numpy as np
import pytest
import torch

from paretoda.data import make_pair
from paretoda.run.build import build_step
from paretoda.run.settings import SETTINGS
from paretoda.run.train import train
from paretoda.studies.scales import Scaled
from paretoda.tasks import find_task
from paretoda.tasks.classification.build import make_pair_settings
from paretoda.tasks.settings import make_settings

FACTORS = (2.0**-7, 2.0**7)  # powers of 2: no rounding error is multiplied
LOSSES = ("source", "alignment", "target", "propagation")
SMALL = {"steps": 30, "batch_size": 24, "bottleneck": 8, "refresh_every": 10, "select": "last", "members": 1}


def train_scaled(factors, **changes):
    """Return all weights, one vector, after a small run whose losses are multiplied by the factors."""
    settings = make_settings({**SMALL, **changes})
    rng = np.random.default_rng(0)
    y = np.arange(120) % 3
    x, t = ((2 * np.eye(6)[y] + rng.normal(size=(120, 6)) + shift).astype(np.float32) for shift in (0, 1))
    pair = make_pair((x, y, ("ant", "bee", "cat")), t, make_pair_settings(settings))
    step = build_step(find_task(settings.task), settings, pair, torch.device("cpu"))
    for name, factor in factors.items():
        step.objectives[name] = Scaled(step.objectives[name], factor)
    train(settings, pair, step)
    return torch.cat([parameter.detach().flatten() for parameter in step.modules().parameters()])


def distance(one, two):
    return float((one - two).norm() / one.norm())


@pytest.fixture(scope="module", params=[{}, {"every": 1}, {"scheme": "linear"}], ids=["paretoda", "every 1", "linear"])
def changes(request):
    return request.param


@pytest.fixture(scope="module")
def plain(changes):
    return train_scaled({}, calibrate=True, **changes)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("factor", FACTORS)
def test_a_factor_on_a_loss_changes_nothing(loss, factor, changes, plain):
    assert distance(plain, train_scaled({loss: factor}, calibrate=True, **changes)) < 1e-5


@pytest.mark.parametrize("loss", LOSSES)
def test_without_calibration_it_changes_the_run(loss):
    assert distance(*(train_scaled(factors, calibrate=False) for factors in ({}, {loss: 100.0}))) > 1e-2


def test_heads_that_follow_one_loss_follow_it_in_its_unit():
    only = {"head_losses": ("source",), "calibrate": True}
    assert distance(train_scaled({}, **only), train_scaled({"source": FACTORS[1]}, **only)) < 1e-5


def test_an_objective_that_updates_the_encoder_again_does_so_in_its_unit():
    again = {"method": "mcd", "options": ("alignment.encoder_updates=3",), "target_loss": "none", "calibrate": True}
    assert distance(train_scaled({}, **again), train_scaled({"alignment": FACTORS[1]}, **again)) < 1e-5


def test_it_is_off_by_default():
    assert SETTINGS["calibrate"].default is None
    assert torch.equal(train_scaled({}), train_scaled({}, calibrate=False))
    assert not torch.equal(train_scaled({}), train_scaled({}, calibrate=True))
