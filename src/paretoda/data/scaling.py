"""Features become z-scores; the statistics travel with the model."""

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

_CONSTANT = 1e-6  # below this share of its own size, a deviation is the rounding of float32


@dataclass(frozen=True, eq=False)
class FeatureTransform:
    """(x - mean) / std, the same in training and evaluation.

    Args:
        mean: shape (d,), float32.
        std: shape (d,), float32, 1 where the feature is constant.
    """

    mean: Tensor
    std: Tensor

    def train(self, raw: Raw, generator: torch.Generator) -> Tensor:  # noqa: ARG002
        """Nothing random: no augmentation is right for features in general."""
        return self.evaluate(raw)

    def evaluate(self, raw: Raw) -> Tensor:
        """Z-scores, shape (n, d), float32."""
        x = torch.from_numpy(np.ascontiguousarray(raw, dtype=np.float32))
        if x.ndim != 2 or x.shape[1] != len(self.mean):
            raise DataError(
                f"the samples have the shape {tuple(x.shape)[1:]}, the model takes {len(self.mean)} features"
            )
        return (x - self.mean) / self.std

    def to_json(self) -> dict[str, Any]:
        """What `transform_from_json` needs beside the tensors."""
        return {"kind": "features", "width": len(self.mean)}

    def tensors(self) -> dict[str, Tensor]:
        """To be stored with the model."""
        return {"mean": self.mean, "std": self.std}


def identity_transform(width: int) -> FeatureTransform:
    """Leaves features as they are."""
    return FeatureTransform(torch.zeros(width), torch.ones(width))


def fit_z_scores(x: NDArray[np.float32]) -> FeatureTransform:
    """Mean 0 and deviation 1 for these rows; constant features only lose their mean."""
    mean = x.mean(axis=0, dtype=np.float64)
    std = x.std(axis=0, dtype=np.float64)
    std[std <= _CONSTANT * np.abs(x).max(axis=0)] = 1
    return FeatureTransform(torch.from_numpy(mean).float(), torch.from_numpy(std).float())


def fit_scaling(
    scaling: Scaling, source: NDArray[np.float32], target: NDArray[np.float32]
) -> tuple[FeatureTransform, FeatureTransform]:
    """The source's and the target's transform, from the training parts alone."""
    if scaling == "none":
        both = identity_transform(source.shape[1])
        return both, both
    if scaling == "per-domain":
        return fit_z_scores(source), fit_z_scores(target)
    both = fit_z_scores(source if scaling == "source" else np.concatenate([source, target]))
    return both, both
