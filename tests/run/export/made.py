"""Runs of all kinds without training: networks with random weights and statistics, saved as a run saves them."""

from pathlib import Path

import torch
from torch import nn

from paretoda.data.scaling import FeatureTransform, identity_transform
from paretoda.data.segmentation import SceneTransform
from paretoda.data.transforms import ImageTransform
from paretoda.models.backbones import make_backbone
from paretoda.models.classifier import make_model
from paretoda.models.segmentation.segmenter import make_segmenter
from paretoda.objectives.target.tcm import Tcm
from paretoda.run.directory.directory import RunDirectory
from paretoda.tasks.classification.frozen_backbone import FrozenBackbone
from paretoda.tasks.classification.predictor import ClassificationPredictor
from paretoda.tasks.segmentation.predictor import SegmentationPredictor

CLASSES = ("cat", "dög", "<b>x</b>")


def lively(network: nn.Module) -> nn.Module:
    """Statistics and weights that differ from those at the start, so that nothing is left out unnoticed."""
    with torch.no_grad():
        for layer in network.modules():
            if isinstance(layer, nn.modules.batchnorm._BatchNorm):
                layer.running_mean.uniform_(-0.3, 0.3)
                layer.running_var.uniform_(0.5, 2)
                layer.weight.uniform_(0.5, 1.5)
                layer.bias.uniform_(-0.3, 0.3)
        for name, parameter in network.named_parameters():
            if "ways" in name:
                parameter.normal_(std=0.1)
    return network


def image_transform(size: int, channels: int, augment: str = "none") -> ImageTransform:
    return ImageTransform(size, channels, (0.4, 0.5, 0.6)[:channels], (0.2, 0.3, 0.25)[:channels], augment)


def features() -> ClassificationPredictor:
    transform = FeatureTransform(torch.randn(7) * 5, torch.rand(7) + 0.5, torch.randn(7, 5), unit_rows=True)
    model = make_model("mlp", (5,), 3, bottleneck=8, dropout=0.5)
    return ClassificationPredictor(CLASSES, transform, model, refiner=(Tcm(8, 3, width=4),), temperature=1.5)


def hypernetwork() -> ClassificationPredictor:
    model = make_model("mlp", (7,), 3, bottleneck=8, losses=("source", "alignment"))
    return ClassificationPredictor(CLASSES, identity_transform(7), model)


def digits(backbone: str = "cnn", channels: int = 1) -> ClassificationPredictor:
    model = make_model(backbone, (channels, 28, 28), 3, bottleneck=8)
    return ClassificationPredictor(
        CLASSES, image_transform(28, channels, "light"), model, refiner=(Tcm(8, 3, width=4),)
    )


def photos() -> ClassificationPredictor:
    model = make_model("resnet18", (3, 32, 32), 3, bottleneck=8)
    return ClassificationPredictor(CLASSES, image_transform(32, 3), model)


def frozen() -> ClassificationPredictor:
    network = lively(make_backbone("efficientnet-lite0", (3, 32, 32)))
    scaling = FeatureTransform(torch.randn(1280), torch.rand(1280) + 0.5)
    model = make_model("mlp", (1280,), 3, bottleneck=8)
    backbone = FrozenBackbone("efficientnet-lite0", network)
    return ClassificationPredictor(CLASSES, image_transform(32, 3), model, backbone, scaling)


def scenes(backbone: str = "dilated") -> SegmentationPredictor:
    model = make_segmenter(backbone, 3)
    return SegmentationPredictor(CLASSES, ((0, 0, 0),) * 3, SceneTransform((40, 24)), model, Tcm(64, 3, width=4))


def saved(predictor: ClassificationPredictor | SegmentationPredictor, folder: Path) -> Path:
    """The directory of a run with this model."""
    lively(predictor.model)
    if predictor.refiner is not None:
        for refiner in predictor.refiner if isinstance(predictor.refiner, tuple) else [predictor.refiner]:
            lively(refiner)
    directory = RunDirectory(folder)
    predictor.save(directory.model, directory.description)
    return folder
