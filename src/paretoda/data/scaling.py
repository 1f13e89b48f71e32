"""Z-scores of features and their principal components; the statistics are stored with the model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional

from paretoda.data.samples import Raw
from paretoda.data.settings import Scaling
from paretoda.errors import DataError

_CONSTANT = 1e-6  # a deviation below this share of the values is rounding of float32
_LARGEST = 1e12
"""Largest feature that may stay unscaled: float32 holds the squares of numbers up to 1e19."""


_WIDEST = 2048
"""Width up to which principal axes are computed exactly, in about two seconds of one core."""
_ROUNDS, _MORE = 12, 32
"""Rounds of the iteration above it, and directions besides the wanted ones, which make it converge faster."""


@dataclass(frozen=True, eq=False)
class FeatureTransform:
    """The transform (x - mean) / std, onto some axes where they are given; the same in training and evaluation.

    Args:
        mean: Means, shape (d,), float32.
        std: Deviations, shape (d,), float32, 1 where the feature is constant.
        axes: Matrix that the z-scores are multiplied by, shape (d, k), float32; None: they stay as they are.
        unit_rows: Whether the z-scores of a sample are divided by their length first, so that a sample with a few huge
            values (a rare word in a short text) counts no more than others.
    """

    mean: Tensor
    std: Tensor
    axes: Tensor | None = None
    unit_rows: bool = False

    @property
    def width(self) -> int:
        """Number of values that the network reads."""
        return len(self.mean) if self.axes is None else self.axes.shape[1]

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of one row."""
        return (self.width,)

    def train(self, raw: Raw, generator: torch.Generator) -> Tensor:  # noqa: ARG002
        """Return the z-scores; nothing is random, because no augmentation suits features in general."""
        return self.evaluate(raw)

    def evaluate(self, raw: Raw) -> Tensor:
        """Return the z-scores, shape (n, d), or their components, shape (n, k), float32."""
        x = torch.from_numpy(np.ascontiguousarray(raw, dtype=np.float32))
        if x.ndim != 2 or x.shape[1] != len(self.mean):
            raise DataError(
                f"the samples have the shape {tuple(x.shape)[1:]}, the model takes {len(self.mean)} features"
            )
        return scale_features(x, self.mean, self.std, self.axes, unit_rows=self.unit_rows)

    def to_json(self) -> dict[str, Any]:
        """Return what `transform_from_json` needs besides the tensors."""
        components = {} if self.axes is None else {"components": self.width}
        unit_rows = {"unit_rows": True} if self.unit_rows else {}
        return {"kind": "features", "width": len(self.mean), **components, **unit_rows}

    def tensors(self) -> dict[str, Tensor]:
        """Return the tensors to be stored with the model."""
        axes = {} if self.axes is None else {"axes": self.axes}
        return {"mean": self.mean, "std": self.std, **axes}


def scale_features(x: Tensor, mean: Tensor, std: Tensor, axes: Tensor | None, *, unit_rows: bool) -> Tensor:
    """Return the z-scores of features, of length 1 where asked for, onto the axes where there are any.

    Args:
        x: Features, shape (n, d).
        mean: Means, shape (d,).
        std: Deviations, shape (d,).
        axes: Matrix that the z-scores are multiplied by, shape (d, k); None: they stay as they are.
        unit_rows: Whether the z-scores of each sample are divided by their length.

    Examples:
        >>> scale_features(torch.tensor([[3.0, 4.0]]), torch.zeros(2), torch.ones(2), None, unit_rows=True)
        tensor([[0.6000, 0.8000]])
    """
    scores = (x - mean) / std
    scores = functional.normalize(scores, dim=1) if unit_rows else scores
    return scores if axes is None else scores @ axes


def identity_transform(width: int) -> FeatureTransform:
    """Return the transform that leaves features as they are."""
    return FeatureTransform(torch.zeros(width), torch.ones(width))


