"""MixVal for maps: consistency of pixels where two images lie over each other."""

import torch
from torch import nn

from paretoda.evaluation.validators import MixVal
from paretoda.evaluation.validators.mixval import map_consistency
from paretoda.types import Model, Snapshot, Source, Target


class Sign(Model):
    """Two classes: a pixel's value above 0, or not; linear, so that the larger share decides."""

    predicts_pixels = True

    def __init__(self, shift=0.0):
        head = nn.Conv2d(1, 2, 1)
        with torch.no_grad():
            head.weight.copy_(torch.tensor([1.0, -1.0]).view(2, 1, 1, 1))
            head.bias.copy_(torch.tensor([shift, -shift]))
        super().__init__(nn.Identity(), head)


def signs(count=6):
    return torch.randint(0, 2, (count, 1, 4, 5), generator=torch.Generator().manual_seed(0)).float() * 2 - 1


def test_a_model_that_follows_the_stronger_image_is_right_everywhere():
    assert map_consistency(Sign(), signs().split(3), share=0.55, images=100) == 1


def test_the_sign_of_the_share_matters():
    inputs = signs()
    assert map_consistency(Sign(), [inputs], share=0.45, images=100) == 0.5, "right within a class, wrong across two"


def test_a_collapsed_model_has_nothing_to_mix_across():
    assert map_consistency(Sign(shift=9.0), [signs()], share=0.55, images=100) == 0.5


def test_no_more_images_than_wanted_are_looked_at_and_one_alone_cannot_be_mixed():
    seen = []

    class Watched(Sign):
        def forward(self, inputs):
            seen.append(len(inputs))
            return super().forward(inputs)

    map_consistency(Watched(), signs(9).split(2), share=0.55, images=5)
    assert seen == [2, 2, 2, 2], "each pair and its mixture; the fifth is alone"


def test_mixval_itself_sees_that_the_model_makes_maps():
    inputs, model = signs(), Sign()
    rows = torch.zeros(4, 1)
    target = Target(rows, torch.zeros(4, 2), torch.arange(4))
    source = Source(rows, torch.zeros(4, 2), torch.arange(4), labels=torch.zeros(4, dtype=torch.int64))
    snapshot = Snapshot(source, source, target, target, model, lambda: iter(inputs.split(3)))
    assert MixVal()(snapshot) == 1
