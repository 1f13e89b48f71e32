"""Label propagation: target predictions follow a vote that is spread over mutual neighbours in the whole target."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from paretoda.objectives.parts.growth import Growth, check_strength
from paretoda.objectives.parts.neighbours import Bank, find_nearest, propagate, weigh_neighbours
from paretoda.types import Objective, Snapshot, Source, Target

_DOUBTFUL, _SOUND = 0.35, 0.5
"""What `measure_graph` says of a graph that is not trusted at all, and of one that is trusted (docs/decisions/0008)."""
_NOT_USED = "the loss 'propagation' was left out"
_COMPONENTS, _COMPONENTS_PER_CLASS = 128, 12
"""Selective pseudo-labels use so many components of wide inputs; as many as the network reads by default."""
_COUNTED = 0.05
"""A labelled target sample counts as much as this share of a class of the source, in selective pseudo-labels."""
_CLASS = 3
"""A class has at least so many times k samples in the target, on average."""


def sharpen_to(probabilities: Tensor, confidence: float) -> Tensor:
    """Return the power p^t, normalised, whose mean largest probability is the given one.

    Args:
        probabilities: Probabilities, shape (n, K).
        confidence: Wanted mean of the largest probability, 1/K to 1.

    Examples:
        >>> sharpen_to(torch.tensor([[0.6, 0.4], [0.4, 0.6]]), 0.9)
        tensor([[0.9000, 0.1000],
                [0.1000, 0.9000]])
    """
    logs = probabilities.clamp(min=torch.finfo(probabilities.dtype).tiny).log()
    low, high = 0.0, 1e3
    for _ in range(40):
        middle = (low + high) / 2
        if float((middle * logs).softmax(1).amax(1).mean()) < confidence:
            low = middle
        else:
            high = middle
    return (high * logs).softmax(1)


def measure_graph(one: Tensor, other: Tensor, labels: Tensor, places: Tensor, shares: Tensor) -> float:
    """Share of the disagreement of two independent voters that neighbours could settle; 0 and below: none of it.

    It is 1 where the voters agree on all samples; otherwise it is (h - a) / (1 - a). The share a of samples on which
    the voters agree estimates how good a vote is. Where they agree, the label is mostly right; h is the share of these
    samples whose neighbours have the same label.

    Args:
        one: Probabilities by the first voter, shape (n, K).
        other: Probabilities by the second voter, shape (n, K).
        labels: Labels by their vote, shape (n,).
        places: Positions of the neighbours of each sample, shape (n, k).
        shares: Weights of the neighbours, shape (n, k).

    Examples:
        >>> one, other = torch.tensor([[1.0, 0.0]] * 4), torch.eye(2)[[0, 0, 0, 1]]
        >>> places = torch.tensor([[1], [0], [0], [0]])
        >>> measure_graph(one, other, one.argmax(1), places, torch.ones(4, 1))
        1.0
    """
    agreed = one.argmax(1) == other.argmax(1)
    votes = (shares.unsqueeze(2) * functional.one_hot(labels, one.shape[1])[places]).sum(1)
    judged = (votes.argmax(1) == labels)[agreed & (votes.sum(1) > 0)]
    if not len(judged) or bool(agreed.all()):
        return float(bool(agreed.all()))
    agreement = float(agreed.double().mean())
    return (float(judged.double().mean()) - agreement) / (1 - agreement)


class Propagation(Objective):
    """Cross-entropy of target predictions to the labels that a vote, spread over the neighbourhood, agrees on.

    At every refresh, two voters are averaged: the present predictions, those of all members where there are several,
    and selective pseudo-labels (Wang and Breckon, 2020), which are computed once from the inputs, as a mean over three
    numbers of principal components, and made as confident as the predictions. The result is spread over a graph of
    neighbours; each sample is then trained towards the resulting class, weighted by its lead over the second.

    The neighbourhood is fixed: the k nearest samples by cosine in a space that the training does not change, so that a
    mistake cannot draw its neighbours closer. The space is that of the inputs for vectors, and that of the features
    before the first step for images, which have no selective pseudo-labels. Only neighbours that choose each other
    count, because a hub, which is near to everything, would spread its label over half of the target.

    The loss counts as far as the graph can be trusted, which is measured once, when the model has been trained a little
    and the two voters are still independent (`measure_graph`). Where neighbours have the same topic but different
    opinions, the graph does not know what the classes are; the loss is then 0.

    Args:
        features: Width d of the features (not used).
        classes: Number of classes K.
        k: Largest number of neighbours; fewer where the target has less than 3 k samples per class.
        rounds: Number of propagation rounds.
        selective: Weight of the selective pseudo-labels in the vote, 0 to 1; 0: the predictions vote alone.
        balanced: Whether selective pseudo-labels trust as many samples of each class; not where the target may lack
            classes.
        strength: Factor of the value and the gradient at full strength.
        start: Share of the training before which the predictions are not used.
        full: Share of the training from which the strength is full; it grows linearly from `start`.

    Raises:
        ValueError: An option is out of its range.

    Examples:
        >>> source = Source(torch.zeros(2, 2), torch.zeros(2, 3), torch.arange(2), labels=torch.arange(2))
        >>> target = Target(torch.zeros(2, 2), torch.zeros(2, 3), torch.arange(2))
        >>> objective = Propagation(features=2, classes=3)
        >>> objective.wanted.replace(torch.eye(3)[:2])  # in training `refresh` sets the wanted classes
        >>> round(objective(source, target).item(), 4)
        1.0986
    """

    label_sets = ("closed", "partial", "open")
    common = True
    trust: Tensor
    """How far the labels are used, 0 to 1; NaN until it has been measured."""

    def __init__(  # noqa: PLR0913 - options with defaults
        self,
        features: int,  # noqa: ARG002
        classes: int,
        *,
        k: int = 10,
        rounds: int = 10,
        selective: float = 0.5,
        balanced: bool = True,
        strength: float = 1.0,
        start: float = 0.2,
        full: float = 0.4,
    ) -> None:
        super().__init__()
        if k < 1 or rounds < 1:
            raise ValueError(f"k and rounds must be 1 or more, got {k} and {rounds}")
        if not 0 <= selective <= 1:
            raise ValueError(f"selective is a weight from 0 to 1, got {selective}")
        check_strength(strength)
        self.k, self.rounds, self.whole, self.growth = k, rounds, strength, Growth(start, full)
        self.selective, self.balanced, self.strength, self.trained = selective, balanced, strength, True
        self.wanted = Bank(classes)
        self.graph = Bank(k)
        self.selected = Bank(classes)
        self.register_buffer("trust", torch.tensor(torch.nan))

    def forward(self, source: Source, target: Target) -> Tensor:  # noqa: ARG002
        """Return the strength times the mean weighted cross-entropy of the batch."""
        wanted = self.wanted()[target.index]
        losses = -(wanted * target.logits.log_softmax(1)).sum(1)
        if target.weights is not None:
            losses = losses * target.weights.to(losses)
        loss: Tensor = self.strength * losses.mean()
        return loss

    def advance(self, progress: float) -> None:
        """Set the strength for this share of the training."""
        self.strength = self.whole * self.growth(progress)
        self.trained = progress > 0

    def refresh(self, snapshot: Snapshot) -> None:
        """Spread the present vote; the labels of an untrained model have no weight."""
        if not len(self.graph.rows):
            self._prepare(snapshot)
        predictions = snapshot.target.logits.softmax(1)
        vote, places = self._vote(predictions), self.graph().long()
        shares = weigh_neighbours(places).to(vote)
        if self.trained and self.trust.isnan():
            self.trust.fill_(self._measure_trust(predictions, vote, places, shares))
        spread = propagate(vote, places, shares, rounds=self.rounds)
        best = spread.topk(2, dim=1)
        lead = (best.values[:, 0] - best.values[:, 1]) * self.trust.nan_to_num(0.0)
        self.wanted.replace(functional.one_hot(best.indices[:, 0], spread.shape[1]) * lead.unsqueeze(1))

    def _prepare(self, snapshot: Snapshot) -> None:
        """Find what depends on the fixed space alone: the graph and the selective pseudo-labels."""
        vectors = next(iter(snapshot.target_inputs())).ndim == 2
        target = torch.cat(list(snapshot.target_inputs())) if vectors else snapshot.target.features
        classes = self.wanted.rows.shape[1]
        nearest = find_nearest(target, min(self.k, max(1, len(target) // (_CLASS * classes))))
        own = torch.arange(len(target), device=nearest.device).unsqueeze(1)
        self.graph.replace(torch.cat([nearest, own.expand(-1, self.k - nearest.shape[1])], dim=1))
        if vectors and self.selective > 0 and snapshot.source_inputs is not None:
            source, labels = torch.cat(list(snapshot.source_inputs())), snapshot.source.labels
            if snapshot.labelled is not None:
                source, labels = _add_labelled(source, labels, *snapshot.labelled, classes)
            self.selected.replace(_label_selectively(source, labels, target, classes, self.balanced))

    def _vote(self, predictions: Tensor) -> Tensor:
        """Return the mean of the voters, shape (n, K)."""
        if not len(self.selected.rows):
            return predictions
        others = sharpen_to(self.selected().to(predictions), float(predictions.amax(1).mean()))
        return (1 - self.selective) * predictions + self.selective * others

    def _measure_trust(self, predictions: Tensor, vote: Tensor, places: Tensor, shares: Tensor) -> float:
        """Return how far the graph is trusted, 0 to 1; with one voter there is nothing to measure it by: 1."""
        if not len(self.selected.rows):
            return 1.0
        found = measure_graph(predictions, self.selected().to(predictions), vote.argmax(1), places, shares)
        return min(1.0, max(0.0, (found - _DOUBTFUL) / (_SOUND - _DOUBTFUL)))

    def describe_trust(self) -> str | None:
        """Return a sentence for the user where the labels were not used, or only partly; None otherwise."""
        if not float(self.trust) < 1:
            return None
        used = f"the loss 'propagation' counted {100 * float(self.trust):.0f} %" if self.trust > 0 else _NOT_USED
        return f"Neighbours in the target settle little of what predictions and pseudo-labels disagree on, so {used}."

    def extra_repr(self) -> str:
        """Return the settings that `repr` shows."""
        shares = f"start={self.growth.start}, full={self.growth.full}"
        return f"k={self.k}, rounds={self.rounds}, selective={self.selective}, strength={self.whole}, {shares}"


def _add_labelled(
    source: Tensor, labels: Tensor, few: Tensor, their_labels: Tensor, classes: int
) -> tuple[Tensor, Tensor]:
    """Return the source with the labelled target samples, each as often as a share of a class of the source."""
    copies = max(1, round(_COUNTED * len(source) / classes))
    return (
        torch.cat([source, few.to(source).repeat(copies, 1)]),
        torch.cat([labels, their_labels.to(labels).repeat(copies)]),
    )


def _label_selectively(source: Tensor, labels: Tensor, target: Tensor, classes: int, balanced: bool) -> Tensor:
    from paretoda.objectives.parts import selective_pseudo_labels as spl  # noqa: PLC0415  (imports SciPy)

    rows, points, answers = (part.cpu().numpy() for part in (source, target, labels))
    most = max(_COMPONENTS, _COMPONENTS_PER_CLASS * classes)
    views = spl.halve_components(min(source.shape[1], most), classes)
    found = spl.label_selectively(rows, answers.astype(np.int64), points, classes, components=views, balanced=balanced)
    return torch.from_numpy(found)
