"""How two domains are split, scaled and batched."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, get_args

from paretoda.data.prefetching import Reading
from paretoda.errors import DataError

Scaling = Literal["per-domain", "joint", "source", "none"]
Augment = Literal["none", "flip", "light", "standard", "strong"]
Sources = Literal["separate", "pooled"]
_COMPONENTS, _COMPONENTS_PER_CLASS = 128, 12
"""Principal components by default, at least: too few for each class do harm (docs/decisions/0008)."""
LONGEST = 8192
"""The longest side, in pixels, that images are resized to."""


@dataclass(frozen=True)
class BatchSettings:
    """Settings that every pair of domains has, whatever its task.

    Args:
        seed: Seed of orders and augmentation, and of the split unless `split_seed` is given.
        batch_size: Samples of each domain in a batch; lowered to the smaller domain's size where that is less.
        held_out: Share of each domain that is never trained on; 0 gives no guide.
        skip_bad: Whether unreadable files are left out instead of raising an error.
        least_target: Number of target samples below which an error is raised.
        reading: How the data are read; it changes no batch.
        split_seed: Seed of the choice of held-out samples; None: `seed`.

    Raises:
        DataError: A value is out of its range.
    """

    seed: int = 0
    batch_size: int = 32
    held_out: float = 0.1
    skip_bad: bool = False
    least_target: int = 20
    reading: Reading = field(default_factory=Reading)
    split_seed: int | None = None

    @property
    def seed_of_split(self) -> int:
        """Seed of the choice of held-out samples."""
        return self.seed if self.split_seed is None else self.split_seed

    def __post_init__(self) -> None:
        if self.batch_size < 1:
            raise DataError(f"the batch size is {self.batch_size}; it must be at least 1")
        if not 0 <= self.held_out <= 0.5:
            raise DataError(f"the held-out share is {self.held_out}; it must be between 0 and 0.5")


@dataclass(frozen=True)
class PairSettings(BatchSettings):
    """Everything that, together with the data, determines every batch for classification.

    The fields of `BatchSettings` come first.

    Args:
        scaling: For features, the domain whose mean and deviation give the z-scores.
        components: For features, the number of principal components that the network reads; 0: all features; None: 128,
            but at least four for each class.
        image_size: Side of the squares that images become; by default their own, at most 224.
        channels: 1 or 3; by default 3 for photographs, and for small images what they have.
        normalise: (mean, std) per channel of pixels in 0..1; by default ImageNet's for 3 channels, 0.5 for 1.
        augment: Augmentation of training images; by default "none" up to 64 pixels, otherwise "standard".
        class_balanced: Whether the source's classes are drawn equally often.
        sources: Whether several sources stay separate domains, or are pooled into one.

    Raises:
        DataError: A value is out of its range or unknown.

    Examples:
        >>> PairSettings(batch_size=64).held_out
        0.1
        >>> PairSettings(scaling="both")
        Traceback (most recent call last):
        ...
        paretoda.errors.DataError: there is no scaling 'both'; choose from per-domain, joint, source, none
    """

    scaling: Scaling = "per-domain"
    components: int | None = 0
    image_size: int | None = None
    channels: Literal[1, 3] | None = None
    normalise: tuple[tuple[float, ...], tuple[float, ...]] | None = None
    augment: Augment | None = None
    class_balanced: bool = False
    sources: Sources = "separate"

    def count_components(self, classes: int) -> int:
        """Return the number of principal components for so many classes."""
        return max(_COMPONENTS, _COMPONENTS_PER_CLASS * classes) if self.components is None else self.components

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.image_size is not None and not 1 <= self.image_size <= LONGEST:
            raise DataError(f"the image size is {self.image_size}; it must be between 1 and {LONGEST}")
        if self.channels not in (None, 1, 3):
            raise DataError(f"images cannot have {self.channels} channels; choose 1 or 3")
        check_choice("scaling", self.scaling, get_args(Scaling))
        check_choice("way to treat sources", self.sources, get_args(Sources))
        if self.augment is not None:
            check_choice("augmentation", self.augment, get_args(Augment))


def check_choice(what: str, name: str, known: tuple[str, ...]) -> None:
    """Raise a `DataError` that lists the choices where a name is none of them."""
    if name not in known:
        raise DataError(f"there is no {what} {name!r}; choose from {', '.join(known)}")
