"""CLAN: the discriminator counts where two different classifiers disagree on the target (Luo et al., 2019)."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional

from paretoda.maps import resize_maps
from paretoda.objectives.parts.differentiation import call_frozen
from paretoda.objectives.segmentation.map_adversary import FEWER_LAYERS, PUBLISHED_LAYERS, MapDiscriminator
from paretoda.objectives.segmentation.minent import output_logits
from paretoda.types import Domain, Objective, Source, Target


def disagreement(one: Tensor, other: Tensor) -> Tensor:
    """1 - cos of the two predictions of every pixel: 0 where they are equal, 1 where they have no class in common.

    Args:
        one: Logits, shape (n, K, h, w).
        other: Logits, shape (n, K, h, w).

    Returns:
        Shape (n, h, w).

    Examples:
        >>> disagreement(torch.zeros(1, 2, 1, 1), torch.zeros(1, 2, 1, 1)).abs().max() < 1e-6
        tensor(True)
    """
    return 1 - functional.cosine_similarity(one.softmax(1), other.softmax(1), dim=1)


def likeness(one: Tensor, other: Tensor) -> Tensor:
    """1 + cos of the weights of two classifiers: 2 where they are the same, 0 where they are opposite.

    Args:
        one: All weights and biases of a classifier, any shape.
        other: Those of the other classifier, of the same size.
    """
    return 1 + functional.cosine_similarity(one.flatten(), other.flatten(), dim=0)


def classifier_weights(domain: Domain) -> tuple[Tensor, Tensor]:
    """Return all weights of the two classifiers of the head.

    Raises:
        ValueError: The head does not have two classifiers.
    """
    offer = getattr(domain.head, "classifier_weights", None)
    if offer is None:
        raise ValueError("CLAN needs a head of two classifiers, with `classifier_weights()`; or give weight=0")
    one, other = offer()
    return one, other


class Clan(Objective):
    """Adversarial loss on the target's predictions, largest where two classifiers disagree.

    The classifiers belong to the model; the target carries the logits of both as `extra_logits`. Their likeness is
    lowered along with the loss and affects them alone. See `MapAdversary` for the resolution and the last three
    options.

    Args:
        features: Width of the features (not used).
        classes: Number of classes K.
        strength: Factor of the discriminator's part.
        weight: Weight of the likeness of the classifiers; twice the paper's 0.01, as in the authors' code.
        local: Weight of the disagreement.
        least: ε, the weight of a pixel where the classifiers agree.
        preheat: Share of the training in which all pixels have weight 1.
        detach: The disagreement is a constant for the encoder; in the authors' code it is not.
        layers: Number of layers of the discriminator; None: 3, or 5 with `enlarge`.
        width: Width of its first layer.
        enlarge: Give the discriminator maps of the size of the inputs, as published.

    Examples:
        >>> logits = torch.randn(2, 3, 8, 8)
        >>> maps = {"features": torch.randn(2, 4, 8, 8), "logits": logits, "index": torch.arange(2)}
        >>> target = Target(**maps, extra_logits=(logits / 2, logits / 2))
        >>> source = Source(**maps, extra_logits=target.extra_logits, labels=torch.zeros(2, 8, 8, dtype=torch.long))
        >>> bool(Clan(features=4, classes=3, weight=0)(source, target) > 0)
        True
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
        self.damping, self.preheated = 1.0, True
        layers = (PUBLISHED_LAYERS if enlarge else FEWER_LAYERS) if layers is None else layers
        self.discriminator = MapDiscriminator(classes, layers, width)

    def forward(self, source: Source, target: Target) -> Tensor:
        """Return the weighted loss of being taken for the source, plus the likeness of the classifiers; damped."""
        prediction, *pair = self._outputs(target)
        scores = call_frozen(self.discriminator, prediction.softmax(1), "batch")
        weights = self._weights(*(logits.detach() if self.detach else logits for logits in pair))
        loss = self.strength * (weights * functional.softplus(-self._resize_scores(scores, prediction))).mean()
        if self.weight:
            loss = loss + self.weight * likeness(*classifier_weights(source))
        return self.damping * loss

    def private_loss(self, source: Source, target: Target) -> Tensor:
        """Return the discriminator's cross-entropy on detached maps; the target's half has the same weights."""
        ours = self._outputs(source)[0].detach()
        prediction, *pair = (logits.detach() for logits in self._outputs(target))
        of_source, of_target = (
            self._resize_scores(self.discriminator(maps.softmax(1)), maps) for maps in (ours, prediction)
        )
        target_losses = self._weights(*pair) * functional.softplus(of_target)
        return (functional.softplus(-of_source).mean() + target_losses.mean()) / 2

    def advance(self, progress: float) -> None:
        """Damp the strengths by the remaining share of the training; end the pre-heating in time."""
        self.damping, self.preheated = 1 - progress, progress >= self.preheat

    @property
    def offset(self) -> float:
        """What is missing of the strength, as it falls."""
        return self.strength * (1 - self.damping)

    def extra_repr(self) -> str:
        """Return the settings that `repr` shows."""
        return f"strength={self.strength}, weight={self.weight}, local={self.local}, least={self.least}"

    def _outputs(self, domain: Domain) -> list[Tensor]:
        """Logits of the prediction and of both classifiers."""
        return output_logits(domain, 3, enlarge=self.enlarge)

    def _weights(self, one: Tensor, other: Tensor) -> Tensor:
        if not self.preheated:
            return torch.ones_like(one[:, 0])
        return self.local * disagreement(one, other) + self.least

    @staticmethod
    def _resize_scores(scores: Tensor, maps: Tensor) -> Tensor:
        """Scores for every pixel of the maps, shape (n, h, w)."""
        height, width = maps.shape[-2:]
        return resize_maps(scores, (height, width)).squeeze(1)
