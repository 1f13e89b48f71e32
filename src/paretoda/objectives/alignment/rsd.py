"""RSD: the subspaces that the features of both batches span are close, on matching bases (Chen et al., 2021)."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from paretoda.objectives.parts.differentiation import full_precision
from paretoda.types import Objective, Source, Target

_NOTHING = 1e-6
"""Size of a singular value, relative to the largest, below which its direction is not in the span."""
_GAP = 1e-6
"""Difference of eigenvalues, relative to the largest, below which the gradient between their vectors fades."""


class _Eigenvectors(torch.autograd.Function):
    """Eigenvectors of a symmetric matrix, those of the largest eigenvalues first, with a gradient that is finite.

    The gradient has the factors 1 / (λ_j - λ_i). They are damped to gap / (gap² + ε²), so that equal eigenvalues,
    between which a basis is arbitrary, turn no vector instead of all.
    """

    @staticmethod
    def forward(ctx: Any, matrix: Tensor) -> tuple[Tensor, Tensor]:
        values, vectors = torch.linalg.eigh(matrix)
        values, vectors = values.flip(0), vectors.flip(1)
        ctx.save_for_backward(values, vectors)
        return values, vectors

    @staticmethod
    def backward(ctx: Any, *given: Tensor) -> Tensor:
        values, vectors = ctx.saved_tensors
        by_value, by_vector = given
        gaps = values[None, :] - values[:, None]
        damped = gaps / (gaps.square() + (_GAP * values.abs().max()).square() + torch.finfo(gaps.dtype).tiny)
        inner = damped * (vectors.T @ by_vector) + torch.diag(by_value)
        gradient: Tensor = vectors @ inner @ vectors.T
        return (gradient + gradient.T) / 2


def subspace_basis(rows: Tensor, most: int) -> Tensor:
    """Orthonormal basis of the span of the rows: their right singular vectors, the most important first.

    Args:
        rows: Features, shape (n, d); they are not centred, as in the paper.
        most: Largest number of vectors.

    Returns:
        Shape (d, k), with k at most n, d and `most`; directions without any spread are left out.

    Examples:
        >>> subspace_basis(torch.tensor([[2.0, 0.0, 0.0], [4.0, 0.0, 0.0]]), most=3).abs()
        tensor([[1.],
                [0.],
                [0.]])
    """
    scale = rows.detach().abs().max().clamp(min=torch.finfo(rows.dtype).tiny)
    rows = rows / scale
    energy, vectors = _Eigenvectors.apply(rows @ rows.T)  # type: ignore[no-untyped-call]
    kept = int((energy > max(_NOTHING, 4 * torch.finfo(rows.dtype).eps * len(rows)) * energy[0]).sum())
    kept = max(1, min(kept, most))
    basis: Tensor = rows.T @ vectors[:, :kept] / energy[:kept].clamp(min=torch.finfo(rows.dtype).tiny).sqrt()
    return basis


@full_precision
def subspace_distance(source: Tensor, target: Tensor, bases: float) -> Tensor:
    """Sum of the sines of the principal angles between both spans, plus the mismatch of their bases.

    The mismatch is the Frobenius norm of |P| - |Q|, where the columns of P and Q are the principal vectors in the
    singular bases of source and target: 0 where the most important directions of one domain meet those of the other.

    Args:
        source: Features of the source, shape (n, d).
        target: Features of the target, shape (m, d).
        bases: Factor of the mismatch.

    Examples:
        >>> x, y, z = torch.eye(4)[:1], torch.eye(4)[1:2], torch.tensor([[3.0, 4.0, 0.0, 0.0]])
        >>> [round(subspace_distance(x, other, bases=0.0).item(), 4) for other in (x, y, z)]
        [0.0, 1.0, 0.8]
    """
    exact, most = torch.float64, max(1, source.shape[1] // 2)  # two larger spans share directions whatever they are
    one, other = (subspace_basis(rows.to(exact), most) for rows in (source, target))
    count = min(one.shape[1], other.shape[1])
    cosines = one[:, :count].T @ other[:, :count]
    squares, ours = _Eigenvectors.apply(cosines @ cosines.T)  # type: ignore[no-untyped-call]
    theirs = _Eigenvectors.apply(cosines.T @ cosines)[1]  # type: ignore[no-untyped-call]
    sines = (1 - squares).clamp(min=1e-12).sqrt()
    mismatch = (ours.abs() - theirs.abs()).square().sum()
    total: Tensor = (sines - 1e-6).sum() + bases * ((mismatch + 1e-12).sqrt() - 1e-6)
    return total.to(source.dtype)


class Rsd(Objective):
    """Representation subspace distance: aligns directions of the features, not their sizes, which a value depends on.

    It was made for regression, where alignments that change the scale of the features do harm, and reads no classes.
    A batch spans at most half of the dimensions of the features; take batches smaller than that.

    Args:
        features: Width d of the features (not used).
        classes: Number of classes (not used).
        bases: Factor of the mismatch of the bases, relative to the sines.
        strength: Factor of the value and the gradient.

    Raises:
        ValueError: A factor is negative.

    Examples:
        >>> source = Source(torch.eye(8)[:2], torch.zeros(2, 1), torch.arange(2), labels=torch.zeros(2))
        >>> target = Target(torch.eye(8)[2:4], torch.zeros(2, 1), torch.arange(2))
        >>> round(Rsd(features=8, classes=1, strength=1.0)(source, target).item(), 4)  # two right angles
        2.0
    """

    def __init__(self, features: int, classes: int, *, bases: float = 0.01, strength: float = 1e-3) -> None:
        super().__init__()
        if min(bases, strength) < 0:
            raise ValueError(f"bases and strength must be 0 or more, got {bases} and {strength}")
        self.features, self.classes, self.bases, self.strength = features, classes, bases, strength

    def forward(self, source: Source, target: Target) -> Tensor:
        """Return the strength times the distance of the subspaces."""
        return self.strength * subspace_distance(source.features, target.features, self.bases)

    def extra_repr(self) -> str:
        """Return the settings that `repr` shows."""
        return f"bases={self.bases}, strength={self.strength}"
