"""How the learning rate falls."""

from __future__ import annotations

from torch.optim import Optimizer


def inverse_decay(progress: float, decay: float = 10.0) -> float:
    """(1 + γ p)^-0.75 at the share p of the training: DANN's schedule (Ganin et al., 2016), where γ is 10.

    Args:
        progress: 0 at the first step, 1 at the end.
        decay: γ; codes that count iterations have that share of it which one step is.
    """
    return float((1.0 + decay * progress) ** -0.75)


def constant(progress: float, decay: float = 0.0) -> float:  # noqa: ARG001 - the shape of a schedule
    """1 throughout."""
    return 1.0


def polynomial(progress: float, decay: float = 0.0) -> float:  # noqa: ARG001 - the shape of a schedule
    """(1 - p)^0.9 at the share p of the training: DeepLab's schedule."""
    return float((1.0 - progress) ** 0.9)


SCHEDULES = {"inverse": inverse_decay, "constant": constant, "poly": polynomial}


def set_learning_rates(optimiser: Optimizer, factor: float) -> None:
    """Multiply each group's first learning rate by the factor."""
    for group in optimiser.param_groups:
        group.setdefault("initial_lr", group["lr"])
        group["lr"] = group["initial_lr"] * factor
