"""Two domains of scenes, split and batched: every batch is a pure function of seed and step."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import ClassVar, Literal, get_args

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.ndimage import gaussian_filter
from torch import Tensor
from torch.nn.functional import interpolate, one_hot

from paretoda.core.seeds import derive_seed
from paretoda.data.batching import Positions, batch_generator
from paretoda.data.pair import Forward, Pair, Part
from paretoda.data.prefetching import prefetch_batches
from paretoda.data.rows import ArrayCache, fits_in_memory
from paretoda.data.segmentation.label_tables import Colour
from paretoda.data.segmentation.pixel_rows import sample_pixels
from paretoda.data.segmentation.samples import SceneSamples
from paretoda.data.segmentation.transforms import SceneTransform
from paretoda.data.segmentation.translation import Translation
from paretoda.data.settings import BatchSettings, check_choice
from paretoda.distributed.collectives import SINGLE_PROCESS, Processes
from paretoda.errors import DataError
from paretoda.types import IGNORE, LabelledTarget, Source, Target

ConventionName = Literal["torchvision", "caffe", "efficientnet"]
_SIGMA = 70 / 1914
"""Deviation of the priors' smoothing, as a share of the width: 70 pixels of GTA5's 1914."""
_COUNTED = 2000
_SNAPSHOT_SEEDS: dict[Part, int] = {"source": 0, "held-out-source": 1, "target": 2, "held-out-target": 3}
_LABELLED_SEED = 4
_SNAPSHOT_IMAGES = 200
"""Images of a part in a snapshot, with 32 pixels each: as many rows as a small set of images has."""
_SNAPSHOT_PIXELS = 32


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


@dataclass(frozen=True, eq=False)
class SceneRows:
    """Scenes with their transform, decoded and resized when they are first needed.

    Args:
        samples: The scenes.
        transform: The transform.
        cached_images: Resized images, shape (h, w, 3) each.
        cached_maps: Resized label maps, shape (h, w) each.
    """

    samples: SceneSamples
    transform: SceneTransform
    cached_images: ArrayCache
    cached_maps: ArrayCache

    def images(self, index: Positions) -> NDArray[np.uint8]:
        """Return these images at the transform's size, shape (b, h, w, 3)."""
        # One file at a time: images in full size take much memory.
        return self.cached_images.fetch(
            index, lambda new: np.concatenate([self.transform.prepare(self.samples.read([place])) for place in new])
        )

    def maps(self, index: Positions) -> NDArray[np.uint8]:
        """Return their label maps at the same size, shape (b, h, w)."""
        if not self.samples.labelled:
            raise DataError("these scenes were opened without labels: only the source has them")
        return self.cached_maps.fetch(
            index,
            lambda new: np.concatenate(
                [self.transform.prepare_labels(self.samples.read_labels([place])) for place in new]
            ),
        )

    def augment(self, index: Positions, generator: torch.Generator) -> tuple[Tensor, Tensor]:
        """Return images in 0..255, (b, 3, h, w), and int64 labels, (b, h, w), augmented together in every batch."""
        pixels, labels = self.transform.augment(self.images(index), self.maps(index), generator)
        if labels is None:
            raise AssertionError("labels were given")
        return pixels, labels

    def pixels(self, index: Positions) -> Tensor:
        """Return images in 0..255 that are not augmented, shape (b, 3, h, w)."""
        return self.transform.pixels(self.images(index))

    def evaluate(self, index: Positions) -> Tensor:
        """Return normalised images that are not augmented, shape (b, 3, h, w)."""
        return self.transform.evaluate(self.images(index))


def make_scene_rows(samples: SceneSamples, transform: SceneTransform) -> SceneRows:
    """Return the rows of scenes, with caches where they fit into memory; nothing is decoded yet."""
    width, height = transform.size
    fits = fits_in_memory(len(samples), width * height * (4 if samples.labelled else 3))
    images = len(samples) if fits else 0
    maps = images if samples.labelled else 0
    return SceneRows(
        samples, transform, ArrayCache.make(images, (height, width, 3)), ArrayCache.make(maps, (height, width))
    )


def class_shares(labels: Iterable[Tensor], classes: int) -> Tensor:
    """Share of each class among all labelled pixels, shape (K,), float64; all 0 where no pixel has a label.

    Args:
        labels: int64 maps, each of shape (b, h, w), `IGNORE` where there is no label.
        classes: Number of classes K.
    """
    counts = torch.zeros(classes, dtype=torch.int64)
    for maps in labels:
        counts += torch.bincount(maps[maps != IGNORE], minlength=classes)
    return counts.double() / counts.sum().clamp(min=1)


def spatial_priors(labels: Iterable[Tensor], classes: int, size: tuple[int, int]) -> Tensor:
    """How likely each class is at each place, relative to how likely it is anywhere, shape (K, h, w).

    The share of the class among the labelled pixels around a place, divided so that a class's map averages 1: the
    factors of CBST's spatial priors (Zou et al., 2018). A class that never occurs has 1 everywhere, and a place without
    any label has 1 for all classes.

    Args:
        labels: int64 maps, each of shape (b, H, W), `IGNORE` where there is no label.
        classes: Number of classes K.
        size: Height and width of the result.
    """
    counts = torch.zeros(classes, *size, dtype=torch.float64)
    for maps in labels:
        # An additional class collects the ignored pixels and is dropped.
        at = torch.where(maps == IGNORE, classes, maps)
        found = one_hot(at, classes + 1).sum(dim=0)[..., :classes].permute(2, 0, 1)
        counts += interpolate(found[None].double(), size=size, mode="area")[0]
    sigma = _SIGMA * size[1]
    smooth = torch.from_numpy(gaussian_filter(counts.numpy(), sigma=(0, sigma, sigma), mode="nearest"))
    valid = smooth.sum(dim=0)
    tiny = torch.finfo(torch.float64).tiny
    shares = smooth / valid.clamp(min=tiny)
    average = shares.sum(dim=(1, 2), keepdim=True) / (valid > 0).sum().clamp(min=1)
    return torch.where((average > 0) & (valid > 0), shares / average.clamp(min=tiny), 1.0).float()


