"""CBST: the target's most certain pixels of every class are taught, in rounds (Zou et al., 2018), and CRST (2019)."""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import partial
from typing import Literal

import torch
from torch import Tensor
from torch.nn import functional

from paretoda.objectives.segmentation.pixel_objective import nothing
from paretoda.objectives.segmentation.pseudo_labels import (
    LabelMaps,
    balanced_labels,
    class_thresholds,
    confident_labels,
    fda_thresholds,
    global_threshold,
    predicted_maps,
    soft_labels,
)
from paretoda.types import IGNORE, Objective, Snapshot, Source, Target

Rule = Literal["cbst", "fda", "global"]


class Cbst(Objective):
    """Cross-entropy of the target's pixels to the labels that the model itself gave them when the round began.

    0 before the first round. A round's labels come when it begins, however rare refreshes are (`due`), and later
    refreshes change nothing. They are maps of whole images as the snapshot shows them: the target's images must come
    to the training uncropped and unturned. `share` is the share of pixels that have a label.

    Args:
        features: width of the features; not used.
        classes: number of classes K.
        portion: of the pixels of every class that is taught in the first round.
        increase: of the portion from round to round, up to a half.
        rounds: how many there are.
        warm_up: share of the training before the first.
        rule: "cbst": a portion of every class; "global": of all pixels; "fda": the upper third of every class and all
            above 0.9, in every round.
        mrkld: weight of the divergence from uniform predictions at the taught pixels; 0.1 in CRST.
        lrent: α of soft labels; 0 for hard ones. Not with the rule "fda".
        priors: of the places of classes, shape (K, h, w), 1 on average over the places of each; None for none.
        mirror: labels are made of the mean prediction of an image and of its mirror image, as in the authors' code.
        scale: size of the images that labels are made of, as a share of their own; 0.9 in the authors' code.
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
        """The mean over the taught pixels; 0 where there are none."""
        if not len(self.labels):
            return nothing(target.logits)
        log_p = functional.log_softmax(target.logits, 1)
        labels: Tensor = self.labels(target.index, log_p)
        if self.lrent:
            taught, losses = labels.sum(1) > 0, -(labels.to(log_p) * log_p).sum(1)
        else:
            taught = labels != IGNORE
            losses = functional.nll_loss(log_p, labels.long(), ignore_index=IGNORE, reduction="none")
        losses = losses - self.mrkld * log_p.mean(1)
        return losses.where(taught, 0).sum() / taught.sum().clamp(min=1)

    def advance(self, progress: float) -> None:
        """Remember how far the training is."""
        self.progress = progress

    @property
    def due(self) -> bool:
        """Whether a round begins."""
        number = self.round_at(self.progress)
        return number >= 0 and number > int(self.labelled)

    def refresh(self, snapshot: Snapshot) -> None:
        """Label the target anew, once a round."""
        number = self.round_at(self.progress)
        if number <= int(self.labelled):
            return
        label = self._labelling(snapshot, min(self.portion + number * self.increase, max(0.5, self.portion)))
        maps = torch.cat([label(log_p) for log_p in self._seen(snapshot)])
        self.labels.replace(maps)
        self.labelled.fill_(number)

    @property
    def share(self) -> float:
        """Of the target's pixels that have a label; the others are ignored. Not a number before the first round."""
        if not len(self.labels):
            return math.nan
        maps = self.labels.maps
        return float((maps.sum(1) > 0 if self.lrent else maps != IGNORE).float().mean())

    def round_at(self, progress: float) -> int:
        """The round that a share of the training belongs to; -1 before the first."""
        if progress < self.warm_up:
            return -1
        part = (progress - self.warm_up) / (1 - self.warm_up)
        return min(math.floor(part * self.rounds + 1e-9), self.rounds - 1)

    def extra_repr(self) -> str:
        """Settings."""
        rounds = f"portion={self.portion}, increase={self.increase}, rounds={self.rounds}, warm_up={self.warm_up}"
        seen = f"mirror={self.mirror}, scale={self.scale}"
        return f"{rounds}, rule={self.rule!r}, mrkld={self.mrkld}, lrent={self.lrent}, {seen}"

    def _seen(self, snapshot: Snapshot) -> Iterator[Tensor]:
        """The log p of all images, with the priors."""
        for log_p in predicted_maps(snapshot, mirror=self.mirror, scale=self.scale):
            yield log_p if self.priors is None else log_p + self.priors.clamp(min=1e-12).log().to(log_p)

    def _labelling(self, snapshot: Snapshot, portion: float) -> partial[Tensor]:
        """Makes label maps (n, ..., h, w) of log p (n, K, h, w), by thresholds of the whole target."""
        if self.priors is None and not self.mirror and self.scale == 1:
            rows = functional.log_softmax(snapshot.target.logits, 1)
        else:  # the snapshot's pixels were seen once, as they are, and do not say where they were
            rows = torch.cat([log_p[:, :, ::2, ::2].transpose(0, 1).flatten(1).T for log_p in self._seen(snapshot)])
        device = self.labels.maps.device
        if self.rule == "fda":
            return partial(confident_labels, log_t=fda_thresholds(rows).to(device))
        log_t = (class_thresholds if self.rule == "cbst" else global_threshold)(rows, portion).to(device)
        if self.lrent:
            return partial(_half_soft_labels, log_t=log_t, alpha=self.lrent)
        return partial(balanced_labels, log_t=log_t)


def _half_soft_labels(log_p: Tensor, log_t: Tensor, alpha: float) -> Tensor:
    """In half precision: they are kept for all images."""
    return soft_labels(log_p, log_t, alpha).half()


def _check(rule: str, rounds: int, warm_up: float, lrent: float) -> None:
    if rule not in ("cbst", "fda", "global"):
        raise ValueError(f"rule must be 'cbst', 'fda' or 'global', got {rule!r}")
    if rounds < 1 or not 0 <= warm_up < 1:
        raise ValueError(f"rounds must be 1 or more and warm_up lie in 0..1, got {rounds} and {warm_up}")
    if lrent < 0 or (lrent > 0 and rule == "fda"):
        raise ValueError(f"lrent must be 0 or more, and 0 with the rule 'fda', got {lrent}")
