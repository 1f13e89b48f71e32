"""What the objectives of segmentation are told of the data."""

import pytest
import torch

from paretoda.data.segmentation import make_scene_pair
from paretoda.job.segmentation.build import make_scene_model, make_scene_objectives
from paretoda.job.segmentation.inputs import scene_pair_settings
from paretoda.job.settings import make_settings


@pytest.mark.parametrize(
    ("given", "power"),
    [({}, 0.5), ({"class_weights": "none"}, 1.0), ({"options": ["target.prior=uniform"]}, None)],
)
def test_the_target_loss_asks_for_the_frequencies_that_the_source_loss_teaches(streets, given, power):
    source, target, _ = streets
    settings = make_settings({"task": "segmentation", "method": "advent+tcm", "batch_size": 2, **given})
    pair = make_scene_pair(source, target, scene_pair_settings(settings))
    objective = make_scene_objectives(settings, pair, make_scene_model(settings, pair))["target"]
    shares = pair.source_frequencies()
    if power is None:
        assert objective.inner.log_prior is None
        return
    common = shares > 0.02  # rarer ones have a least share
    found = objective.inner.log_prior.exp().double()[common]
    wanted = shares[common] ** power
    torch.testing.assert_close(found / found.sum(), wanted / wanted.sum(), rtol=1e-4, atol=0)
