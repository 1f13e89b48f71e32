"""What one backward pass did, and the error that stops one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

from paretoda.core.problem import Matrix, Move, Vector


class NonFiniteError(ArithmeticError):
    """A loss or a gradient is NaN or infinite; nothing was written."""


@dataclass(frozen=True, eq=False)
class Report:
    """The weights of a step and why they were chosen.

    Args:
        names: Names of the objectives.
        losses: Their values, shape (m,), as they were (a `Problem` raises small ones to 1e-8).
        alpha: What the scheme chose, shape (m,); the step goes along m Σ alpha_i g_i.
        move: The rule that chose it.
        cosines: Of the voting gradients, shape (m, m); None where no gradient was compared.
        guide_loss: The guide's loss; None without a guide.
        guide_cosines: Of each objective's gradient with the guide's, shape (m,); None where it was not computed.
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

    def _repr_html_(self) -> str:
        """What a notebook shows: losses, weights and cosines as a table."""
        heads = ["loss", "value", "weight"]
        if self.cosines is not None:
            heads += [f"cos {name}" for name in self.names]
        if self.guide_cosines is not None:
            heads.append("cos guide")
        rows = [heads]
        for place, (name, weight) in enumerate(self.weights.items()):
            row = [name, f"{self.losses[place]:.4g}", f"{weight:.3g}"]
            row += [] if self.cosines is None else [f"{cosine + 0.0:.2f}" for cosine in self.cosines[place]]
            row += [] if self.guide_cosines is None else [f"{self.guide_cosines[place] + 0.0:.2f}"]
            rows.append(row)
        guide = "" if self.guide_loss is None else f"; guide {self.guide_loss:.4g}"
        finite = "" if self.finite else "; not finite, left to the gradient scaler"
        return f"<table>{''.join(map(_row, rows))}</table><p>{escape(self.move.value + guide + finite)}</p>"


def _row(texts: Sequence[str]) -> str:
    return f"<tr>{''.join(f'<td>{escape(text)}</td>' for text in texts)}</tr>"
