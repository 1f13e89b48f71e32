"""Z-scores of features; the statistics are stored with the model."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from paretoda.data.samples import Raw
from paretoda.data.settings import Scaling
from paretoda.errors import DataError

_CONSTANT = 1e-6  # a deviation below this share of the values is rounding of float32


@dataclass(frozen=True, eq=False)
class FeatureTransform:
    """The transform (x - mean) / std, the same in training and evaluation.

    Args:
        mean: Means, shape (d,), float32.
        std: Deviations, shape (d,), float32, 1 where the feature is constant.
    """

    mean: Tensor
    std: Tensor

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of one row."""
        return (len(self.mean),)

    def train(self, raw: Raw, generator: torch.Generator) -> Tensor:  # noqa: ARG002
        """Return the z-scores; nothing is random, because no augmentation suits features in general."""
        return self.evaluate(raw)

    def evaluate(self, raw: Raw) -> Tensor:
        """Return the z-scores, shape (n, d), float32."""
        x = torch.from_numpy(np.ascontiguousarray(raw, dtype=np.float32))
        if x.ndim != 2 or x.shape[1] != len(self.mean):
            raise DataError(
                f"the samples have the shape {tuple(x.shape)[1:]}, the model takes {len(self.mean)} features"
            )
        return (x - self.mean) / self.std

    def to_json(self) -> dict[str, Any]:
        """Return what `transform_from_json` needs besides the tensors."""
        return {"kind": "features", "width": len(self.mean)}

    def tensors(self) -> dict[str, Tensor]:
        """Return the tensors to be stored with the model."""
        return {"mean": self.mean, "std": self.std}


def identity_transform(width: int) -> FeatureTransform:
    """Return the transform that leaves features as they are."""
    return FeatureTransform(torch.zeros(width), torch.ones(width))


def fit_z_scores(x: NDArray[np.float32]) -> FeatureTransform:
    """Return the transform that gives these rows mean 0 and deviation 1; constant features only lose their mean."""
    mean = x.mean(axis=0, dtype=np.float64)
    std = x.std(axis=0, dtype=np.float64)
    std[std <= _CONSTANT * np.abs(x).max(axis=0)] = 1
    return FeatureTransform(torch.from_numpy(mean).float(), torch.from_numpy(std).float())


def fit_scaling(
    scaling: Scaling, source: NDArray[np.float32], target: NDArray[np.float32]
) -> tuple[FeatureTransform, FeatureTransform]:
    """Return the source's and the target's transform, fitted on their training parts.

    Args:
        scaling: Whose mean and deviation are used.
        source: Features of the source's training part, shape (n, d).
        target: Features of the target's training part, shape (m, d).
    """
    if scaling == "none":
        both = identity_transform(source.shape[1])
        return both, both
    if scaling == "per-domain":
        return fit_z_scores(source), fit_z_scores(target)
    both = fit_z_scores(source if scaling == "source" else np.concatenate([source, target]))
    return both, both
