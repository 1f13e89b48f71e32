"""How frequent a loss that asks for diversity wants the classes to be: equally, as one says, or as the target seems."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from paretoda.domains import Source, Target
from paretoda.objectives.label_shift import LabelShift


class ClassPrior(nn.Module):
    """The prior π of `missing_information`.

    Args:
        classes: number of classes K.
        given: K numbers above 0; None: the classes should be equally frequent.
        shift: the given ones are the source's, and are moved to the target by what `LabelShift` finds in the training.
    """

    _given: Tensor | None

    def __init__(self, classes: int, given: Sequence[float] | None, *, shift: bool = False) -> None:
        super().__init__()
        self.register_buffer("_given", _checked(given, classes, shift), persistent=False)
        self.shift = LabelShift(classes) if shift else None

    @property
    def log(self) -> Tensor | None:
        """The logarithm, shape (K,); None where the classes should be equally frequent."""
        if self._given is None or self.shift is None:
            return self._given
        moved: Tensor = self.shift(self._given)
        return moved

    def learn(self, source: Source, target: Target) -> None:
        """Look at a batch of the training, where the prior depends on it."""
        if self.shift is not None:
            self.shift.learn(source.logits.detach(), source.labels, target.logits.detach())


def _checked(given: Sequence[float] | None, classes: int, shift: bool) -> Tensor | None:
    if given is None:
        return torch.full((classes,), 1 / classes).log() if shift else None
    found = torch.as_tensor(given, dtype=torch.float32)
    if found.shape != (classes,) or not bool((found > 0).all()):
        raise ValueError(f"prior must be {classes} numbers above 0")
    return (found / found.sum()).log()
