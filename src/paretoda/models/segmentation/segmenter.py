"""A segmenter: a backbone, its feature maps, pixel classifiers (ASPP), and the few facts that rebuild it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any, get_args

import torch
from torch import Tensor, nn

from paretoda.core.options import unknown
from paretoda.models.pretrained import RANDOM, resolve_weights
from paretoda.models.segmentation.backbones import SMALL, Norm, PixelBackbone, PixelEncoder, find_pixel_backbone
from paretoda.types import Model


class ASPP(nn.Module):
    """DeepLab-v2's classifier: the sum of one 3x3 convolution with bias for each rate (Chen et al., 2018).

    Weights start as N(0, 0.01²). AdaSegNet's published code stops after its second rate; here all are summed.

    Args:
        inputs: Channels of the features.
        classes: Number of classes K.
        rates: Dilation, and as much padding, of each convolution.
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
        """Features (n, inputs, h, w) to logits (n, K, h, w)."""
        logits: Tensor = self.branches[0](features)
        for branch in self.branches[1:]:
            logits = logits + branch(features)
        return logits

    def flat(self) -> Tensor:
        """All weights and biases as one vector, attached: what CLAN keeps apart."""
        return torch.cat([parameter.flatten() for parameter in self.parameters()])


class PixelHead(nn.Module):
    """All classifiers of a segmenter; calling it gives the logits that predict, `further` those of the others.

    One classifier for one level predicts alone. Two levels: features are [lower; last] along the channels, the main
    classifier sees the last level's only and predicts, the auxiliary one sees the lower's. Two classifiers on one level
    (CLAN): their sum z1 + z2 predicts, and `further` gives z1 and z2.

    Args:
        widths: Channels of each level in the features, one or two numbers.
        classes: Number of classes K.
        rates: Dilation rates of the convolutions of each classifier.
        classifiers: On the last level, 1 or 2; 2 only with one level.
    """

    def __init__(self, widths: Sequence[int], classes: int, rates: Sequence[int], classifiers: int = 1) -> None:
        super().__init__()
        self.widths = tuple(widths)
        self.main = ASPP(self.widths[-1], classes, rates)
        self.auxiliary = ASPP(self.widths[0], classes, rates) if len(self.widths) == 2 else None
        self.second = ASPP(self.widths[-1], classes, rates) if classifiers == 2 else None

    def forward(self, features: Tensor) -> Tensor:
        """Features (n, d, h, w) to the logits that predict, (n, K, h, w)."""
        last = features[:, -self.widths[-1] :]
        logits: Tensor = self.main(last)
        return logits if self.second is None else logits + self.second(last)

    def classifier_weights(self) -> tuple[Tensor, Tensor]:
        """All numbers of either of two classifiers, as vectors that gradients flow through."""
        if self.second is None:
            raise ValueError("this head has one classifier; CLAN needs classifiers=2")
        return self.main.flat(), self.second.flat()

    def extra_logits(self, features: Tensor) -> tuple[Tensor, ...]:
        """(), or the auxiliary classifier's logits, or those of both classifiers; each (n, K, h, w)."""
        if self.auxiliary is not None:
            return (self.auxiliary(features[:, : self.widths[0]]),)
        return () if self.second is None else (self.main(features), self.second(features))


@dataclass(frozen=True)
class SegmenterArchitecture:
    """All that is needed to build the network again; `describe` is its JSON form.

    Args:
        backbone: a name of `SEGMENTATION_BACKBONES`.
        classes: Number of classes K.
        levels: 2: the features are the last two stages' maps, [lower; last], with a classifier for each.
        classifiers: 2: two classifiers of the last stage's map, whose sum predicts (CLAN).
        rates: Dilation rates of the classifiers' convolutions.
        norm: "train": BatchNorm as usual; "affine-frozen": its factors and offsets do not learn, training normalises
            by the batch; "frozen": they do not learn either, and training normalises by the running statistics, which
            stay; "group": GroupNorm, for batches of one or two images, in the small network only.
        channels: Of the maps of all but DeepLab, which has its own; 0: 64.
    """

    backbone: str
    classes: int
    levels: int = 1
    classifiers: int = 1
    rates: tuple[int, ...] = (6, 12, 18, 24)
    norm: Norm = "train"
    channels: int = 0

    def __post_init__(self) -> None:
        known = self.spec
        if self.classes < 2:
            raise ValueError(f"a segmenter needs at least two classes, got {self.classes}")
        if (self.levels, self.classifiers) not in ((1, 1), (2, 1), (1, 2)):
            got = f"{self.levels} and {self.classifiers}"
            raise ValueError(f"levels and classifiers must be 1 and 1, 2 and 1, or 1 and 2; got {got}")
        if self.norm not in get_args(Norm):
            raise ValueError(unknown("norm", self.norm, get_args(Norm)))
        if self.norm == "group" and not known.groups:
            raise ValueError(f"{self.backbone} has BatchNorm: norm='group' is for {SMALL!r} only")
        if self.channels and known.own_widths is not None:
            raise ValueError(f"{self.backbone} has its own channels: leave out channels={self.channels}")

    @property
    def spec(self) -> PixelBackbone:
        """What is known of the backbone."""
        return find_pixel_backbone(self.backbone)

    @property
    def widths(self) -> tuple[int, ...]:
        """Channels of each level in the features, the last level's at the end."""
        return self.spec.widths(self.channels)[-self.levels :]

    @property
    def width(self) -> int:
        """Channels d of the features."""
        return sum(self.widths)


