"""Report of one backward pass, and the error that stops one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

from paretoda.core.problem import Matrix, Move, Vector


class NonFiniteError(ArithmeticError):
    """A loss or a gradient is NaN or infinite; nothing was written.

    Examples:
        >>> import torch
        >>> from paretoda.gradients import backward
        >>> from paretoda.schemes import MGDA
        >>> weight = torch.ones(2, requires_grad=True)
        >>> try:
        ...     backward({"source": (weight * float("nan")).sum()}, shared=[weight], scheme=MGDA())
        ... except NonFiniteError as error:
        ...     print(error)
        the loss of 'source' is nan; no gradient was written
    """


@dataclass(frozen=True, eq=False)
class Report:
    """Weights of a step and the reason for their choice.

    Args:
        names: Names of the objectives.
        losses: Values of the losses, shape (m,), unchanged (a `Problem` raises small ones to 1e-8).
        alpha: Weights that the scheme chose, shape (m,); the step goes along m Σ alpha_i g_i.
        move: Rule that chose them.
        cosines: Cosines of the voting gradients, shape (m, m); None if no gradients were compared.
        guide_loss: Loss of the guide; None without a guide.
        guide_cosines: Cosines of each objective's gradient with the guide's, shape (m,); None if not computed.
        finite: False if a non-finite step was left to the GradScaler.
        units: Factor of each loss in the heads, shape (m,), where a scheme calibrates the losses; None: 1.

    Examples:
        >>> import numpy as np
        >>> report = Report(("source", "target"), np.array([0.7, 0.2]), np.array([0.75, 0.25]), Move.DESCENT)
        >>> report.weights
        {'source': 1.5, 'target': 0.5}
        >>> print(report)
        source 0.7 (x1.5), target 0.2 (x0.5) | descent
    """

    names: tuple[str, ...]
    losses: Vector
    alpha: Vector
    move: Move
    cosines: Matrix | None = None
    guide_loss: float | None = None
    guide_cosines: Vector | None = None
    finite: bool = True
    units: Vector | None = None

    @property
    def weights(self) -> dict[str, float]:
        """Factor of each loss in the gradient of the shared parameters: m·alpha."""
        return {name: float(len(self.names) * a) for name, a in zip(self.names, self.alpha, strict=True)}

    def __str__(self) -> str:
        parts = [
            f"{name} {loss:.4g} (x{weight:.3g})"
            for (name, weight), loss in zip(self.weights.items(), self.losses, strict=True)
        ]
        guide = "" if self.guide_loss is None else f" | guide {self.guide_loss:.4g}"
        return f"{', '.join(parts)} | {self.move.value}{guide}"

    def _repr_html_(self) -> str:
        """Return the table of losses, weights and cosines that a notebook shows."""
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
