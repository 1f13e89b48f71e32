"""A labelled and an unlabelled domain of scenes, split and batched: every batch is a pure function of seed and step."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch
from scipy.ndimage import gaussian_filter
from torch import Tensor
from torch.nn.functional import interpolate, one_hot

from paretoda.core.seeds import derive_seed
from paretoda.data.batching import Places, batch_generator, endless
from paretoda.data.pair import Part
from paretoda.data.prefetching import prefetch_batches
from paretoda.data.samples import Image8, Index
from paretoda.data.segmentation.label_tables import Colour
from paretoda.data.segmentation.rows import SceneRows
from paretoda.data.segmentation.settings import ScenePairSettings
from paretoda.data.segmentation.transforms import SceneTransform
from paretoda.data.segmentation.translation import Translation
from paretoda.distributed.collectives import SINGLE_PROCESS, Processes
from paretoda.errors import DataError
from paretoda.types import IGNORE, Batch

_SIGMA = 70 / 1914
"""Of the priors' smoothing, as a share of the width: 70 pixels of GTA5's 1914."""


def class_shares(labels: Iterable[Tensor], classes: int) -> Tensor:
    """The share of each class among all valid pixels, shape (K,), float64; all 0 where no pixel is valid.

    Args:
        labels: int64 maps, each of shape (b, h, w), `IGNORE` where there is none.
        classes: K.
    """
    counts = torch.zeros(classes, dtype=torch.int64)
    for maps in labels:
        counts += torch.bincount(maps[maps != IGNORE], minlength=classes)
    return counts.double() / counts.sum().clamp(min=1)


def spatial_priors(labels: Iterable[Tensor], classes: int, size: tuple[int, int]) -> Tensor:
    """How likely each class is at each place, over how likely it is anywhere, shape (K, h, w).

    The share of the class among the valid pixels around a place, divided so that a class's map averages 1: the factors
    of CBST's spatial priors (Zou et al., 2018). A class that never occurs has 1 everywhere, and a place without any
    label has 1 for all classes.

    Args:
        labels: int64 maps, each of shape (b, H, W), `IGNORE` where there is none.
        classes: K.
        size: height and width of the result.
    """
    counts = torch.zeros(classes, *size, dtype=torch.float64)
    for maps in labels:
        # One more class takes the ignored pixels, and is dropped.
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


_AT_ONCE = 8
_COUNTED = 2000


@dataclass(frozen=True, eq=False)
class ScenePair:
    """Two domains of scenes, ready for training. The target's labels are not in here.

    Args:
        settings: how they were split and batched; `batch_size` is the size that fits the data.
        classes: names of the labels.
        colours: of the labels.
        source: the source's scenes and transform.
        target: the target's.
        source_train: positions of the source's training part.
        source_held_out: positions of its held-out part, which no batch contains.
        target_train: positions of the target's training part.
        target_held_out: positions of the guide part, which appears in `Batch.guide` only.
        translation: changes the looks of the source's training batches; the labels stay as they are.
        notes: what the user should be told, one sentence each.
        workers: threads that read ahead where many batches are wanted.
    """

    settings: ScenePairSettings
    classes: tuple[str, ...]
    colours: tuple[Colour, ...]
    source: SceneRows
    target: SceneRows
    source_train: Places
    source_held_out: Places
    target_train: Places
    target_held_out: Places
    translation: Translation | None = None
    notes: tuple[str, ...] = ()
    workers: int = 0

    @property
    def kind(self) -> Literal["segmentation"]:
        """What tells it from pairs for classification."""
        return "segmentation"

    @property
    def input_shape(self) -> tuple[int, int, int]:
        """Of one target image: channels, height and width."""
        width, height = self.target.transform.size
        return 3, height, width

    @property
    def guide_size(self) -> int:
        """Held-out images of the target in a batch."""
        return min(self.settings.batch_size, len(self.target_held_out))

    def batch(self, step: int, *, guide: bool = True, processes: Processes = SINGLE_PROCESS) -> Batch:
        """The batch of this step, the same whenever and in whatever order it is asked for.

        Args:
            step: from 0.
            guide: False saves the reading of held-out images that nobody wants.
            processes: several share the batch: each reads its own images and no others.
        """
        size = self.settings.batch_size
        own = processes.share(size)
        source = self._order("source", len(self.source_train), step, size)[own]
        target = self._order("target", len(self.target_train), step, size)[own]
        held = self.guide_size if guide else 0
        chosen = self._order("guide", len(self.target_held_out), step, held)[processes.share(held)] if held else None
        chance = batch_generator(derive_seed(self.settings.seed, "augment-source", step), size, processes)
        pixels, labels = self.source.augmented(self.source_train[source], chance)
        raw = self.target.pixels(self.target_train[target])
        return Batch(
            source=self.source.transform.normalise(self._translated(pixels, raw, step)),
            labels=labels,
            target=self.target.transform.normalise(raw),
            guide=None if chosen is None else self.target.evaluate(self.target_held_out[chosen]),
            source_index=torch.from_numpy(source),
            target_index=torch.from_numpy(target),
            guide_index=None if chosen is None else torch.from_numpy(chosen),
        )

    def whole(self, part: Part, batch_size: int, most: int | None = None) -> Iterator[Tensor]:
        """All images of a part in order, neither augmented nor translated, (b, 3, h, w) at a time.

        Args:
            part: which.
            batch_size: b.
            most: where there are more, so many of them, spread evenly.
        """
        return prefetch_batches(self._rows(part).evaluate, self._some(part, most), batch_size, self.workers)

    def labels_in_batches(self, part: Part, batch_size: int, most: int | None = None) -> Iterator[Tensor]:
        """The source's label maps of a part, in the order and at the size of `whole`, int64 (b, h, w) at a time."""
        if not part.endswith("source"):
            raise DataError(f"the part {part!r} has no labels: only the source has")

        def maps(places: Places) -> Tensor:
            return torch.from_numpy(self.source.maps(places)).long()

        return prefetch_batches(maps, self._some(part, most), batch_size, self.workers)

    def source_frequencies(self) -> Tensor:
        """The share of each class among the valid pixels of the source's training part, shape (K,), float64.

        Counted in 2,000 images where there are more.
        """
        return class_shares(self.labels_in_batches("source", _AT_ONCE, _COUNTED), len(self.classes))

    def source_priors(self, height: int, width: int) -> Tensor:
        """How likely each class is at each place of a source image, 1 on average, shape (K, height, width).

        Counted in 2,000 images where there are more.
        """
        counted = self.labels_in_batches("source", _AT_ONCE, _COUNTED)
        return spatial_priors(counted, len(self.classes), (height, width))

    def names(self, part: Part, index: Index | None = None) -> list[str]:
        """What a table calls these images of a part; all of them by default."""
        return self._rows(part).samples.names(self._chosen(part, index))

    def images(self, part: Part, index: Index) -> list[Image8]:
        """The raw images at these positions of a part, at their own sizes, for a report."""
        return self._rows(part).samples.read(self._chosen(part, index))

    def prediction_transform(self) -> SceneTransform:
        """The transform for new target data."""
        return self.target.transform

    def places(self, part: Part) -> Places:
        """The positions of a part among all scenes of its domain."""
        every = self._rows(part).samples
        return {
            "source": self.source_train,
            "held-out-source": self.source_held_out,
            "target": self.target_train,
            "held-out-target": self.target_held_out,
        }.get(part, np.arange(len(every)))

    def _some(self, part: Part, most: int | None) -> Places:
        places = self.places(part)
        if most is None or len(places) <= most:
            return places
        return places[np.linspace(0, len(places) - 1, most).round().astype(np.int64)]

    def _translated(self, source: Tensor, target: Tensor, step: int) -> Tensor:
        if self.translation is None:
            return source
        if target.shape != source.shape:
            target = interpolate(target, size=source.shape[2:], mode="bilinear", antialias=True)
        chance = torch.Generator().manual_seed(derive_seed(self.settings.seed, "translate", step))
        changed = self.translation(source, target, chance)
        if changed.shape != source.shape:
            raise ValueError(f"the translation made {tuple(changed.shape)} of images {tuple(source.shape)}")
        return changed

    def _rows(self, part: Part) -> SceneRows:
        return self.source if part.endswith("source") else self.target

    def _chosen(self, part: Part, index: Index | None) -> Places:
        places = self.places(part)
        return places if index is None else places[np.asarray(index, dtype=np.int64)]

    def _order(self, stream: str, size: int, step: int, count: int) -> Places:
        return endless(self.settings.seed, stream, size, step * count, count)