def fit_z_scores(x: NDArray[np.float32]) -> FeatureTransform:
    """Return the transform that gives these rows mean 0 and deviation 1; constant features only lose their mean."""
    mean = x.mean(axis=0, dtype=np.float64)
    std = x.std(axis=0, dtype=np.float64)
    std[std <= _CONSTANT * np.abs(x).max(axis=0)] = 1
    return FeatureTransform(torch.from_numpy(mean).float(), torch.from_numpy(std).float())


def fit_scaling(scaling: Scaling, *domains: NDArray[np.float32], components: int = 0) -> list[FeatureTransform]:
    """Return the transform of each domain, fitted on their training parts.

    Args:
        scaling: Whose mean and deviation are used; "source" and "joint" take several sources together.
        *domains: Features of the training part of each source, and of the target last, shape (n, d) each.
        components: Number of principal components of all domains' z-scores, divided by their lengths, that are kept;
            0, or d and more: the z-scores themselves.

    Raises:
        DataError: Features that are not scaled are too large for float32.
    """
    scores = _fit_z_scores(scaling, domains)
    if not 0 < components < domains[0].shape[1]:
        return scores
    scores = [replace(own, unit_rows=True) for own in scores]
    rows = torch.cat([own.evaluate(part) for own, part in zip(scores, domains, strict=True)])
    axes = principal_axes(rows, components)
    return [replace(own, axes=axes) for own in scores]


def _fit_z_scores(scaling: Scaling, domains: Sequence[NDArray[np.float32]]) -> list[FeatureTransform]:
    if scaling == "none":
        largest = max(float(np.abs(part).max(initial=0.0)) for part in domains)
        if largest > _LARGEST:
            raise DataError(
                f"the features reach {largest:.2g}, of which a network would see nothing but zeros behind its "
                "normalisation; leave out --scaling none"
            )
        return [identity_transform(domains[0].shape[1])] * len(domains)
    if scaling == "per-domain":
        return [fit_z_scores(part) for part in domains]
    together = fit_z_scores(np.concatenate(domains[:-1] if scaling == "source" else domains))
    return [together] * len(domains)


def principal_axes(rows: Tensor, components: int) -> Tensor:
    """Directions of the largest mean square, scaled by one factor so that the components have mean square 1.

    The sign of an axis makes its largest loading positive. The directions of very wide rows are found by iteration.

    Args:
        rows: Rows, shape (n, d).
        components: Number k of directions.

    Returns:
        Shape (d, k), float32.

    Examples:
        >>> principal_axes(torch.tensor([[3.0, 0.0], [-3.0, 0.1]]), 1).abs().round(decimals=2)
        tensor([[0.3300],
                [0.0100]])
    """
    if rows.shape[1] <= _WIDEST:
        squares, axes = torch.linalg.eigh(rows.T @ rows / len(rows))
    else:
        squares, axes = _iterate_subspace(rows, components)
    kept = axes[:, -components:].flip(1)
    signs = kept.gather(0, kept.abs().argmax(0, keepdim=True)).sign()
    size = squares[-components:].clamp(min=0).mean().sqrt().clamp(min=torch.finfo(rows.dtype).tiny)
    scaled: Tensor = kept * signs / size
    return scaled.contiguous()


def _iterate_subspace(rows: Tensor, components: int) -> tuple[Tensor, Tensor]:
    """Return about the largest eigenvalues of the mean squares and their vectors, ascending, without a d x d matrix.

    The method is subspace iteration from a fixed random start (Halko et al., 2011). Twelve rounds find more than 99 %
    of the mean square that the best directions have, also where the spectrum is flat.

    Args:
        rows: Rows, shape (n, d).
        components: Number k of wanted directions; some more are iterated.

    Returns:
        Shapes (k',) and (d, k'), k' at least k.
    """
    wanted = min(components + _MORE, rows.shape[1])
    axes = torch.randn(rows.shape[1], wanted, generator=torch.Generator().manual_seed(0), dtype=rows.dtype)
    for _ in range(_ROUNDS):
        axes = torch.linalg.qr(rows.T @ (rows @ axes)).Q
    moved = rows @ axes
    squares, turn = torch.linalg.eigh(moved.T @ moved / len(rows))
    return squares, axes @ turn
