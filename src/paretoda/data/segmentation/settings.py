"""How two domains of scenes are opened, split and batched."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

from paretoda.data.settings import BatchSettings, check_choice

ConventionName = Literal["torchvision", "caffe", "efficientnet"]


@dataclass(frozen=True)
class ScenePairSettings(BatchSettings):
    """Everything that, together with the data, determines every batch for segmentation.

    The fields of `BatchSettings` come first. Only the source is mirrored, scaled and cropped. A target image is the
    same in every step, because objectives keep pseudo-labels by its position (`Batch.target_index`) and could not
    follow its pixels.

    Args:
        batch_size: Images of each domain in a batch; lowered to the smaller domain's size where that is less.
        size: Width and height of all images; by default the target's own, at most 1024 on the longer side.
        source_size: Width and height of the source's images where they differ (GTA5 1280x720, Cityscapes 1024x512).
        convention: Pixel normalisation that the network expects.
        flip: Whether half of the source's images are mirrored.
        scales: Least and largest random factor of the source's size; CRST takes (0.5, 1.5).
        crop: Width and height of a random part of the source's images.
        source_table: Name of the table of the source's labels; by default the layout's.
        target_table: Name of the table that says how many classes the target has, as a check.
        source_split: Split of Cityscapes and CamVid as a source.
        target_split: Split of Cityscapes and CamVid as a target.

    Raises:
        DataError: A value is out of its range or unknown.
    """

    batch_size: int = 2
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

    def __post_init__(self) -> None:
        super().__post_init__()
        check_choice("convention", self.convention, get_args(ConventionName))