@dataclass(frozen=True, eq=False, kw_only=True)
class ScenePair(Pair):
    """A pair of domains for segmentation.

    `make_scene_pair` builds one. The fields are those of `Pair` and these.

    Args:
        colours: Colours of the classes.
        translation: Changes the appearance of the source's training images; their labels stay as they are.
    """

    settings: ScenePairSettings
    colours: tuple[Colour, ...]
    source: SceneRows
    target: SceneRows
    translation: Translation | None = None

    snapshot_batch: ClassVar[int] = 8

    @property
    def kind(self) -> Literal["segmentation"]:
        """The kind that distinguishes it from pairs for classification."""
        return "segmentation"

    @property
    def input_shape(self) -> tuple[int, int, int]:
        """Channels, height and width of a target image."""
        width, height = self.target.transform.size
        return 3, height, width

    def label_maps(self, part: Part, batch_size: int, most: int | None = None) -> Iterator[Tensor]:
        """Return the source's label maps of a part, in the order and at the size of `inputs`, int64 (b, h, w) each.

        Args:
            part: Part of the source.
            batch_size: Maps at a time, b.
            most: Largest number of maps, as in `inputs`.

        Raises:
            DataError: The part belongs to the target, which has no labels.
        """
        if not part.endswith("source"):
            raise DataError(f"the part {part!r} has no labels: only the source has")

        def maps(positions: Positions) -> Tensor:
            return torch.from_numpy(self.source.maps(positions)).long()

        return prefetch_batches(maps, self._some(part, most), batch_size, self.workers)

    def source_frequencies(self) -> Tensor:
        """Return the share of each class among the labelled pixels of the source's training part, (K,), float64.

        Where there are more than 2,000 images, 2,000 of them are counted.
        """
        return class_shares(self.label_maps("source", self.snapshot_batch, _COUNTED), len(self.classes))

    def source_priors(self, height: int, width: int) -> Tensor:
        """Return how likely each class is at each place of a source image, 1 on average, shape (K, height, width).

        Where there are more than 2,000 images, 2,000 of them are counted.
        """
        counted = self.label_maps("source", self.snapshot_batch, _COUNTED)
        return spatial_priors(counted, len(self.classes), (height, width))

    def prediction_transform(self) -> SceneTransform:
        """Return the transform for new target data."""
        return self.target.transform

    def source_rows(self, part: Part, forward: Forward, processes: Processes) -> Source:  # noqa: ARG002
        """Return labelled pixels of a part of the source; every process evaluates all images."""
        labels = self.label_maps(part, self.snapshot_batch, _SNAPSHOT_IMAGES)
        return sample_pixels(
            forward, self._snapshot_inputs(part), labels, per_image=_SNAPSHOT_PIXELS, seed=_SNAPSHOT_SEEDS[part]
        )

    def target_rows(self, part: Part, forward: Forward, processes: Processes) -> Target:  # noqa: ARG002
        """Return pixels of a part of the target; every process evaluates all images."""
        return sample_pixels(
            forward, self._snapshot_inputs(part), per_image=_SNAPSHOT_PIXELS, seed=_SNAPSHOT_SEEDS[part]
        )

    def held_out_labelled(self, forward: Forward) -> LabelledTarget | None:
        """Return pixels of the labelled target images that are held out; see `Pair`."""
        if self.labelled is None or not len(chosen := self.labelled.held_out):
            return None
        batches = [chosen[first : first + self.snapshot_batch] for first in range(0, len(chosen), self.snapshot_batch)]
        inputs, labels = zip(*(self.labelled.read(batch, None) for batch in batches), strict=True)
        found = sample_pixels(forward, inputs, labels, per_image=_SNAPSHOT_PIXELS, seed=_LABELLED_SEED)
        return LabelledTarget(found.features, found.logits, found.index, labels=found.labels)

    def _snapshot_inputs(self, part: Part) -> Iterator[Tensor]:
        return self.inputs(part, self.snapshot_batch, SINGLE_PROCESS, _SNAPSHOT_IMAGES)

    def _read(
        self, step: int, source: Positions, target: Positions, processes: Processes
    ) -> tuple[Tensor, Tensor, Tensor]:
        seed = derive_seed(self.settings.seed, "augment-source", step)
        generator = batch_generator(seed, self.settings.batch_size, processes)
        pixels, labels = self.source.augment(source, generator)
        raw = self.target.pixels(target)
        translated = self.source.transform.normalise(self._translate(pixels, raw, step))
        return translated, labels, self.target.transform.normalise(raw)

    def _translate(self, source: Tensor, target: Tensor, step: int) -> Tensor:
        if self.translation is None:
            return source
        if target.shape != source.shape:
            target = interpolate(target, size=source.shape[2:], mode="bilinear", antialias=True)
        generator = torch.Generator().manual_seed(derive_seed(self.settings.seed, "translate", step))
        changed = self.translation(source, target, generator)
        if changed.shape != source.shape:
            raise ValueError(f"the translation made {tuple(changed.shape)} of images {tuple(source.shape)}")
        return changed
