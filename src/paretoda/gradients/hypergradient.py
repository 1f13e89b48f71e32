"""Gradient of a minimum's loss on other data with respect to what defines the minimum (Lorraine et al., 2020)."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor


def _product(slopes: Sequence[Tensor], inputs: Sequence[Tensor], vector: Sequence[Tensor]) -> list[Tensor]:
    """Derivative of Σ <slopes, vector> by the inputs, with the vector held fixed; the graph is kept."""
    alive = [(slope, part) for slope, part in zip(slopes, vector, strict=True) if slope.requires_grad]
    found = torch.autograd.grad(
        [slope for slope, _ in alive],
        list(inputs),
        [part for _, part in alive],
        retain_graph=True,
        allow_unused=True,
        materialize_grads=True,
    )
    return list(found)


def hypergradient(
    train: Tensor, auxiliary: Tensor, parameters: Sequence[Tensor], learned: Tensor, *, rate: float, terms: int
) -> Tensor:
    """dL_A/dφ at θ*(φ) = argmin L_train(θ, φ), by the implicit function theorem: -∇L_A H⁻¹ ∂²L_train/∂θ∂φ.

    H⁻¹ is replaced by η Σ_(j<=J) (I - ηH)^j, which converges to it for η < 2 / λ_max(H). With J terms it is what
    J + 1 steps of gradient descent, begun at θ, would make of φ. The authors leave out the factor η.

    Args:
        train: L_train, a function of the parameters and of `learned`, with its graph, which is kept.
        auxiliary: L_A, a function of the parameters, with its graph, which is kept.
        parameters: Parameters θ.
        learned: φ, shape (p,).
        rate: Learning rate η.
        terms: Number of terms J; 0 needs no second derivative.

    Returns:
        Shape (p,).
    """
    theta = list(parameters)
    slopes = torch.autograd.grad(train, theta, create_graph=True, allow_unused=True, materialize_grads=True)
    first = torch.autograd.grad(auxiliary, theta, retain_graph=True, allow_unused=True, materialize_grads=True)
    term = list(first)
    total = [part.clone() for part in term]
    for _ in range(terms):
        curved = _product(slopes, theta, term)
        term = [part - rate * bend for part, bend in zip(term, curved, strict=True)]
        total = [sum_ + part for sum_, part in zip(total, term, strict=True)]
    return -rate * _product(slopes, [learned], total)[0]
