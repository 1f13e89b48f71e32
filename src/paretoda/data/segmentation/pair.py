"""A labelled and an unlabelled domain of scenes, split and batched: every batch is a pure function of seed and step."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import ClassVar, Literal

import torch
from scipy.ndimage import gaussian_filter
from torch import Tensor
from torch.nn.functional import interpolate, one_hot

from paretoda.core.seeds import derive_seed
from paretoda.data.batching import Positions, batch_generator
from paretoda.data.pair import Forward, Pair, Part
from paretoda.data.prefetching import prefetch_batches
from paretoda.data.segmentation.label_tables import Colour
from paretoda.data.segmentation.pixel_rows import sample_pixels
from paretoda.data.segmentation.rows import SceneRows
from paretoda.data.segmentation.settings import ScenePairSettings
from paretoda.data.segmentation.transforms import SceneTransform
from paretoda.data.segmentation.translation import Translation
from paretoda.distributed.collectives import SINGLE_PROCESS, Processes
from paretoda.errors import DataError
from paretoda.types import IGNORE, Source, Target

_SIGMA = 70 / 1914
"""Deviation of the priors' smoothing, as a share of the width: 70 pixels of GTA5's 1914."""


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


_COUNTED = 2000
_SNAPSHOT_SEEDS: dict[Part, int] = {"source": 0, "held-out-source": 1, "target": 2, "held-out-target": 3}
_SNAPSHOT_IMAGES = 200
"""Images of a part in a snapshot, with 32 pixels each: as many rows as a small set of images has."""
_SNAPSHOT_PIXELS = 32


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
        """Return labelled pixels of a part of the source; every process looks at all images."""
        labels = self.label_maps(part, self.snapshot_batch, _SNAPSHOT_IMAGES)
        return sample_pixels(
            forward, self._snapshot_inputs(part), labels, per_image=_SNAPSHOT_PIXELS, seed=_SNAPSHOT_SEEDS[part]
        )

    def target_rows(self, part: Part, forward: Forward, processes: Processes) -> Target:  # noqa: ARG002
        """Return pixels of a part of the target; every process looks at all images."""
        return sample_pixels(
            forward, self._snapshot_inputs(part), per_image=_SNAPSHOT_PIXELS, seed=_SNAPSHOT_SEEDS[part]
        )

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
