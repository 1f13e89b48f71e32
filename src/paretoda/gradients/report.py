"""What one backward pass did, and the error that stops one."""

from __future__ import annotations

from dataclasses import dataclass

from paretoda.core.problem import Matrix, Move, Vector


class NonFiniteError(ArithmeticError):
    """A loss or a gradient is NaN or infinite; nothing was written."""


@dataclass(frozen=True, eq=False)
class Report:
    """The weights of a step and why they were chosen.

    Args:
        names: of the objectives.
        losses: their values, shape (m,), as they were (a `Problem` raises small ones to 1e-8).
        alpha: what the scheme chose, shape (m,); the step goes along m Σ alpha_i g_i.
        move: the rule that chose it.
        cosines: of the voting gradients, shape (m, m); None where no gradient was compared.
        guide_loss: the guide's loss; None without a guide.
        guide_cosines: of each objective's gradient with the guide's, shape (m,); None where it was not computed.
        finite: False where a non-finite step was handed to the GradScaler.
    """

    names: tuple[str, ...]
    losses: Vector
    alpha: Vector
    move: Move
    cosines: Matrix | None = None
    guide_loss: float | None = None
    guide_cosines: Vector | None = None
    finite: bool = True

    @property
    def weights(self) -> dict[str, float]:
        """By which each loss was multiplied in the shared parameters' gradient: m·alpha."""
        return {name: float(len(self.names) * a) for name, a in zip(self.names, self.alpha, strict=True)}

    def __str__(self) -> str:
        parts = [
            f"{name} {loss:.4g} (x{weight:.3g})"
            for (name, weight), loss in zip(self.weights.items(), self.losses, strict=True)
        ]
        guide = "" if self.guide_loss is None else f" | guide {self.guide_loss:.4g}"
        return f"{', '.join(parts)} | {self.move.value}{guide}"
