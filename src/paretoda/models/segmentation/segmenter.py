"""Segmenter: a backbone, its feature maps, pixel classifiers (ASPP), and the description that rebuilds it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any, get_args

import torch
from torch import Tensor, nn

from paretoda.core.options import unknown
from paretoda.models.segmentation.backbones import SMALL, Norm, PixelBackbone, PixelEncoder, find_pixel_backbone
from paretoda.models.weights import RANDOM, resolve_weights
from paretoda.types import Model


class ASPP(nn.Module):
    """Classifier of DeepLab-v2: the sum of one 3x3 convolution with bias for each rate (Chen et al., 2018).

    Weights start as N(0, 0.01²). AdaSegNet's published code stops after its second rate; here all are summed.

    Args:
        inputs: Number of channels of the features.
        classes: Number of classes K.
        rates: Dilation, and as much padding, of each convolution.

    Raises:
        ValueError: There is no rate, or a rate is below 1.
    """

    def __init__(self, inputs: int, classes: int, rates: Sequence[int] = (6, 12, 18, 24)) -> None:
        super().__init__()
        if not rates or min(rates) < 1:
            raise ValueError(f"rates must be one or more whole numbers from 1 on, got {tuple(rates)}")
        branches = [nn.Conv2d(inputs, classes, 3, padding=rate, dilation=rate) for rate in rates]
        for branch in branches:
            nn.init.normal_(branch.weight, std=0.01)
        self.branches = nn.ModuleList(branches)

    def forward(self, features: Tensor) -> Tensor:
        """Map features (n, inputs, h, w) to logits (n, K, h, w)."""
        logits: Tensor = self.branches[0](features)
        for branch in self.branches[1:]:
            logits = logits + branch(features)
        return logits

    def flat(self) -> Tensor:
        """All weights and biases as one differentiable vector, for CLAN's likeness."""
        return torch.cat([parameter.flatten() for parameter in self.parameters()])


class PixelHead(nn.Module):
    """All classifiers of a segmenter; a call returns the logits of the prediction, `extra_logits` those of the others.

    One classifier for one level predicts alone. With two levels, features are [lower; last] along the channels; the
    main classifier sees the last level only and predicts, and the auxiliary one sees the lower level. With two
    classifiers on one level (CLAN), their sum z1 + z2 predicts, and `extra_logits` returns z1 and z2.

    Args:
        widths: Numbers of channels of each level in the features, one or two.
        classes: Number of classes K.
        rates: Dilation rates of the convolutions of each classifier.
        classifiers: Number of classifiers on the last level, 1 or 2; 2 only with one level.
    """

    def __init__(self, widths: Sequence[int], classes: int, rates: Sequence[int], classifiers: int = 1) -> None:
        super().__init__()
        self.widths = tuple(widths)
        self.main = ASPP(self.widths[-1], classes, rates)
        self.auxiliary = ASPP(self.widths[0], classes, rates) if len(self.widths) == 2 else None
        self.second = ASPP(self.widths[-1], classes, rates) if classifiers == 2 else None

    def forward(self, features: Tensor) -> Tensor:
        """Map features (n, d, h, w) to the logits of the prediction, (n, K, h, w)."""
        last = features[:, -self.widths[-1] :]
        logits: Tensor = self.main(last)
        return logits if self.second is None else logits + self.second(last)

    def classifier_weights(self) -> tuple[Tensor, Tensor]:
        """Return all weights of each of the two classifiers as differentiable vectors.

        Raises:
            ValueError: There is only one classifier.
        """
        if self.second is None:
            raise ValueError("this head has one classifier; CLAN needs classifiers=2")
        return self.main.flat(), self.second.flat()

    def extra_logits(self, features: Tensor) -> tuple[Tensor, ...]:
        """Return (), the logits of the auxiliary classifier, or those of both classifiers; each (n, K, h, w)."""
        if self.auxiliary is not None:
            return (self.auxiliary(features[:, : self.widths[0]]),)
        return () if self.second is None else (self.main(features), self.second(features))


@dataclass(frozen=True)
class SegmenterArchitecture:
    """Everything needed to build the network again; `describe` is its JSON form.

    Args:
        backbone: Name in `SEGMENTATION_BACKBONES`.
        classes: Number of classes K.
        levels: 2: the features are the maps of the last two stages, [lower; last], with a classifier for each.
        classifiers: 2: two classifiers of the last stage's map, whose sum predicts (CLAN).
        rates: Dilation rates of the classifiers' convolutions.
        norm: "train": BatchNorm as usual; "affine-frozen": its factors and offsets are fixed, and training normalises
            by the batch; "frozen": they are fixed as well, and training normalises by the running statistics, which do
            not change; "group": GroupNorm, for batches of one or two images, in the small network only.
        channels: Number of channels of the maps of all but DeepLab, which has its own; 0: 64.

    Raises:
        ValueError: The backbone is unknown, or the arguments contradict each other.
    """

    backbone: str
    classes: int
    levels: int = 1
    classifiers: int = 1
    rates: tuple[int, ...] = (6, 12, 18, 24)
    norm: Norm = "train"
    channels: int = 0

    def __post_init__(self) -> None:
        spec = self.spec
        if self.classes < 2:
            raise ValueError(f"a segmenter needs at least two classes, got {self.classes}")
        if (self.levels, self.classifiers) not in ((1, 1), (2, 1), (1, 2)):
            got = f"{self.levels} and {self.classifiers}"
            raise ValueError(f"levels and classifiers must be 1 and 1, 2 and 1, or 1 and 2; got {got}")
        if self.norm not in get_args(Norm):
            raise ValueError(unknown("norm", self.norm, get_args(Norm)))
        if self.norm == "group" and not spec.groups:
            raise ValueError(f"{self.backbone} has BatchNorm: norm='group' is for {SMALL!r} only")
        if self.channels and spec.own_widths is not None:
            raise ValueError(f"{self.backbone} has its own channels: leave out channels={self.channels}")

    @property
    def spec(self) -> PixelBackbone:
        """Description of the backbone."""
        return find_pixel_backbone(self.backbone)

    @property
    def widths(self) -> tuple[int, ...]:
        """Numbers of channels of each level in the features, with the last level at the end."""
        return self.spec.widths(self.channels)[-self.levels :]

    @property
    def width(self) -> int:
        """Number of channels d of the features."""
        return sum(self.widths)