class Segmenter(Model):
    """A `Model` of maps that knows its architecture, and whether its body brought weights along.

    Args:
        architecture: Architecture to build.
        weights: Of the body: a file, a folder, a name at the hub, or "default"; None or "none" for random ones.
    """

    encoder: PixelEncoder
    head: PixelHead
    predicts_pixels = True

    def __init__(self, architecture: SegmenterArchitecture, weights: str | Path | None = None) -> None:
        known = architecture.spec
        body = known.build(known.widths(architecture.channels)[-1], architecture.norm)
        pretrained = weights is not None and weights != RANDOM
        if weights is not None and pretrained:
            known.load(body, resolve_weights(architecture.backbone, weights))
        super().__init__(
            PixelEncoder(body, architecture.levels, architecture.norm),
            PixelHead(architecture.widths, architecture.classes, architecture.rates, architecture.classifiers),
        )
        self.architecture = architecture
        self.pretrained = pretrained

    @property
    def width(self) -> int:
        """Channels d of the features."""
        return self.architecture.width

    def extra_logits(self, features: Tensor) -> tuple[Tensor, ...]:
        """Features (n, d, h, w) to the auxiliary classifier's logits, or to z1 and z2 of two; `PixelHead` says more."""
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
    """A segmenter from the name of its backbone; the arguments are those of `SegmenterArchitecture`.

    Args:
        backbone: Its name.
        classes: Number of classes K.
        levels: Of features and classifiers.
        classifiers: Of the last level.
        norm: None: "affine-frozen" for DeepLab, as published, "train" for the others.
        rates: None: the backbone's.
        weights: Of the body, as for `Segmenter`.
    """
    known = find_pixel_backbone(backbone)
    norm = norm or known.norm
    if norm == "frozen" and weights in (None, RANDOM):
        raise ValueError("norm='frozen' lives on the statistics of loaded weights: give weights, or take another norm")
    chosen = known.rates if rates is None else tuple(rates)
    return Segmenter(SegmenterArchitecture(backbone, classes, levels, classifiers, chosen, norm), weights)


def describe(model: Segmenter) -> dict[str, Any]:
    """The architecture as plain JSON values; `segmenter_from_description` reads it back."""
    return asdict(model.architecture) | {"rates": list(model.architecture.rates)}


def segmenter_from_description(description: Mapping[str, Any]) -> Segmenter:
    """The network of that description, with random weights: load its state next."""
    known = {field.name for field in fields(SegmenterArchitecture)}
    if strange := sorted(set(description) - known) + sorted({"backbone", "classes", "rates"} - set(description)):
        raise ValueError(f"not the description of a segmenter: {', '.join(strange)} unknown or missing")
    values = dict(description)
    values["rates"] = tuple(int(rate) for rate in description["rates"])
    return Segmenter(SegmenterArchitecture(**values))


def segmenter_groups(model: Segmenter, lr: float, *, head: float | None = None) -> list[dict[str, Any]]:
    """Optimiser groups of what learns: the encoder at the rate itself, all classifiers at a multiple of it.

    Args:
        model: Frozen parameters are in no group.
        lr: The rate of the encoder.
        head: Factor of the classifiers' rate; None: 10 for DeepLab, as published, 1 for the others.
    """
    factor = model.architecture.spec.head if head is None else head
    rates = {"encoder": (model.encoder, lr), "head": (model.head, lr * factor)}
    return [
        {"params": [parameter for parameter in part.parameters() if parameter.requires_grad], "lr": rate, "name": name}
        for name, (part, rate) in rates.items()
    ]
