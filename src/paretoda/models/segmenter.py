"""A segmenter: a body, its maps as features, classifiers of pixels, and the few facts that rebuild it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any, get_args

from torch import Tensor, nn

from paretoda.core.names import unknown
from paretoda.domains import Model
from paretoda.models.aspp import PixelHead
from paretoda.models.deeplab import DeepLabBody, deeplab_resnet50, deeplab_resnet101, load_body
from paretoda.models.dilated import DilatedBody
from paretoda.models.hypercolumns import HypercolumnBody
from paretoda.models.pixel_encoder import Norm, PixelEncoder
from paretoda.models.published import IN_A_PACKAGE, RANDOM, weights_file

_SMALL, _COLUMNS = "dilated", IN_A_PACKAGE
_DEEPLABS = {"deeplab-resnet50": deeplab_resnet50, "deeplab-resnet101": deeplab_resnet101}
_CHANNELS = 64

SEGMENTATION_BACKBONES = (_SMALL, _COLUMNS, *_DEEPLABS)
"""All names that a segmenter can be made of."""

RATES = dict.fromkeys((_SMALL, _COLUMNS), (1, 2, 4, 6)) | dict.fromkeys(_DEEPLABS, (6, 12, 18, 24))
"""Name -> rates of the classifiers where nobody says otherwise; the small ones suit images of about 120x160."""


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
        if self.backbone not in SEGMENTATION_BACKBONES:
            raise ValueError(unknown("segmentation backbone", self.backbone, SEGMENTATION_BACKBONES))
        if self.classes < 2:
            raise ValueError(f"a segmenter needs at least two classes, got {self.classes}")
        if (self.levels, self.classifiers) not in ((1, 1), (2, 1), (1, 2)):
            got = f"{self.levels} and {self.classifiers}"
            raise ValueError(f"levels and classifiers must be 1 and 1, 2 and 1, or 1 and 2; got {got}")
        if self.norm not in get_args(Norm):
            raise ValueError(unknown("norm", self.norm, get_args(Norm)))
        if self.backbone != _SMALL and self.norm == "group":
            raise ValueError(f"{self.backbone} has BatchNorm: norm='group' is for {_SMALL!r} only")
        if self.backbone in _DEEPLABS and self.channels:
            raise ValueError(f"{self.backbone} has its own channels: leave out channels={self.channels}")

    @property
    def widths(self) -> tuple[int, ...]:
        """Channels of each level in the features, the last level's at the end."""
        both = DeepLabBody.widths if self.backbone in _DEEPLABS else (self.channels or _CHANNELS,) * 2
        return both[-self.levels :]

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
        body = _body(architecture)
        pretrained = weights is not None and weights != RANDOM
        if weights is not None and pretrained:
            file = weights_file(architecture.backbone, weights)
            body.load(file) if isinstance(body, HypercolumnBody) else load_body(body, file)
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


def _body(architecture: SegmenterArchitecture) -> nn.Module:
    if architecture.backbone == _SMALL:
        return DilatedBody(architecture.channels or _CHANNELS, "group" if architecture.norm == "group" else "batch")
    if architecture.backbone == _COLUMNS:
        return HypercolumnBody(architecture.channels or _CHANNELS)
    return _DEEPLABS[architecture.backbone]()


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
        rates: None: those of `RATES`.
        weights: of the body, as for `Segmenter`.
    """
    norm = norm or ("affine-frozen" if backbone in _DEEPLABS else "train")
    if norm == "frozen" and weights in (None, RANDOM):
        raise ValueError("norm='frozen' lives on the statistics of loaded weights: give weights, or take another norm")
    chosen = tuple(RATES.get(backbone, ()) if rates is None else rates)
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
    factor = head if head is not None else 10.0 if model.architecture.backbone in _DEEPLABS else 1.0
    rates = {"encoder": (model.encoder, lr), "head": (model.head, lr * factor)}
    return [
        {"params": [parameter for parameter in part.parameters() if parameter.requires_grad], "lr": rate, "name": name}
        for name, (part, rate) in rates.items()
    ]
