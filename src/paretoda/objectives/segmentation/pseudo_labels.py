"""Pseudo-labels: target pixels that are confident enough to be trained on, class by class, and their storage."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from paretoda.maps import resize_maps
from paretoda.types import IGNORE, Model, Snapshot


class LabelMaps(nn.Module):
    """Constant maps, one for each image of a set; none at first."""

    maps: Tensor

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("maps", torch.empty(0, dtype=torch.uint8))

    def __len__(self) -> int:
        return len(self.maps)

    def replace(self, maps: Tensor) -> None:
        """Store these maps, shape (n, ..., h, w), instead of the present ones."""
        self.maps = maps.detach().to(self.maps.device)

    def forward(self, index: Tensor, like: Tensor) -> Tensor:
        """Return the maps of the images at these positions.

        Args:
            index: Positions of the images, shape (n,).
            like: Maps (n, K, h, w) whose resolution the label maps must have.

        Raises:
            ValueError: The resolutions differ.
        """
        found = self.maps[index]
        if found.shape[-2:] != like.shape[-2:]:
            sizes = f"{tuple(found.shape[-2:])} and {tuple(like.shape[-2:])}"
            raise ValueError(f"label maps and predictions have sizes {sizes}: the target's images must not be cropped")
        return found

    def extra_repr(self) -> str:
        """Return the number of maps."""
        return f"maps={len(self.maps)}"

    def _load_from_state_dict(self, state_dict: Mapping[str, Any], prefix: str, *rest: Any) -> None:
        saved = state_dict.get(prefix + "maps")
        if saved is not None:
            self.maps = torch.empty(saved.shape, dtype=saved.dtype, device=self.maps.device)
        super()._load_from_state_dict(state_dict, prefix, *rest)


def predict_maps(snapshot: Snapshot, *, mirror: bool = False, scale: float = 1.0) -> Iterator[Tensor]:
    """Yield log p of all training images of the target, in order, in evaluation mode; the model's mode is restored.

    Args:
        snapshot: Snapshot with the model and the images.
        mirror: Average p over an image and its mirror image.
        scale: Size of the images for the model relative to their own; the maps have the resolution of the original
            size.

    Returns:
        Batches of shape (b, K, h, w).
    """
    before = [(layer, layer.training) for layer in snapshot.model.modules()]
    snapshot.model.eval()
    try:
        for inputs in snapshot.target_inputs():
            with torch.no_grad():  # not around the yield, where it would affect the caller as well
                log_p = _log_p(snapshot.model, inputs, mirror=mirror, scale=scale)
            yield log_p
    finally:
        for layer, training in before:
            layer.training = training


def _log_p(model: Model, inputs: Tensor, *, mirror: bool, scale: float) -> Tensor:
    """Log p of the images (b, 3, H, W), shape (b, K, h, w)."""
    shown = resize_maps(inputs, [max(1, round(scale * side)) for side in inputs.shape[-2:]])
    log_p = functional.log_softmax(model(shown), 1)
    if mirror:
        other = functional.log_softmax(model(shown.flip(-1)), 1).flip(-1)
        log_p = torch.logaddexp(log_p, other) - math.log(2)
    if shown.shape == inputs.shape:
        return log_p
    size = model(inputs[:1]).shape[-2:]
    return resize_maps(log_p.exp(), size).clamp(min=torch.finfo(log_p.dtype).tiny).log()


def class_thresholds(log_p: Tensor, portion: float) -> Tensor:
    """For every class the confidence that this portion of the pixels predicted as it reaches (CBST).

    Args:
        log_p: log p of pixels of the whole target, shape (N, K).
        portion: P, in 0..1.

    Returns:
        log t, shape (K,); 0, which only certainty reaches, for a class that keeps no pixel.

    Examples:
        >>> probabilities = torch.tensor([[0.9, 0.1], [0.6, 0.4], [0.3, 0.7]])
        >>> class_thresholds(probabilities.log(), portion=1.0).exp()
        tensor([0.6000, 0.7000])
    """
    confidence, predicted = log_p.max(1)
    own = [confidence[predicted == k] for k in range(log_p.shape[1])]
    return torch.stack([_threshold_of(values, portion) for values in own])


def global_threshold(log_p: Tensor, portion: float) -> Tensor:
    """One threshold for all classes: plain self-training, in which frequent classes displace rare ones.

    Args:
        log_p: log p, shape (N, K).
        portion: P, in 0..1.

    Returns:
        log t, shape (K,), all the same.
    """
    return _threshold_of(log_p.max(1).values, portion).expand(log_p.shape[1]).clone()


def fda_thresholds(log_p: Tensor, quantile: float = 0.66, most: float = 0.9) -> Tensor:
    """For every class the quantile of its confidences, but never more than `most` (FDA).

    Args:
        log_p: log p, shape (N, K).
        quantile: Share that is left out.
        most: Probability that is always sufficient.

    Returns:
        log t, shape (K,); -inf for a class that is never predicted.
    """
    return upper_thresholds(*log_p.max(1), log_p.shape[1], quantile, most)


def upper_thresholds(
    confidence: Tensor, predicted: Tensor, classes: int, quantile: float = 0.66, most: float = 0.9
) -> Tensor:
    """`fda_thresholds` of pixels for which only the predicted class is stored, so that a large set fits in memory.

    Args:
        confidence: log p of the predicted classes, any shape.
        predicted: Predicted classes, the same shape.
        classes: Number of classes K.
        quantile: Share that is left out.
        most: Probability that is always sufficient.

    Returns:
        log t, shape (K,).
    """
    thresholds = confidence.new_full((classes,), -math.inf)
    for k in range(classes):
        own = confidence[predicted == k].sort().values
        if len(own):
            thresholds[k] = own[min(round(quantile * len(own)), len(own) - 1)].clamp(max=math.log(most))
    return thresholds


def balanced_labels(log_p: Tensor, log_t: Tensor) -> Tensor:
    """The class with the largest p / t where this is 1 or more, otherwise `IGNORE`.

    Args:
        log_p: log p, shape (n, K, ...).
        log_t: log t, shape (K,).

    Returns:
        Shape (n, ...), uint8.
    """
    best, labels = _ratios(log_p, log_t).max(1)
    return labels.masked_fill(best < 0, IGNORE).to(torch.uint8)


def confident_labels(log_p: Tensor, log_t: Tensor) -> Tensor:
    """The predicted class where it reaches its own threshold, otherwise `IGNORE`; shapes as in `balanced_labels`.

    A class whose threshold is -inf was never predicted and gets no pixel.
    """
    return labels_above(*log_p.max(1), log_t)


def labels_above(confidence: Tensor, predicted: Tensor, log_t: Tensor) -> Tensor:
    """`confident_labels` of pixels for which only the predicted class, int64, and its log p are stored."""
    own = log_t[predicted]
    return predicted.masked_fill((confidence < own) | own.isneginf(), IGNORE).to(torch.uint8)


def soft_labels(log_p: Tensor, log_t: Tensor, alpha: float) -> Tensor:
    """Labels in proportion to (p / t)^(1/α), the best ones under a reward α for their entropy; 0 where none is better.

    Args:
        log_p: log p, shape (n, K, ...).
        log_t: log t, shape (K,).
        alpha: α, above 0; towards 0 the labels become those of `balanced_labels`.

    Returns:
        Shape (n, K, ...): every pixel sums to 1 or to 0.
    """
    scores = _ratios(log_p, log_t) / alpha
    return scores.softmax(1) * (scores.logsumexp(1, keepdim=True) >= 0)


def _ratios(log_p: Tensor, log_t: Tensor) -> Tensor:
    return log_p - log_t.view(-1, *[1] * (log_p.ndim - 2))


def _threshold_of(values: Tensor, portion: float) -> Tensor:
    """Smallest of the given portion of largest values; 0 where the portion is empty."""
    count = math.floor(portion * len(values) + 1e-9)
    return values.topk(count).values[-1] if count else values.new_zeros(())
