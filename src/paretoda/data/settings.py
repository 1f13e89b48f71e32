"""How two domains are split, scaled and batched."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, get_args

from paretoda.data.prefetching import Reading
from paretoda.errors import DataError
from paretoda.io.limits import LONGEST_SIDE

Scaling = Literal["per-domain", "joint", "source", "none"]
Augment = Literal["none", "flip", "light", "standard", "strong"]


@dataclass(frozen=True)
class PairSettings:
    """Everything that, with the data, decides every batch.

    Args:
        seed: of splits, orders and augmentation.
        batch_size: rows of each domain in a batch; lowered to the smaller domain's size where that is less.
        held_out: the share of each domain that is never trained on; 0 gives no guide.
        scaling: of features: whose mean and deviation make the z-scores.
        image_size: side of the squares that images become; by default their own, 224 at most.
        channels: 1 or 3; by default 3 for photographs, and for small images what they have.
        normalise: (mean, std) per channel of pixels in 0..1; by default ImageNet's for 3 channels, 0.5 for 1.
        augment: of training images: by default "none" up to 64 pixels, otherwise "standard".
        class_balanced: draw the source's classes equally often.
        skip_bad: leave unreadable images out instead of stopping.
        least_target: fewer target samples are an error.
        reading: how the data are read, which decides nothing.
    """

    seed: int = 0
    batch_size: int = 32
    held_out: float = 0.1
    scaling: Scaling = "per-domain"
    image_size: int | None = None
    channels: Literal[1, 3] | None = None
    normalise: tuple[tuple[float, ...], tuple[float, ...]] | None = None
    augment: Augment | None = None
    class_balanced: bool = False
    skip_bad: bool = False
    least_target: int = 20
    reading: Reading = field(default_factory=Reading)

    def __post_init__(self) -> None:
        if self.batch_size < 1:
            raise DataError(f"the batch size is {self.batch_size}; it must be at least 1")
        if not 0 <= self.held_out <= 0.5:
            raise DataError(f"the held-out share is {self.held_out}; it must be between 0 and 0.5")
        if self.image_size is not None and not 1 <= self.image_size <= LONGEST_SIDE:
            raise DataError(f"the image size is {self.image_size}; it must be between 1 and {LONGEST_SIDE}")
        if self.channels not in (None, 1, 3):
            raise DataError(f"images cannot have {self.channels} channels; choose 1 or 3")
        _one_of("scaling", self.scaling, get_args(Scaling))
        if self.augment is not None:
            _one_of("augmentation", self.augment, get_args(Augment))


def _one_of(what: str, name: str, known: tuple[str, ...]) -> None:
    if name not in known:
        raise DataError(f"there is no {what} {name!r}; choose from {', '.join(known)}")
