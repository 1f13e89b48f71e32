"""Every method, target loss and scheme combines with every other for two steps, or is refused with a sentence."""

import re

import numpy as np
import pytest
import torch

from paretoda import adapt
from paretoda.errors import SettingsError
from paretoda.objectives import ALIGNMENTS, TARGET_LOSSES
from paretoda.schemes import SCHEMES
from paretoda.training.strategies import STRATEGIES

torch.set_num_threads(1)

ALL_SCHEMES = [*SCHEMES, *STRATEGIES]
STATISTICS = ("joint", "per-domain")
TINY = {"steps": 2, "batch_size": 12, "bottleneck": 6, "members": 1, "select": "last", "reference": False}
ONE_LOSS = re.compile("metaalign pairs .* but the losses are|choose a method or a target loss as well")
"""The only refusals: strategies of several losses where there is none beside the source's."""
RNG = np.random.default_rng(0)
LABELS = np.arange(60) % 3
SOURCE = 3 * np.eye(6)[LABELS] + RNG.normal(size=(60, 6))
TARGET = SOURCE + 0.5


def run(**settings):
    """Take two steps; return what the settings are refused with, None if they are not."""
    try:
        found = adapt((SOURCE, LABELS), TARGET, device="cpu", **TINY, **settings)
    except SettingsError as error:
        return str(error)
    assert len(found.history) == 2, settings
    assert all(np.isfinite(list(line["losses"].values())).all() for line in found.history), settings
    return None


@pytest.mark.parametrize("scheme", ALL_SCHEMES)
def test_every_method_and_every_target_loss_runs_under_the_scheme(scheme):
    losses = list(TARGET_LOSSES)
    cases = [(method, losses[place % len(losses)]) for place, method in enumerate(ALIGNMENTS)]
    cases += [(("dann", "cdan", "dan")[place % 3], loss) for place, loss in enumerate(losses)]
    refused = [
        run(method=method, target_loss=loss, bn=STATISTICS[place % 2], scheme=scheme)
        for place, (method, loss) in enumerate(cases)
    ]
    assert all(sentence is None or ONE_LOSS.search(sentence) for sentence in refused), refused


@pytest.mark.slow
@pytest.mark.parametrize("scheme", ALL_SCHEMES)
def test_all_triples_run(scheme):
    for method in ALIGNMENTS:
        for loss in TARGET_LOSSES:
            for bn in STATISTICS:
                refused = run(method=method, target_loss=loss, bn=bn, scheme=scheme)
                assert refused is None or ONE_LOSS.search(refused)
