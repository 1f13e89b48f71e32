"""Types that the parts exchange: source, target, batch, model, objective; a target has no field for labels.

The few target labels that a user may give are in a type of their own, `LabelledTarget`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import NamedTuple, TypeAlias

from torch import Tensor, nn

Progress: TypeAlias = Callable[[str, int, int], None]
"""Called during long work with what is being done, how many items are done, and how many there are in all."""

IGNORE = 255
"""Label of a pixel that is ignored."""


@dataclass(frozen=True, eq=False)
class Batch:
    """Inputs of one training step.

    Args:
        source: Inputs of the source, shape (b, ...).
        labels: Labels of the source, shape (b,), int64 in 0..K-1; pixel labels (b, H, W), `IGNORE` where there is none;
            standardised values in regression, float32.
        target: Inputs of the target, shape (b, ...).
        guide: Held-out target inputs; None without a guide.
        source_index: Positions of the samples in the source's training part, shape (b,).
        target_index: Positions in the target's training part, shape (b,).
        guide_index: Positions in the held-out part of the target; None without a guide.
        labelled: Inputs of labelled target samples, shape (n, ...); None without any, or where none trains.
        target_labels: Their labels, shape (n,).
        guide_labels: Labels of `guide`, shape (g,), where labelled target samples guide; otherwise None.
        domain: Number of the source that each source sample is from, from 0, shape (b,); None with one source.

    Examples:
        >>> import torch
        >>> index = torch.arange(8)
        >>> batch = Batch(torch.randn(8, 4), index % 3, torch.randn(8, 4), None, index, index, None)
        >>> batch.source.shape, batch.guide is None
        (torch.Size([8, 4]), True)
    """

    source: Tensor
    labels: Tensor
    target: Tensor
    guide: Tensor | None
    source_index: Tensor
    target_index: Tensor
    guide_index: Tensor | None
    labelled: Tensor | None = None
    target_labels: Tensor | None = None
    guide_labels: Tensor | None = None
    domain: Tensor | None = None

    def tensors(self) -> dict[str, Tensor]:
        """Return the tensors of the batch by the names of their fields, without those that are None."""
        return {name: tensor for name, tensor in vars(self).items() if tensor is not None}


@dataclass(frozen=True, eq=False)
class Domain:
    """Samples of one domain with the model's features and logits.

    For pixel labels, features and logits are maps, (n, d, h, w) and (n, K, h, w), at the resolution of the features.

    Args:
        features: Output of the encoder, shape (n, d).
        logits: Output of the head, shape (n, K).
        index: Positions of the samples in their set, shape (n,).
        inputs: Inputs of the encoder, shape (n, ...); None for whole sets, which may not fit in memory.
        head: Function from features (n, d) to logits (n, K), as it is in this step; None where it is not needed.
        extra_logits: Logits of extra outputs of the head, shape (n, K, ...): an auxiliary or a second classifier.
        weights: How much each sample counts, constants of shape (n,), 0..1; None: all count the same.
        class_weights: How much each class counts, shape (K,), 0..1; None: all count the same.

    Examples:
        >>> import torch
        >>> head = nn.Linear(4, 3)
        >>> features = torch.randn(8, 4)
        >>> Domain(features, head(features), torch.arange(8), head=head).logits_of(2 * features).shape
        torch.Size([8, 3])
    """

    features: Tensor
    logits: Tensor
    index: Tensor
    inputs: Tensor | None = None
    head: Callable[[Tensor], Tensor] | None = None
    extra_logits: tuple[Tensor, ...] = ()
    weights: Tensor | None = None
    class_weights: Tensor | None = None

    def logits_of(self, features: Tensor) -> Tensor:
        """Return the logits of other features than those of the samples, shape (n, K).

        Raises:
            ValueError: The domain has no head.
        """
        if self.head is None:
            raise ValueError("this objective runs the head on changed features: give Source and Target their `head`")
        return self.head(features)


@dataclass(frozen=True, eq=False, kw_only=True)
class Source(Domain):
    """Labelled samples.

    Args:
        labels: Labels, shape (n,), int64 in 0..K-1; pixel labels (n, H, W), with `IGNORE` where there is none;
            standardised values in regression, float32.
        domain: Number of the source that each sample is from, from 0, shape (n,); None with one source.

    Examples:
        >>> import torch
        >>> source = Source(torch.randn(8, 4), torch.randn(8, 3), torch.arange(8), labels=torch.arange(8) % 3)
        >>> source.labels.tolist()
        [0, 1, 2, 0, 1, 2, 0, 1]
    """

    labels: Tensor
    domain: Tensor | None = None

    def of(self, number: int) -> Source:
        """Return the samples of one of several sources, or all of them where there is only one.

        Args:
            number: Number of the source, from 0.

        Examples:
            >>> import torch
            >>> index = torch.arange(4)
            >>> both = Source(torch.randn(4, 2), torch.randn(4, 3), index, labels=index % 3, domain=index % 2)
            >>> both.of(1).index.tolist()
            [1, 3]
        """
        if self.domain is None:
            return self
        chosen = self.domain == number
        # Several processes have the inputs of their own samples only, which then cannot be told apart.
        inputs = self.inputs[chosen] if self.inputs is not None and len(self.inputs) == len(chosen) else None
        return replace(
            self,
            features=self.features[chosen],
            logits=self.logits[chosen],
            index=self.index[chosen],
            inputs=inputs,
            extra_logits=tuple(logits[chosen] for logits in self.extra_logits),
            weights=None if self.weights is None else self.weights[chosen],
            labels=self.labels[chosen],
            domain=None,
        )


@dataclass(frozen=True, eq=False)
class Target(Domain):
    """Samples without labels and without a field for them.

    Examples:
        >>> import torch
        >>> target = Target(torch.randn(8, 4), torch.randn(8, 3), torch.arange(8))
        >>> hasattr(target, "labels")
        False
    """


@dataclass(frozen=True, eq=False, kw_only=True)
class LabelledTarget(Target):
    """The target samples whose labels the user has given; no others are in it.

    Args:
        labels: Labels, shape (n,), int64 in 0..K-1.

    Examples:
        >>> import torch
        >>> LabelledTarget(torch.randn(2, 4), torch.randn(2, 3), torch.arange(2), labels=torch.tensor([0, 2])).labels
        tensor([0, 2])
    """

    labels: Tensor


@dataclass(frozen=True, eq=False, kw_only=True)
class TaughtTarget(Target):
    """Target samples, changed or not, with the labels of a teacher; no true label is in it.

    Args:
        labels: The teacher's labels, shape (n,), or (n, H, W) for pixels, with `IGNORE` where there is none.
        weights: How much each label counts, of the same shape.

    Examples:
        >>> import torch
        >>> features, logits, labels = torch.randn(2, 4), torch.randn(2, 3), torch.tensor([0, 2])
        >>> TaughtTarget(features, logits, torch.arange(2), labels=labels, weights=torch.ones(2)).weights.sum()
        tensor(2.)
    """

    labels: Tensor
    weights: Tensor


class Lesson(NamedTuple):
    """What a teacher gives the model to learn from in one step.

    Args:
        inputs: Inputs of the model, shape (n, ...).
        labels: Labels of the inputs, as in `TaughtTarget`.
        weights: Their weights.
    """

    inputs: Tensor
    labels: Tensor
    weights: Tensor


class Model(nn.Module):
    """Encoder, whose parameters all objectives share, and a head behind it.

    Args:
        encoder: Network from inputs to features, shape (n, d).
        head: Network from features to logits, shape (n, K).

    Examples:
        >>> import torch
        >>> Model(nn.Linear(10, 4), nn.Linear(4, 3))(torch.randn(8, 10)).shape
        torch.Size([8, 3])
    """

    predicts_pixels: bool = False
    """Whether the logits are maps with one prediction per pixel, (n, K, h, w)."""

    def __init__(self, encoder: nn.Module, head: nn.Module) -> None:
        super().__init__()
        self.encoder = encoder
        self.head = head

    def forward(self, inputs: Tensor) -> Tensor:
        """Return the logits, shape (n, K)."""
        logits: Tensor = self.head(self.encoder(inputs))
        return logits

    def extra_logits(self, features: Tensor) -> tuple[Tensor, ...]:  # noqa: ARG002
        """Return logits of extra outputs that are trained but do not predict; most networks have none."""
        return ()


@dataclass(frozen=True, eq=False)
class Snapshot:
    """Whole sets in evaluation mode, for refreshes and validators.

    Args:
        source: Training part of the source, labelled.
        held_out_source: The held-out part of the source, on which nothing is trained, labelled.
        target: Training part of the target.
        held_out_target: The held-out part of the target, which guides, unlabelled.
        model: Model that computed the features and logits, live or averaged, in evaluation mode.
        target_inputs: Function that returns the inputs of the target again, in batches, in the order of `target`.
        source_inputs: The same for the source; None where only validators read the snapshot.
        labelled: Inputs and labels of the labelled target samples that train; None without any.
        held_out_labelled: The labelled target samples that no loss is trained on; None without any.

    Examples:
        >>> import torch
        >>> model = Model(nn.Identity(), nn.Linear(4, 3))
        >>> inputs, index = torch.randn(8, 4), torch.arange(8)
        >>> source = Source(inputs, model(inputs), index, labels=index % 3)
        >>> target = Target(inputs, model(inputs), index)
        >>> snapshot = Snapshot(source, source, target, target, model, lambda: iter(inputs.split(4)))
        >>> sum(len(batch) for batch in snapshot.target_inputs())
        8
    """

    source: Source
    held_out_source: Source
    target: Target
    held_out_target: Target
    model: Model
    target_inputs: Callable[[], Iterator[Tensor]]
    source_inputs: Callable[[], Iterator[Tensor]] | None = None
    labelled: tuple[Tensor, Tensor] | None = None
    held_out_labelled: LabelledTarget | None = None


class Objective(nn.Module, ABC):
    """One of the losses that a step lowers.

    The tables pass the width of the features and the number of classes to the constructor of every objective.

    Examples:
        >>> import torch
        >>> class MeanDistance(Objective):
        ...     def forward(self, source, target):
        ...         return (source.features.mean(0) - target.features.mean(0)).square().sum()
        >>> source = Source(torch.zeros(8, 4), torch.randn(8, 3), torch.arange(8), labels=torch.arange(8) % 3)
        >>> MeanDistance()(source, Target(torch.ones(8, 4), torch.randn(8, 3), torch.arange(8)))
        tensor(4.)
    """

    encoder_updates: int = 1
    """Number of encoder updates per step that lower it: one together with the others, then alone."""
    strength: float = 1.0
    """Factor of the value and the gradient at this point of the training, where the objective has one."""
    whole: float = 0.0
    """Full strength of an objective whose strength grows from 0; 0 where it does not grow."""
    reads_labels: bool = False
    """Whether it is called with the labelled target samples, a `LabelledTarget`, in place of the unlabelled ones."""
    follows_teacher: bool = False
    """Whether it is called with a `TaughtTarget` made of its `lesson`, in place of the unlabelled samples."""
    reads_all_sources: bool = False
    """Whether it is one objective for all sources; otherwise each of several sources has one of its own."""
    is_whole_method: bool = False
    """Whether it contains the loss of the labelled source, so that there is no other."""
    label_sets: tuple[str, ...] = ("closed",)
    """Label sets that it is right for: one that reads the weights of samples or classes names "partial" or "open"."""
    common: bool = False
    """Whether members refresh it together, by what all of them predict, instead of each by its own predictions."""

    @property
    def offset(self) -> float:
        """Number that is added to the loss where a scheme reads its value; 0 for losses that are positive anyway.

        Schemes take logarithms and ratios of values, and regard a small one as a solved problem. A loss that may be 0
        or negative for other reasons needs an offset (docs/decisions/0004): an adversarial one that of an adversary
        that knows nothing, and one whose strength grows from 0 what is still missing of its strength.
        """
        return self.whole - self.strength if self.whole else 0.0

    @property
    def refreshes(self) -> bool:
        """Whether the objective uses `refresh`."""
        return type(self).refresh is not Objective.refresh

    @property
    def refresh_due(self) -> bool:
        """Whether the objective needs a refresh before the next step, however recent the last one is."""
        return False

    def needs_refresh(self, *, due: bool) -> bool:
        """Return whether to refresh the objective now.

        Args:
            due: Whether refreshes are due for all; otherwise only for those that ask for it themselves.
        """
        return self.refreshes and (due or self.refresh_due)

    @abstractmethod
    def forward(self, source: Source, target: Target) -> Tensor:
        """Return the scalar that the encoder lowers; non-negative where the theory allows."""

    def private_loss(self, source: Source, target: Target) -> Tensor | None:  # noqa: ARG002
        """Return the loss of the objective's own networks, on detached features; None without such networks."""
        return None

    def lesson(self, batch: Batch, probabilities: Tensor) -> Lesson:
        """Return inputs and labels to learn from; only objectives that follow a teacher have a lesson.

        Args:
            batch: Batch of the step.
            probabilities: Those of the teacher for the target's inputs, shape (n, K), or maps (n, K, h, w).
        """
        raise NotImplementedError(f"{type(self).__name__} follows no teacher")

    def advance(self, progress: float) -> None:
        """Set schedules to this share of the training, 0..1; called once before every step."""

    def refresh(self, snapshot: Snapshot) -> None:
        """Process the whole sets (prototypes, neighbours, pseudo-labels), before the first step and at intervals."""
