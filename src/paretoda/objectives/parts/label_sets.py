"""Weights for label sets that differ: of the source's classes, or of the target's samples.

The target may lack classes of the source ("partial") or have classes of its own ("open"). A step asks for the weights
before its objectives see the batch; the objectives that can read them say so by their `label_sets`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import replace

import torch
from torch import Tensor, nn

from paretoda.objectives.parts.neighbours import Bank, find_nearest, propagate, weigh_neighbours
from paretoda.objectives.parts.novelty import log_odds, novelties, split_in_two
from paretoda.types import Snapshot, Source, Target

UNKNOWN = "unknown"
"""What a sample is called that belongs to none of the source's classes."""
_NEIGHBOURS, _ROUNDS = 20, 10
"""Neighbours of a sample, and rounds of averaging over them, that novelty is spread with."""
_START = 0.1
"""Share of the training before which nothing is weighed: an untrained model knows neither classes nor novelty."""


def class_weights(probabilities: Tensor) -> Tensor:
    """Mean prediction of each class over the target, divided by the largest (PADA, SAN; Cao et al., 2018).

    Args:
        probabilities: Predictions of the whole target, shape (n, K).

    Returns:
        Shape (K,), 0..1.

    Examples:
        >>> class_weights(torch.tensor([[1.0, 0.0, 0.0], [0.5, 0.5, 0.0]]))
        tensor([1.0000, 0.3333, 0.0000])
    """
    mean = probabilities.mean(0)
    return mean / mean.max()


def find_space(snapshot: Snapshot) -> Tensor:
    """Return target samples in a space that training does not change: that of vectors, or present features of images.

    Args:
        snapshot: Snapshot before the first step.

    Returns:
        Shape (n, d).
    """
    vectors = next(iter(snapshot.target_inputs())).ndim == 2
    return torch.cat(list(snapshot.target_inputs())) if vectors else snapshot.target.features


class LabelSetWeights(nn.Module, ABC):
    """Weights that follow from what the model makes of the whole target, once it has been trained a little."""

    learned: Tensor
    """Whether the weights have been computed."""

    def __init__(self) -> None:
        super().__init__()
        self.trained = False
        self.register_buffer("learned", torch.tensor(False))

    def advance(self, progress: float) -> None:
        """Note the share of the training, 0..1; called once before every step."""
        self.trained = progress >= _START

    def needs_refresh(self, *, due: bool) -> bool:
        """Return whether to refresh them now: when refreshes are due, and as soon as the model is trained a little."""
        return due or (self.trained and not bool(self.learned))

    def refresh(self, snapshot: Snapshot) -> None:
        """Compute the weights anew."""
        if self.trained:
            self._learn(snapshot)
            self.learned.fill_(True)

    @abstractmethod
    def _learn(self, snapshot: Snapshot) -> None:
        """Compute the weights by a trained model."""

    @abstractmethod
    def weigh(self, source: Source, target: Target) -> tuple[Source, Target]:
        """Return both domains of a batch with their weights."""

    def weigh_guide(self, held_out: Target) -> Target:
        """Return the held-out target samples of a batch with their weights."""
        return held_out


class ClassWeights(LabelSetWeights):
    """Weights of the source's classes, for a target that may lack some of them.

    Source samples weigh as much as their class, and the target carries the weights of the classes. All are 1 until the
    model has been trained a little.

    Args:
        classes: Number of classes K.

    Examples:
        >>> from types import SimpleNamespace
        >>> weights = ClassWeights(2)
        >>> weights.advance(0.5)
        >>> empty = torch.zeros(2, 3)
        >>> target = Target(empty, torch.tensor([[9.0, 0.0], [9.0, 0.0]]), torch.arange(2))
        >>> weights.refresh(SimpleNamespace(target=target))  # in training a whole Snapshot
        >>> source, _ = weights.weigh(Source(empty, empty[:, :2], torch.arange(2), labels=torch.arange(2)), target)
        >>> source.weights.round(decimals=3)
        tensor([1., 0.])
    """

    values: Tensor

    def __init__(self, classes: int) -> None:
        super().__init__()
        self.register_buffer("values", torch.ones(classes))

    def _learn(self, snapshot: Snapshot) -> None:
        self.values.copy_(class_weights(snapshot.target.logits.softmax(1)))

    def weigh(self, source: Source, target: Target) -> tuple[Source, Target]:
        """Return the source with the weight of each sample's class, and the target with those of the classes."""
        return replace(source, weights=self.values[source.labels]), replace(target, class_weights=self.values)

    def weigh_guide(self, held_out: Target) -> Target:
        """Return the held-out target samples with the weights of the classes."""
        return replace(held_out, class_weights=self.values)


class KnownWeights(LabelSetWeights):
    """Weights of target samples, for a target that may have classes of its own: how known each sample looks.

    The novelties are averaged with those of neighbours in the target, because samples of a new class lie together, and
    split in two: samples near the mean of the higher group do not count. Neighbours are those of `find_space`. No
    target sample counts until the model has been trained a little: what is sure of everything finds nothing new.

    Examples:
        >>> from types import SimpleNamespace
        >>> weights = KnownWeights()
        >>> weights.advance(0.5)
        >>> features, logits = torch.eye(3), torch.tensor([[9.0, 0.0], [0.0, 9.0], [0.1, 0.0]])
        >>> target = Target(features, logits, torch.arange(3))
        >>> parts = {"target": target, "held_out_target": target, "target_inputs": lambda: iter([features])}
        >>> weights.refresh(SimpleNamespace(**parts))  # in training a whole Snapshot
        >>> weights.weigh_guide(target).weights
        tensor([1., 1., 0.])
    """

    def __init__(self) -> None:
        super().__init__()
        self.graph, self.target, self.held_out = Bank(_NEIGHBOURS), Bank(1), Bank(1)

    def refresh(self, snapshot: Snapshot) -> None:
        """Find the neighbours before the first step, and compute the weights anew."""
        if not len(self.graph.rows):
            self.graph.replace(find_nearest(find_space(snapshot), _NEIGHBOURS))
        super().refresh(snapshot)

    def _learn(self, snapshot: Snapshot) -> None:
        own, held_out = (
            log_odds(novelties(domain.logits.softmax(1))) for domain in (snapshot.target, snapshot.held_out_target)
        )
        places = self.graph().long()
        spread = propagate(own.unsqueeze(1), places, weigh_neighbours(places).to(own), rounds=_ROUNDS).squeeze(1)
        self.target.replace(split_in_two(spread).closeness(spread).unsqueeze(1))
        self.held_out.replace(split_in_two(own).closeness(held_out).unsqueeze(1))

    def weigh(self, source: Source, target: Target) -> tuple[Source, Target]:
        """Return the source as it is, and the target with the weights of its samples."""
        if not self.learned:
            return source, replace(target, weights=target.features.new_zeros(len(target.index)))
        return source, _with_weights(target, self.target)

    def weigh_guide(self, held_out: Target) -> Target:
        """Return the held-out target samples with their weights."""
        return _with_weights(held_out, self.held_out) if self.learned else held_out


def _with_weights(target: Target, bank: Bank) -> Target:
    return replace(target, weights=bank()[target.index].squeeze(1))


def make_label_set_weights(label_sets: str, classes: int) -> LabelSetWeights | None:
    """Return the weights of these label sets; None where they are equal.

    Args:
        label_sets: "closed", "partial" or "open".
        classes: Number of classes K.
    """
    makers: dict[str, Callable[[], LabelSetWeights]] = {"partial": lambda: ClassWeights(classes), "open": KnownWeights}
    return makers[label_sets]() if label_sets in makers else None
