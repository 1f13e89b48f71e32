"""A labelled source and an unlabelled target, split and batched: every batch is a pure function of seed and step."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from paretoda.core.seeds import derive_seed
from paretoda.data.batching import Places, balanced, batch_generator, endless
from paretoda.data.open.arrays import ArraySamples
from paretoda.data.prefetching import prefetch_batches
from paretoda.data.rows import Rows, feature_rows
from paretoda.data.samples import Index, Kind, Raw, Samples
from paretoda.data.scaling import fit_scaling
from paretoda.data.settings import PairSettings
from paretoda.data.transforms import Transform
from paretoda.distributed.collectives import SINGLE_PROCESS, Processes
from paretoda.errors import DataError
from paretoda.types import Batch

Part = Literal["source", "held-out-source", "all-source", "target", "held-out-target", "all-target"]
"""Without a prefix: the training part."""


@dataclass(frozen=True, eq=False)
class DomainPair:
    """Two domains, ready for training. The target's labels are not in here.

    Args:
        settings: how they were split and batched; `batch_size` is the size that fits the data.
        classes: names of the labels.
        labels: of all source samples, shape (n,).
        source: the source's samples and transform.
        target: the target's.
        source_train: positions of the source's training part.
        source_held_out: positions of its held-out part, which no batch contains.
        target_train: positions of the target's training part.
        target_held_out: positions of the guide part, which appears in `Batch.guide` only.
        notes: what the user should be told, one sentence each.
        workers: threads that read ahead where many batches are wanted; 0 for features.
    """

    settings: PairSettings
    classes: tuple[str, ...]
    labels: NDArray[np.int64]
    source: Rows
    target: Rows
    source_train: Places
    source_held_out: Places
    target_train: Places
    target_held_out: Places
    notes: tuple[str, ...] = ()
    workers: int = 0

    @property
    def kind(self) -> Kind:
        """Features or images."""
        return self.source.samples.kind

    @property
    def input_shape(self) -> tuple[int, ...]:
        """Of one transformed sample."""
        return tuple(self.source.evaluate(self.source_train[:1]).shape[1:])

    @property
    def guide_size(self) -> int:
        """Held-out samples of the target in a batch."""
        return min(self.settings.batch_size, len(self.target_held_out))

    def batch(self, step: int, *, guide: bool = True, processes: Processes = SINGLE_PROCESS) -> Batch:
        """The batch of this step, the same whenever and in whatever order it is asked for.

        Args:
            step: from 0.
            guide: False saves the reading of held-out samples that nobody wants.
            processes: several share the batch: each reads its own samples and no others.
        """
        size = self.settings.batch_size
        source = self._source_order(step)[processes.share(size)]
        target = self._order("target", len(self.target_train), step, size)[processes.share(size)]
        held = self.guide_size if guide else 0
        chosen = self._order("guide", len(self.target_held_out), step, held)[processes.share(held)] if held else None
        rows = self.source_train[source]
        source_chance, target_chance = (
            batch_generator(derive_seed(self.settings.seed, f"augment-{stream}", step), size, processes)
            for stream in ("source", "target")
        )
        return Batch(
            source=self.source.train(rows, source_chance),
            labels=torch.from_numpy(self.labels[rows]),
            target=self.target.train(self.target_train[target], target_chance),
            guide=None if chosen is None else self.target.evaluate(self.target_held_out[chosen]),
            source_index=torch.from_numpy(source),
            target_index=torch.from_numpy(target),
            guide_index=None if chosen is None else torch.from_numpy(chosen),
        )

    def whole(self, part: Part, batch_size: int, processes: Processes = SINGLE_PROCESS) -> Iterator[Tensor]:
        """All inputs of a part in order, with evaluation transforms; of several processes, each its share."""
        places = self.places(part)
        rows = self.source if part.endswith("source") else self.target
        return prefetch_batches(rows.evaluate, places[processes.share(len(places))], batch_size, self.workers)

    def labels_of(self, part: Part) -> Tensor:
        """The labels of a part of the source, in the order of `whole`."""
        if not part.endswith("source"):
            raise DataError(f"the part {part!r} has no labels: only the source has")
        return torch.from_numpy(self.labels[self.places(part)])

    def names(self, part: Part, index: Index | None = None) -> list[str]:
        """What a table calls these samples of a part; all of them by default."""
        return self._samples(part).names(self._chosen(part, index))

    def images(self, part: Part, index: Index) -> Raw:
        """The raw samples at these positions of a part, for a report."""
        return self._samples(part).read(self._chosen(part, index))

    def prediction_transform(self) -> Transform:
        """The transform for new target data."""
        return self.target.transform

    def with_features(self, source: Tensor, target: Tensor) -> DomainPair:
        """The same pair with features instead of inputs: same splits, order, labels and notes.

        Args:
            source: of "all-source", shape (n, d).
            target: of "all-target", shape (m, d).
        """
        if len(source) != len(self.source.samples) or len(target) != len(self.target.samples):
            raise DataError("features must be given for all samples of both domains, in their order")
        x, z = (np.ascontiguousarray(rows.detach().cpu().float().numpy()) for rows in (source, target))
        scale_x, scale_z = fit_scaling(self.settings.scaling, x[self.source_train], z[self.target_train])
        rows = feature_rows(ArraySamples(x), scale_x), feature_rows(ArraySamples(z), scale_z)
        return replace(self, source=rows[0], target=rows[1], workers=0)

    def places(self, part: Part) -> Places:
        """The positions of a part among all samples of its domain."""
        every = self._samples(part)
        return {
            "source": self.source_train,
            "held-out-source": self.source_held_out,
            "target": self.target_train,
            "held-out-target": self.target_held_out,
        }.get(part, np.arange(len(every)))

    def _samples(self, part: Part) -> Samples:
        return (self.source if part.endswith("source") else self.target).samples

    def _chosen(self, part: Part, index: Index | None) -> Places:
        places = self.places(part)
        return places if index is None else places[np.asarray(index, dtype=np.int64)]

    def _order(self, stream: str, size: int, step: int, count: int) -> Places:
        return endless(self.settings.seed, stream, size, step * count, count)

    def _source_order(self, step: int) -> Places:
        size = self.settings.batch_size
        if not self.settings.class_balanced:
            return self._order("source", len(self.source_train), step, size)
        return balanced(self.settings.seed, "source", self._classes_places, step * size, size)

    @cached_property
    def _classes_places(self) -> list[Places]:
        labels = self.labels[self.source_train]
        return [np.flatnonzero(labels == cls) for cls in np.unique(labels)]
