"""A labelled source and an unlabelled target, split and batched: every batch is a pure function of seed and step."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, Literal, TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from paretoda.core.seeds import derive_seed
from paretoda.data.batching import Positions, balanced_order, batch_generator, endless_order
from paretoda.data.open.arrays import ArraySamples
from paretoda.data.prefetching import prefetch_batches
from paretoda.data.rows import EvaluationRows, Rows, make_feature_rows, make_source_rows
from paretoda.data.samples import Index, Kind, Raw
from paretoda.data.scaling import fit_scaling
from paretoda.data.settings import BatchSettings, PairSettings
from paretoda.data.target_labels import LabelledSamples
from paretoda.data.transforms import Transform
from paretoda.distributed.collectives import SINGLE_PROCESS, Processes
from paretoda.errors import DataError
from paretoda.types import Batch, LabelledTarget, Source, Target

Part = Literal["source", "held-out-source", "all-source", "target", "held-out-target", "all-target"]
"""A part of a domain; without a prefix it is the training part."""
Forward: TypeAlias = Callable[[Tensor], tuple[Tensor, Tensor]]
"""Inputs (b, ...) -> features and logits of a model in evaluation mode, without gradients."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Pair(ABC):
    """Two domains, ready for training, whatever the task. The target's labels are not in here.

    Args:
        settings: How the domains were split and batched; `batch_size` is the size that fits the data.
        classes: Names of the classes.
        source: The source's samples and transform.
        target: The target's samples and transform.
        source_train: Positions of the source's training part.
        source_held_out: Positions of the source's held-out part, which no batch contains.
        target_train: Positions of the target's training part.
        target_held_out: Positions of the target's held-out part, which appears in `Batch.guide` only.
        notes: Sentences for the user.
        workers: Threads that read ahead where many batches are wanted; 0 for features.
        labelled: Target samples whose labels the user has given; None without any.
        domain: Number of the source that each source sample is from, from 0, shape (n,); None with one source. The
            samples of a source are one block, also of the training part.
    """

    settings: BatchSettings
    classes: tuple[str, ...]
    source: EvaluationRows
    target: EvaluationRows
    source_train: Positions
    source_held_out: Positions
    target_train: Positions
    target_held_out: Positions
    notes: tuple[str, ...] = ()
    workers: int = 0
    labelled: LabelledSamples | None = None
    domain: NDArray[np.int64] | None = None

    snapshot_batch: ClassVar[int]
    """Samples in a batch where a model evaluates whole sets."""

    @property
    @abstractmethod
    def kind(self) -> str:
        """What the samples are."""

    @property
    @abstractmethod
    def input_shape(self) -> tuple[int, ...]:
        """Shape of one transformed sample."""

    @property
    def source_count(self) -> int:
        """Number of sources that are domains of their own."""
        return 1 if self.domain is None else int(self.domain.max()) + 1

    @property
    def guide_size(self) -> int:
        """Number of held-out target samples in a batch."""
        return min(self.settings.batch_size, len(self.target_held_out))

    def batch(self, step: int, *, guide: bool = True, processes: Processes = SINGLE_PROCESS) -> Batch:
        """Return the batch of a step, the same whenever and in whatever order it is asked for.

        Args:
            step: Number of the step, from 0.
            guide: Whether held-out target samples are read; False saves time where nobody reads them.
            processes: Processes that share the batch: each reads its own samples and no others.
        """
        order = self._source_order(step)
        source = order[processes.share(len(order))]
        size = self.settings.batch_size
        target = self._order("target", len(self.target_train), step, size)[processes.share(size)]
        by_labels = guide and self.labelled is not None and self.labelled.guides
        held = self.guide_size if guide and not by_labels else 0
        chosen = self._order("guide", len(self.target_held_out), step, held)[processes.share(held)] if held else None
        inputs, labels, target_inputs = self._read(
            step, self.source_train[source], self.target_train[target], processes
        )
        batch = Batch(
            source=inputs,
            labels=labels,
            target=target_inputs,
            guide=None if chosen is None else self.target.evaluate(self.target_held_out[chosen]),
            source_index=torch.from_numpy(source),
            target_index=torch.from_numpy(target),
            guide_index=None if chosen is None else torch.from_numpy(chosen),
            domain=None if self.domain is None else torch.from_numpy(self.domain[self.source_train[source]]),
        )
        return batch if self.labelled is None else self._add_labelled(batch, self.labelled, step, guide=by_labels)

    def _add_labelled(self, batch: Batch, few: LabelledSamples, step: int, *, guide: bool) -> Batch:
        """Return the batch with the labelled target samples that train in this step, and those that guide."""
        seed, most = self.settings.seed, self.settings.batch_size
        if (rows := few.read_training(seed, step, most)) is not None:
            batch = replace(batch, labelled=rows[0], target_labels=rows[1])
        if guide:
            inputs, labels, index = few.read_guide(seed, step, most)
            batch = replace(batch, guide=inputs, guide_labels=labels, guide_index=index)
        return batch

    def inputs(
        self, part: Part, batch_size: int, processes: Processes = SINGLE_PROCESS, most: int | None = None
    ) -> Iterator[Tensor]:
        """Return the inputs of a part in order, in batches, in evaluation form.

        Args:
            part: Part of a domain.
            batch_size: Samples at a time.
            processes: Processes that each read their share of the part.
            most: Largest number of samples; where the part has more, so many are taken, spread evenly.
        """
        positions = self._some(part, most)
        share = positions[processes.share(len(positions))]
        return prefetch_batches(self._rows(part).evaluate, share, batch_size, self.workers)

    def names(self, part: Part, index: Index | None = None) -> list[str]:
        """Return the names of these samples of a part in a table; of all of them by default."""
        return self._rows(part).samples.names(self._chosen(part, index))

    def images(self, part: Part, index: Index) -> Raw:
        """Return the raw samples at these positions of a part, for a report."""
        return self._rows(part).samples.read(self._chosen(part, index))

    def positions(self, part: Part) -> Positions:
        """Return the positions of a part among all samples of its domain."""
        parts = {
            "source": self.source_train,
            "held-out-source": self.source_held_out,
            "target": self.target_train,
            "held-out-target": self.target_held_out,
        }
        return parts[part] if part in parts else np.arange(len(self._rows(part).samples))

    def labelled_samples(self) -> tuple[Tensor, Tensor] | None:
        """Return inputs, in evaluation form, and labels of the labelled target samples that train; None without any."""
        return None

    def held_out_labelled(self, forward: Forward) -> LabelledTarget | None:  # noqa: ARG002
        """Return what a model makes of the labelled target samples that no loss is trained on; None without any.

        Args:
            forward: The model in evaluation mode.
        """
        return None

    @abstractmethod
    def prediction_transform(self) -> Any:
        """Return the transform for new target data."""

    @abstractmethod
    def source_rows(self, part: Part, forward: Forward, processes: Processes) -> Source:
        """Return what a model makes of a labelled part, as rows of a `Snapshot` on the CPU.

        Args:
            part: Part of the source.
            forward: The model; it must be in evaluation mode.
            processes: Processes that may share the work; all get all rows.
        """

    @abstractmethod
    def target_rows(self, part: Part, forward: Forward, processes: Processes) -> Target:
        """Return what a model makes of a part of the target; otherwise as `source_rows`."""

    @abstractmethod
    def _read(
        self, step: int, source: Positions, target: Positions, processes: Processes
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Return source inputs, source labels and target inputs of a training batch, augmented."""

    def _source_order(self, step: int) -> Positions:
        return self._order("source", len(self.source_train), step, self.settings.batch_size)

    def _order(self, stream: str, size: int, step: int, count: int) -> Positions:
        return endless_order(self.settings.seed, stream, size, step * count, count)

    def _rows(self, part: Part) -> EvaluationRows:
        return self.source if part.endswith("source") else self.target

    def _chosen(self, part: Part, index: Index | None) -> Positions:
        positions = self.positions(part)
        return positions if index is None else positions[np.asarray(index, dtype=np.int64)]

    def _some(self, part: Part, most: int | None) -> Positions:
        positions = self.positions(part)
        if most is None or len(positions) <= most:
            return positions
        return positions[np.linspace(0, len(positions) - 1, most).round().astype(np.int64)]


@dataclass(frozen=True, eq=False, kw_only=True)
class DomainPair(Pair):
    """A pair of domains for classification.

    `make_pair` builds one. The fields are those of `Pair` and the labels.

    Args:
        labels: Labels of all source samples, shape (n,).
        transforms: The transform of each of several sources; empty with one source, whose own is in `source`.

    Examples:
        >>> import numpy as np
        >>> from paretoda.data import PairSettings, make_pair
        >>> rng = np.random.default_rng(0)
        >>> x, y, z = rng.normal(size=(60, 4)), np.arange(60) % 3, rng.normal(size=(40, 4))
        >>> pair = make_pair((x, y), z, PairSettings(batch_size=8))
        >>> batch = pair.batch(0)
        >>> batch.source.shape, batch.labels.shape, batch.guide.shape
        (torch.Size([8, 4]), torch.Size([8]), torch.Size([4, 4]))
        >>> len(pair.positions("target")), len(pair.positions("held-out-target"))
        (36, 4)
    """

    settings: PairSettings
    labels: NDArray[Any]
    source: Rows
    target: Rows
    transforms: tuple[Transform, ...] = ()

    snapshot_batch: ClassVar[int] = 256

    @property
    def kind(self) -> Kind:
        """Whether the samples are features or images."""
        return self.source.samples.kind

    @property
    def input_shape(self) -> tuple[int, ...]:
        """Shape of one transformed sample."""
        return self.source.transform.shape

    def labelled_samples(self) -> tuple[Tensor, Tensor] | None:
        """Return inputs and labels of the labelled target samples that train; see `Pair`."""
        if self.labelled is None or not len(self.labelled.train):
            return None
        return self.labelled.read(self.labelled.train, None)

    def held_out_labelled(self, forward: Forward) -> LabelledTarget | None:
        """Return what a model makes of the labelled target samples that are held out; see `Pair`."""
        if self.labelled is None or not len(chosen := self.labelled.held_out):
            return None
        inputs, labels = self.labelled.read(chosen, None)
        features, logits = (rows.cpu() for rows in forward(inputs))
        return LabelledTarget(features, logits, torch.from_numpy(chosen), labels=labels)

    def labels_of(self, part: Part) -> Tensor:
        """Return the labels of a part of the source, in the order of `inputs`.

        Raises:
            DataError: The part belongs to the target, which has no labels.
        """
        if not part.endswith("source"):
            raise DataError(f"the part {part!r} has no labels: only the source has")
        return torch.from_numpy(self.labels[self.positions(part)])

    def prediction_transform(self) -> Transform:
        """Return the transform for new target data."""
        return self.target.transform

    def with_features(self, source: Tensor, target: Tensor) -> DomainPair:
        """Return the same pair with features instead of inputs: same splits, order, labels and notes.

        Args:
            source: Features of "all-source", shape (n, d).
            target: Features of "all-target", shape (m, d).

        Raises:
            DataError: The number of features is not that of the samples.
        """
        if len(source) != len(self.source.samples) or len(target) != len(self.target.samples):
            raise DataError("features must be given for all samples of both domains, in their order")
        x, z = (np.ascontiguousarray(rows.detach().cpu().float().numpy()) for rows in (source, target))
        parts = [x[block] for block in self.source_blocks(self.source_train)]
        components = self.settings.count_components(len(self.classes))
        *own, scale_z = fit_scaling(self.settings.scaling, *parts, z[self.target_train], components=components)
        domain = np.zeros(len(x), np.int64) if self.domain is None else self.domain
        rows = make_source_rows(ArraySamples(x), own, domain), make_feature_rows(ArraySamples(z), scale_z)
        return replace(self, source=rows[0], target=rows[1], workers=0, transforms=tuple(own) if own[1:] else ())

    def source_blocks(self, positions: Positions) -> list[Positions]:
        """Return the given positions of source samples, those of each source by themselves."""
        if self.domain is None:
            return [positions]
        return [positions[self.domain[positions] == number] for number in range(self.source_count)]

    def source_rows(self, part: Part, forward: Forward, processes: Processes) -> Source:
        """Return features, logits and labels of all samples of a part of the source; see `Pair`."""
        domain = None if self.domain is None else torch.from_numpy(self.domain[self.positions(part)])
        return Source(*self._outputs(part, forward, processes), labels=self.labels_of(part), domain=domain)

    def target_rows(self, part: Part, forward: Forward, processes: Processes) -> Target:
        """Return features and logits of all samples of a part of the target; see `Pair`."""
        return Target(*self._outputs(part, forward, processes))

    def _outputs(self, part: Part, forward: Forward, processes: Processes) -> tuple[Tensor, Tensor, Tensor]:
        sharing = processes if len(self.positions(part)) >= processes.size else SINGLE_PROCESS
        outputs = [forward(inputs) for inputs in self.inputs(part, self.snapshot_batch, sharing)]
        if not outputs:
            raise ValueError(f"the part {part!r} has no samples to look at")
        features, logits = (
            sharing.gather_rows(torch.cat([rows.cpu() for rows in column])) for column in zip(*outputs, strict=True)
        )
        return features, logits, torch.arange(len(features))

    def _read(
        self, step: int, source: Positions, target: Positions, processes: Processes
    ) -> tuple[Tensor, Tensor, Tensor]:
        size = self.settings.batch_size
        source_generator, target_generator = (
            batch_generator(derive_seed(self.settings.seed, f"augment-{stream}", step), count, processes)
            for stream, count in (("source", size * self.source_count), ("target", size))
        )
        return (
            self.source.train(source, source_generator),
            torch.from_numpy(self.labels[source]),
            self.target.train(target, target_generator),
        )

    def _source_order(self, step: int) -> Positions:
        """Return positions in the training part: as many of each source, taking turns."""
        size, orders = self.settings.batch_size, []
        for stream, places, classes in self._streams:
            if self.settings.class_balanced:
                orders.append(balanced_order(self.settings.seed, stream, classes, step * size, size))
            else:
                orders.append(places[self._order(stream, len(places), step, size)])
        return np.stack(orders, axis=1).reshape(-1)

    @cached_property
    def _streams(self) -> list[tuple[str, Positions, list[Positions]]]:
        """Name of the random stream of each source, and its positions in the training part, also class by class."""
        labels, found = self.labels[self.source_train], []
        numbers = np.zeros_like(labels) if self.domain is None else self.domain[self.source_train]
        for number in range(self.source_count):
            places = np.flatnonzero(numbers == number)
            classes = [places[labels[places] == cls] for cls in np.unique(labels[places])]
            found.append(("source" if self.domain is None else f"source-{number + 1}", places, classes))
        return found
