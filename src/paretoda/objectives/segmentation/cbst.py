"""CBST: training on the most confident target pixels of every class, in rounds (Zou et al., 2018), and CRST (2019)."""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import partial
from typing import Literal

import torch
from torch import Tensor
from torch.nn import functional

from paretoda.objectives.segmentation.pixel_objective import zero_loss
from paretoda.objectives.segmentation.pseudo_labels import (
    LabelMaps,
    balanced_labels,
    class_thresholds,
    confident_labels,
    fda_thresholds,
    global_threshold,
    predict_maps,
    soft_labels,
)
from paretoda.types import IGNORE, Objective, Snapshot, Source, Target

Rule = Literal["cbst", "fda", "global"]


class Cbst(Objective):
    """Cross-entropy of the target's pixels to the labels that the model itself gave them at the start of the round.

    The loss is 0 before the first round. The labels of a round are made when it begins, however rare refreshes are (see
    `refresh_due`), and later refreshes change nothing. They are maps of whole images as the snapshot shows them: the
    target images must reach the training without crops or flips. `share` is the share of pixels that have a label.

    Args:
        features: Width of the features (not used).
        classes: Number of classes K.
        portion: Portion of the pixels of every class that is used in the first round.
        increase: Increase of the portion from round to round, up to a half.
        rounds: Number of rounds.
        warm_up: Share of the training before the first round.
        rule: "cbst": a portion of every class; "global": a portion of all pixels; "fda": the upper third of every class
            and all above 0.9, in every round.
        mrkld: Weight of the divergence from uniform predictions at the labelled pixels; 0.1 in CRST.
        lrent: α of soft labels; 0 for hard ones. Not with the rule "fda".
        priors: Priors of the locations of classes, shape (K, h, w), with mean 1 over the locations of each; None for
            none.
        mirror: Make labels from the mean prediction of an image and of its mirror image, as in the authors' code.
        scale: Size of the images that labels are made from, as a share of their own size; 0.9 in the authors' code.

    Raises:
        ValueError: An option is unknown or out of its range.

    Examples:
        >>> objective = Cbst(features=4, classes=3, rounds=4, warm_up=0.6)
        >>> [objective.round_at(progress) for progress in (0.5, 0.6, 0.75, 1.0)]
        [-1, 0, 1, 3]
    """

    labelled: Tensor
    priors: Tensor | None

    def __init__(  # noqa: PLR0913 - every option is one of the papers'
        self,
        features: int,
        classes: int,
        *,
        portion: float = 0.2,
        increase: float = 0.05,
        rounds: int = 4,
        warm_up: float = 0.6,
        rule: Rule = "cbst",
        mrkld: float = 0.0,
        lrent: float = 0.0,
        priors: Tensor | None = None,
        mirror: bool = False,
        scale: float = 1.0,
    ) -> None:
        super().__init__()
        _check(rule, rounds, warm_up, lrent)
        if not 0.25 <= scale <= 4:
            raise ValueError(f"scale must lie in 0.25..4, got {scale}")
        self.features, self.classes = features, classes
        self.portion, self.increase, self.rounds, self.warm_up = portion, increase, rounds, warm_up
        self.rule, self.mrkld, self.lrent = rule, mrkld, lrent
        self.mirror, self.scale = mirror, scale
        self.labels = LabelMaps()
        self.register_buffer("priors", priors)
        self.progress = 0.0
        self.register_buffer("labelled", torch.tensor(-1))

    def forward(self, source: Source, target: Target) -> Tensor:  # noqa: ARG002
        """Return the mean over the labelled pixels; 0 where there are none."""
        if not len(self.labels):
            return zero_loss(target.logits)
        log_p = functional.log_softmax(target.logits, 1)
        labels: Tensor = self.labels(target.index, log_p)
        if self.lrent:
            labelled, losses = labels.sum(1) > 0, -(labels.to(log_p) * log_p).sum(1)
        else:
            labelled = labels != IGNORE
            losses = functional.nll_loss(log_p, labels.long(), ignore_index=IGNORE, reduction="none")
        losses = losses - self.mrkld * log_p.mean(1)
        return losses.where(labelled, 0).sum() / labelled.sum().clamp(min=1)

    def advance(self, progress: float) -> None:
        """Store the progress of the training."""
        self.progress = progress

    @property
    def refresh_due(self) -> bool:
        """Whether a new round begins."""
        number = self.round_at(self.progress)
        return number >= 0 and number > int(self.labelled)

    def refresh(self, snapshot: Snapshot) -> None:
        """Label the target anew, once per round."""
        number = self.round_at(self.progress)
        if number <= int(self.labelled):
            return
        label = self._make_labeller(snapshot, min(self.portion + number * self.increase, max(0.5, self.portion)))
        maps = torch.cat([label(log_p) for log_p in self._predict(snapshot)])
        self.labels.replace(maps)
        self.labelled.fill_(number)

    @property
    def share(self) -> float:
        """Share of the target's pixels that have a label; the others are ignored. NaN before the first round."""
        if not len(self.labels):
            return math.nan
        maps = self.labels.maps
        return float((maps.sum(1) > 0 if self.lrent else maps != IGNORE).float().mean())

    def round_at(self, progress: float) -> int:
        """Return the number of the round at this progress; -1 before the first."""
        if progress < self.warm_up:
            return -1
        part = (progress - self.warm_up) / (1 - self.warm_up)
        return min(math.floor(part * self.rounds + 1e-9), self.rounds - 1)

    @property
    def offset(self) -> float:
        """1 before the first round, when there are no labels."""
        return 0.0 if len(self.labels) else 1.0

    def extra_repr(self) -> str:
        """Return the settings that `repr` shows."""
        rounds = f"portion={self.portion}, increase={self.increase}, rounds={self.rounds}, warm_up={self.warm_up}"
        views = f"mirror={self.mirror}, scale={self.scale}"
        return f"{rounds}, rule={self.rule!r}, mrkld={self.mrkld}, lrent={self.lrent}, {views}"

    def _predict(self, snapshot: Snapshot) -> Iterator[Tensor]:
        """Yield log p of all images, with the priors."""
        for log_p in predict_maps(snapshot, mirror=self.mirror, scale=self.scale):
            yield log_p if self.priors is None else log_p + self.priors.clamp(min=1e-12).log().to(log_p)

    def _make_labeller(self, snapshot: Snapshot, portion: float) -> partial[Tensor]:
        """Return a function from log p (n, K, h, w) to label maps (n, ..., h, w), by thresholds of the target."""
        if self.priors is None and not self.mirror and self.scale == 1:
            rows = functional.log_softmax(snapshot.target.logits, 1)
        else:  # the rows of the snapshot have no locations
            rows = torch.cat([log_p[:, :, ::2, ::2].transpose(0, 1).flatten(1).T for log_p in self._predict(snapshot)])
        device = self.labels.maps.device
        if self.rule == "fda":
            return partial(confident_labels, log_t=fda_thresholds(rows).to(device))
        log_t = (class_thresholds if self.rule == "cbst" else global_threshold)(rows, portion).to(device)
        if self.lrent:
            return partial(_half_soft_labels, log_t=log_t, alpha=self.lrent)
        return partial(balanced_labels, log_t=log_t)


def _half_soft_labels(log_p: Tensor, log_t: Tensor, alpha: float) -> Tensor:
    """Return soft labels in half precision, because they are kept for all images."""
    return soft_labels(log_p, log_t, alpha).half()


def _check(rule: str, rounds: int, warm_up: float, lrent: float) -> None:
    if rule not in ("cbst", "fda", "global"):
        raise ValueError(f"rule must be 'cbst', 'fda' or 'global', got {rule!r}")
    if rounds < 1 or not 0 <= warm_up < 1:
        raise ValueError(f"rounds must be 1 or more and warm_up lie in 0..1, got {rounds} and {warm_up}")
    if lrent < 0 or (lrent > 0 and rule == "fda"):
        raise ValueError(f"lrent must be 0 or more, and 0 with the rule 'fda', got {lrent}")
