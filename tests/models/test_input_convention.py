"""Both conventions, applied by their formula, turn ImageNet's mean colour into zeros."""

import pytest
import torch

from paretoda.models.backbones import BACKBONES
from paretoda.models.input_convention import INPUT_CONVENTIONS

MEAN_COLOUR = (123.675, 116.28, 103.53)  # red, green, blue


@pytest.mark.parametrize("name", sorted(INPUT_CONVENTIONS))
def test_the_mean_colour_becomes_zero_and_colours_keep_their_places(name):
    convention = INPUT_CONVENTIONS[name]
    rgb = torch.tensor(MEAN_COLOUR)
    pixel = rgb.flip(0) if convention.bgr else rgb
    read = (convention.scale * pixel - torch.tensor(convention.mean)) / torch.tensor(convention.std)
    unit = 255 * convention.scale * max(1 / std for std in convention.std)
    assert read.abs().max() < 0.005 * unit
    wrong = (convention.scale * pixel.flip(0) - torch.tensor(convention.mean)) / torch.tensor(convention.std)
    assert wrong.abs().max() > 0.05 * unit


def test_torchvisions_is_that_of_the_classification_backbones():
    convention = INPUT_CONVENTIONS["torchvision"]
    assert (convention.mean, convention.std) == (BACKBONES["resnet50"].mean, BACKBONES["resnet50"].std)
    assert convention.scale == 1 / 255


def test_caffes_values_stay_in_255_steps():
    assert INPUT_CONVENTIONS["caffe"].mean == (104.00698793, 116.66876762, 122.67891434)
    assert INPUT_CONVENTIONS["caffe"].std == (1, 1, 1)
