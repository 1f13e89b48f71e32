"""CLAN: the discriminator is heard where two different classifiers disagree on the target (Luo et al., 2019)."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional

from paretoda.maps import enlarged
from paretoda.objectives.parts.differentiation import frozen
from paretoda.objectives.segmentation.map_adversary import FEWER_LAYERS, PUBLISHED_LAYERS, MapDiscriminator
from paretoda.objectives.segmentation.minent import outputs
from paretoda.types import Domain, Objective, Source, Target


def disagreement(one: Tensor, other: Tensor) -> Tensor:
    """1 - cos of the two predictions of every pixel: 0 where they are equal, 1 where they have no class in common.

    Args:
        one: logits, shape (n, K, h, w).
        other: logits, shape (n, K, h, w).

    Returns:
        Shape (n, h, w).
    """
    return 1 - functional.cosine_similarity(one.softmax(1), other.softmax(1), dim=1)


def likeness(one: Tensor, other: Tensor) -> Tensor:
    """1 + cos of the weights of two classifiers: 2 where they are the same, 0 where they are opposite.

    Args:
        one: all weights and biases of a classifier, any shape.
        other: those of the other, of the same size.
    """
    return 1 + functional.cosine_similarity(one.flatten(), other.flatten(), dim=0)


def classifier_weights(domain: Domain) -> tuple[Tensor, Tensor]:
    """All weights of the head's two classifiers; an error where it has no two."""
    offer = getattr(domain.head, "classifier_weights", None)
    if offer is None:
        raise ValueError("CLAN needs a head of two classifiers, with `classifier_weights()`; or give weight=0")
    one, other = offer()
    return one, other


class Clan(Objective):
    """How far the target's predictions are from being taken for the source's, most where two classifiers disagree.

    The classifiers are the model's; the target brings the logits of both as `further`. That they differ is lowered
    along with it, and reaches them alone. See `MapAdversary` for the resolution and the last three options.

    Args:
        features: width of the features; not used.
        classes: number of classes K.
        strength: of the discriminator's part.
        weight: of the likeness of the classifiers; the paper's 0.01, twice, as in the authors' code.
        local: weight of the disagreement.
        least: ε, what a pixel counts where they agree.
        preheat: share of the training in which all pixels count 1.
        detach: the disagreement is a constant for the encoder; in the authors' code it is not.
        layers: of the discriminator; None: 3, or 5 of enlarged maps.
        width: of its first layer.
        enlarge: show it maps of the size of the inputs, as published.
    """

    def __init__(  # noqa: PLR0913 - every option is one of the paper's or of its code's
        self,
        features: int,
        classes: int,
        *,
        strength: float = 1e-3,
        weight: float = 0.02,
        local: float = 40.0,
        least: float = 0.4,
        preheat: float = 0.05,
        detach: bool = False,
        layers: int | None = None,
        width: int = 64,
        enlarge: bool = False,
    ) -> None:
        super().__init__()
        self.features, self.classes = features, classes
        self.strength, self.weight, self.local, self.least = strength, weight, local, least
        self.preheat, self.detach, self.enlarge = preheat, detach, enlarge
        self.damping, self.heated = 1.0, True
        layers = (PUBLISHED_LAYERS if enlarge else FEWER_LAYERS) if layers is None else layers
        self.discriminator = MapDiscriminator(classes, layers, width)

    def forward(self, source: Source, target: Target) -> Tensor:
        """What is lacking for "source" on the target, weighted, and the likeness of the classifiers; damped."""
        seen, *pair = self._outputs(target)
        scores = frozen(self.discriminator, seen.softmax(1), "batch")
        weights = self._weights(*(logits.detach() if self.detach else logits for logits in pair))
        loss = self.strength * (weights * functional.softplus(-self._fitted(scores, seen))).mean()
        if self.weight:
            loss = loss + self.weight * likeness(*classifier_weights(source))
        return self.damping * loss

    def private_loss(self, source: Source, target: Target) -> Tensor:
        """The discriminator's cross-entropy, the target's half with the same weights; on detached maps."""
        ours = self._outputs(source)[0].detach()
        seen, *pair = (logits.detach() for logits in self._outputs(target))
        of_source, of_target = (self._fitted(self.discriminator(maps.softmax(1)), maps) for maps in (ours, seen))
        target_losses = self._weights(*pair) * functional.softplus(of_target)
        return (functional.softplus(-of_source).mean() + target_losses.mean()) / 2

    def advance(self, progress: float) -> None:
        """Damp the strengths by what is left of the training; leave the pre-heating behind in time."""
        self.damping, self.heated = 1 - progress, progress >= self.preheat

    def extra_repr(self) -> str:
        """Settings."""
        return f"strength={self.strength}, weight={self.weight}, local={self.local}, least={self.least}"

    def _outputs(self, domain: Domain) -> list[Tensor]:
        """Logits of the prediction and of both classifiers."""
        return outputs(domain, 3, enlarge=self.enlarge)

    def _weights(self, one: Tensor, other: Tensor) -> Tensor:
        if not self.heated:
            return torch.ones_like(one[:, 0])
        return self.local * disagreement(one, other) + self.least

    @staticmethod
    def _fitted(scores: Tensor, maps: Tensor) -> Tensor:
        """Scores for every pixel of the maps, shape (n, h, w)."""
        height, width = maps.shape[-2:]
        return enlarged(scores, (height, width)).squeeze(1)