class Segmenter(Model):
    """`Model` of maps that knows its architecture and whether its body has loaded weights.

    Args:
        architecture: Architecture to build.
        weights: Weights of the body: a file, a folder, a name at the hub, or "default"; None or "none" for random ones.
    """

    encoder: PixelEncoder
    head: PixelHead
    predicts_pixels = True

    def __init__(self, architecture: SegmenterArchitecture, weights: str | Path | None = None) -> None:
        spec = architecture.spec
        body = spec.build(spec.widths(architecture.channels)[-1], architecture.norm)
        pretrained = weights is not None and weights != RANDOM
        if weights is not None and pretrained:
            spec.load(body, resolve_weights(architecture.backbone, weights))
        super().__init__(
            PixelEncoder(body, architecture.levels, architecture.norm),
            PixelHead(architecture.widths, architecture.classes, architecture.rates, architecture.classifiers),
        )
        self.architecture = architecture
        self.pretrained = pretrained

    @property
    def width(self) -> int:
        """Number of channels d of the features."""
        return self.architecture.width

    def extra_logits(self, features: Tensor) -> tuple[Tensor, ...]:
        """Map features (n, d, h, w) to the auxiliary classifier's logits, or to z1 and z2 of two; see `PixelHead`."""
        return self.head.extra_logits(features)


def make_segmenter(
    backbone: str,
    classes: int,
    *,
    levels: int = 1,
    classifiers: int = 1,
    norm: Norm | None = None,
    rates: Sequence[int] | None = None,
    weights: str | Path | None = None,
) -> Segmenter:
    """Build a segmenter from the name of its backbone.

    Args:
        backbone: Name of the backbone.
        classes: Number of classes K.
        levels: Number of levels of features and classifiers.
        classifiers: Number of classifiers of the last level.
        norm: Normalisation; None: "affine-frozen" for DeepLab, as published, "train" for the others.
        rates: Dilation rates; None: those of the backbone.
        weights: Weights of the body, as for `Segmenter`.

    Returns:
        The segmenter.

    Raises:
        ValueError: The backbone is unknown, or the arguments contradict each other.

    Examples:
        >>> make_segmenter("dilated", classes=3)(torch.zeros(1, 3, 32, 32)).shape
        torch.Size([1, 3, 8, 8])
    """
    spec = find_pixel_backbone(backbone)
    norm = norm or spec.norm
    if norm == "frozen" and weights in (None, RANDOM):
        raise ValueError("norm='frozen' lives on the statistics of loaded weights: give weights, or take another norm")
    chosen = spec.rates if rates is None else tuple(rates)
    return Segmenter(SegmenterArchitecture(backbone, classes, levels, classifiers, chosen, norm), weights)


def describe(model: Segmenter) -> dict[str, Any]:
    """Return the architecture as plain JSON values; `segmenter_from_description` reads it back."""
    return asdict(model.architecture) | {"rates": list(model.architecture.rates)}


def segmenter_from_description(description: Mapping[str, Any]) -> Segmenter:
    """Build the network of that description with random weights, into which its state is loaded next.

    Raises:
        ValueError: The description has unknown or missing entries.
    """
    known = {field.name for field in fields(SegmenterArchitecture)}
    if strange := sorted(set(description) - known) + sorted({"backbone", "classes", "rates"} - set(description)):
        raise ValueError(f"not the description of a segmenter: {', '.join(strange)} unknown or missing")
    values = dict(description)
    values["rates"] = tuple(int(rate) for rate in description["rates"])
    return Segmenter(SegmenterArchitecture(**values))


def segmenter_groups(model: Segmenter, lr: float, *, head: float | None = None) -> list[dict[str, Any]]:
    """Optimiser groups of what learns: the encoder at the given rate, all classifiers at a multiple of it.

    Args:
        model: Segmenter; frozen parameters are in no group.
        lr: Learning rate of the encoder.
        head: Factor of the classifiers' rate; None: 10 for DeepLab, as published, 1 for the others.

    Returns:
        Groups for a torch optimiser, each with its name.
    """
    factor = model.architecture.spec.head if head is None else head
    rates = {"encoder": (model.encoder, lr), "head": (model.head, lr * factor)}
    return [
        {"params": [parameter for parameter in part.parameters() if parameter.requires_grad], "lr": rate, "name": name}
        for name, (part, rate) in rates.items()
    ]
