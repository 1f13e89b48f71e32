"""A segmenter: a body, its maps as features, classifiers of pixels, and the few facts that rebuild it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any, get_args

from torch import Tensor

from paretoda.core.names import unknown
from paretoda.domains import Model
from paretoda.models.aspp import PixelHead
from paretoda.models.pixel_backbones import SMALL, PixelBackbone, pixel_backbone
from paretoda.models.pixel_encoder import Norm, PixelEncoder
from paretoda.models.published import RANDOM, weights_file


@dataclass(frozen=True)
class SegmenterArchitecture:
    """All that is needed to build the network again; `describe` is its JSON form.

    Args:
        backbone: a name of `SEGMENTATION_BACKBONES`.
        classes: the number K of classes.
        levels: 2: the features are the last two stages' maps, [lower; last], with a classifier for each.
        classifiers: 2: two classifiers of the last stage's map, whose sum predicts (CLAN).
        rates: of the classifiers' convolutions.
        norm: "train": BatchNorm as usual; "affine-frozen": its factors and offsets do not learn, training normalises
            by the batch; "frozen": they do not learn either, and training normalises by the running statistics, which
            stay; "group": GroupNorm, for batches of one or two images, in the small network only.
        channels: of the maps of all but DeepLab, which has its own; 0: 64.
    """

    backbone: str
    classes: int
    levels: int = 1
    classifiers: int = 1
    rates: tuple[int, ...] = (6, 12, 18, 24)
    norm: Norm = "train"
    channels: int = 0

    def __post_init__(self) -> None:
        known = self.known
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
    def known(self) -> PixelBackbone:
        """What is known of the backbone."""
        return pixel_backbone(self.backbone)

    @property
    def widths(self) -> tuple[int, ...]:
        """Channels of each level in the features, the last level's at the end."""
        return self.known.widths(self.channels)[-self.levels :]

    @property
    def width(self) -> int:
        """Channels d of the features."""
        return sum(self.widths)


class Segmenter(Model):
    """A `Model` of maps that knows its architecture, and whether its body brought weights along.

    Args:
        architecture: what to build.
        weights: of the body: a file, a folder, a name at the hub, or "default"; None or "none" for random ones.
    """

    encoder: PixelEncoder
    head: PixelHead
    makes_maps = True

    def __init__(self, architecture: SegmenterArchitecture, weights: str | Path | None = None) -> None:
        known = architecture.known
        body = known.build(known.widths(architecture.channels)[-1], architecture.norm)
        pretrained = weights is not None and weights != RANDOM
        if weights is not None and pretrained:
            known.load(body, weights_file(architecture.backbone, weights))
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

    def further(self, features: Tensor) -> tuple[Tensor, ...]:
        """Features (n, d, h, w) to the auxiliary classifier's logits, or to z1 and z2 of two; `PixelHead` says more."""
        return self.head.further(features)


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
        backbone: its name.
        classes: the number K of classes.
        levels: of features and classifiers.
        classifiers: of the last level.
        norm: None: "affine-frozen" for DeepLab, as published, "train" for the others.
        rates: None: the backbone's.
        weights: of the body, as for `Segmenter`.
    """
    known = pixel_backbone(backbone)
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
        model: frozen parameters are in no group.
        lr: the rate of the encoder.
        head: factor of the classifiers' rate; None: 10 for DeepLab, as published, 1 for the others.
    """
    factor = model.architecture.known.head if head is None else head
    rates = {"encoder": (model.encoder, lr), "head": (model.head, lr * factor)}
    return [
        {"params": [parameter for parameter in part.parameters() if parameter.requires_grad], "lr": rate, "name": name}
        for name, (part, rate) in rates.items()
    ]
