"""Source and target as types: a target has no field for labels, so nothing can leak."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from torch import Tensor, nn

IGNORE = 255
"""Label of a pixel that counts for nothing."""


@dataclass(frozen=True, eq=False)
class Batch:
    """What one training step reads.

    Args:
        source: Inputs, shape (b, ...).
        labels: Labels of the source, shape (b,), int64 in 0..K-1; pixel labels (b, H, W), `IGNORE` for none.
        target: Inputs, shape (b, ...).
        guide: Held-out target inputs; None where no guide is wanted.
        source_index: Positions of the samples in the source's training part, shape (b,).
        target_index: Positions in the target's training part, shape (b,).
        guide_index: Positions in the held-out part of the target; None without a guide.
    """

    source: Tensor
    labels: Tensor
    target: Tensor
    guide: Tensor | None
    source_index: Tensor
    target_index: Tensor
    guide_index: Tensor | None


@dataclass(frozen=True, eq=False)
class Domain:
    """Samples of one domain and what the model makes of them.

    In segmentation features and logits are maps, (n, d, h, w) and (n, K, h, w), at the resolution of the features.

    Args:
        features: The encoder's output, shape (n, d).
        logits: The head's output, shape (n, K).
        index: Positions of the samples in their set, shape (n,).
        inputs: What the encoder saw, shape (n, ...); None for whole sets, which may not fit in memory.
        head: Features (n, d) -> logits (n, K), as it is in this step; None where nobody asks for other features.
        further: Logits of further outputs of the head, shape (n, K, ...): an auxiliary or a second classifier.
    """

    features: Tensor
    logits: Tensor
    index: Tensor
    inputs: Tensor | None = None
    head: Callable[[Tensor], Tensor] | None = None
    extra_logits: tuple[Tensor, ...] = ()

    def logits_of(self, features: Tensor) -> Tensor:
        """What the head makes of other features than those of the samples, shape (n, K)."""
        if self.head is None:
            raise ValueError("this objective runs the head on changed features: give Source and Target their `head`")
        return self.head(features)


@dataclass(frozen=True, eq=False, kw_only=True)
class Source(Domain):
    """Labelled samples.

    Args:
        labels: Shape (n,), int64 in 0..K-1; in segmentation (n, H, W), with `IGNORE` where there is none.
    """

    labels: Tensor


@dataclass(frozen=True, eq=False)
class Target(Domain):
    """Samples without labels, and without a place for them."""


class Model(nn.Module):
    """An encoder, whose parameters all objectives share, and a head behind it.

    Args:
        encoder: Inputs -> features, shape (n, d).
        head: Features -> logits, shape (n, K).
    """

    predicts_pixels: bool = False
    """Whether logits have a place for every pixel: (n, K, h, w)."""

    def __init__(self, encoder: nn.Module, head: nn.Module) -> None:
        super().__init__()
        self.encoder = encoder
        self.head = head

    def forward(self, inputs: Tensor) -> Tensor:
        """The logits, shape (n, K)."""
        logits: Tensor = self.head(self.encoder(inputs))
        return logits

    def extra_logits(self, features: Tensor) -> tuple[Tensor, ...]:  # noqa: ARG002
        """Logits of further outputs that are trained but do not predict; none but in some segmentation networks."""
        return ()


@dataclass(frozen=True, eq=False)
class Snapshot:
    """Whole sets in evaluation mode: what refreshes and validators see.

    Args:
        source: The training part, labelled.
        held_out_source: The 10 % that nothing was trained on, labelled.
        target: The training part.
        held_out_target: The 10 % that guides, unlabelled.
        model: That made the features and logits, live or averaged, in evaluation mode.
        target_inputs: Gives the target's inputs once more, in batches, in the order of `target`.
    """

    source: Source
    held_out_source: Source
    target: Target
    held_out_target: Target
    model: Model
    target_inputs: Callable[[], Iterator[Tensor]]


class Objective(nn.Module, ABC):
    """One of the things that a step lowers.

    Args given to every objective's constructor by its table: the width of the features and the number of classes.
    """

    encoder_updates: int = 1
    """How often in a step the encoder lowers it: once together with the others, then alone."""

    @property
    def refreshes(self) -> bool:
        """Whether it ever looks at whole sets."""
        return type(self).refresh is not Objective.refresh

    @property
    def refresh_due(self) -> bool:
        """Whether it must look at whole sets before the coming step, however short the last look is ago."""
        return False

    @abstractmethod
    def forward(self, source: Source, target: Target) -> Tensor:
        """The scalar that the encoder lowers; non-negative where the theory allows."""

    def private_loss(self, source: Source, target: Target) -> Tensor | None:  # noqa: ARG002
        """What the objective's own networks lower, on detached features; None where there are none."""
        return None

    def advance(self, progress: float) -> None:
        """Set schedules to this share of the training, 0..1; called once before every step."""

    def refresh(self, snapshot: Snapshot) -> None:
        """Look at the whole sets (prototypes, neighbours, pseudo-labels); before the first step and now and then."""
