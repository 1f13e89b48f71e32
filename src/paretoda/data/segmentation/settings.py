"""How two domains of scenes are opened, split and batched."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, get_args

from paretoda.data.prefetching import Reading
from paretoda.errors import DataError

ConventionName = Literal["torchvision", "caffe", "efficientnet"]


@dataclass(frozen=True)
class ScenePairSettings:
    """Everything that, with the data, decides every batch.

    Only the source is mirrored, scaled and cropped. A target image is the same in every step, because objectives keep
    pseudo-labels by its position (`Batch.target_index`) and would not know where its pixels went.

    Args:
        seed: of splits, orders and augmentation.
        batch_size: images of each domain in a batch; lowered to the smaller domain's size where that is less.
        held_out: the share of each domain that is never trained on; 0 gives no guide.
        size: width and height of all images; by default the target's own, 1024 at most on the longer side.
        source_size: of the source's, where it is to differ (GTA5 1280x720, Cityscapes 1024x512).
        convention: what the network's pixels are.
        flip: mirror half of the source's images.
        scales: least and largest random factor of the source's size; CRST takes (0.5, 1.5).
        crop: width and height of a random part of the source's images.
        source_table: name of the table of the source's labels; by default the layout's.
        target_table: name of the table that says how many classes the target has, as a check.
        source_split: of Cityscapes and CamVid.
        target_split: of Cityscapes and CamVid.
        skip_bad: leave scenes out that cannot be read, instead of stopping.
        least_target: fewer target images are an error.
        reading: how the data are read, which decides nothing.
    """

    seed: int = 0
    batch_size: int = 2
    held_out: float = 0.1
    size: tuple[int, int] | None = None
    source_size: tuple[int, int] | None = None
    convention: ConventionName = "torchvision"
    flip: bool = True
    scales: tuple[float, float] | None = None
    crop: tuple[int, int] | None = None
    source_table: str | None = None
    target_table: str | None = None
    source_split: str = "train"
    target_split: str = "train"
    skip_bad: bool = False
    least_target: int = 20
    reading: Reading = field(default_factory=Reading)

    def __post_init__(self) -> None:
        if self.batch_size < 1:
            raise DataError(f"the batch size is {self.batch_size}; it must be at least 1")
        if not 0 <= self.held_out <= 0.5:
            raise DataError(f"the held-out share is {self.held_out}; it must be between 0 and 0.5")
        if self.convention not in get_args(ConventionName):
            known = ", ".join(get_args(ConventionName))
            raise DataError(f"there is no convention {self.convention!r}; choose from {known}")
