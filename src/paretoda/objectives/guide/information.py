"""Guides by information: held-out predictions become certain and diverse, plain or refined as in the paper."""

from __future__ import annotations

from collections.abc import Callable

from torch import Tensor
from torch.nn import functional

from paretoda.objectives.target.information import Information, information, missing_information
from paretoda.objectives.target.tcm import Tcm
from paretoda.types import Objective, Source, Target


class InformationGuide(Objective):
    """Missing information of the predictions of held-out samples.

    Args:
        features: Width of the features (not used).
        classes: Number of classes (not used).
        target_loss: Target loss of the run, whose class prior is used here as well if it has one.

    Examples:
        >>> import torch
        >>> source = Source(torch.zeros(3, 2), torch.zeros(3, 3), torch.arange(3), labels=torch.arange(3))
        >>> held_out = Target(torch.zeros(3, 2), torch.zeros(3, 3), torch.arange(3))
        >>> round(InformationGuide(features=2, classes=3)(source, held_out).item(), 4)
        1.0986
    """

    def __init__(self, features: int, classes: int, target_loss: Objective | None = None) -> None:
        super().__init__()
        self.features, self.classes = features, classes
        # A function is not a submodule: no parameter is listed or saved twice.
        self._prior: Callable[[], Tensor | None] = lambda: (
            target_loss.prior.log if isinstance(target_loss, Information | Tcm) else None
        )

    def forward(self, source: Source, target: Target) -> Tensor:  # noqa: ARG002
        """Return the missing information of the held-out samples `target`."""
        return missing_information(functional.log_softmax(target.logits, 1), self._prior())


class TcmGuide(Objective):
    """Missing information of the refined predictions of held-out samples.

    It uses the discriminators that the target loss trains, with their running statistics, and changes nothing in them;
    they belong to the target loss and are not among this guide's parameters.

    Args:
        features: Width of the features (not used).
        classes: Number of classes (not used).
        target_loss: The `Tcm` whose discriminators are used.
        paper_literal: Minus the information, which is never above 0 and so never guides under the paper's rule.

    Raises:
        ValueError: The target loss is not a `Tcm`.

    Examples:
        >>> import torch
        >>> source = Source(torch.randn(8, 4), torch.randn(8, 3), torch.arange(8), labels=torch.arange(8) % 3)
        >>> held_out = Target(torch.randn(8, 4), torch.randn(8, 3), torch.arange(8))
        >>> guide = TcmGuide(features=4, classes=3, target_loss=Tcm(features=4, classes=3, width=8))
        >>> bool(guide(source, held_out) >= 0), len(list(guide.parameters()))
        (True, 0)
    """

    def __init__(
        self, features: int, classes: int, target_loss: Objective | None, *, paper_literal: bool = False
    ) -> None:
        super().__init__()
        if not isinstance(target_loss, Tcm):
            raise ValueError("the guide 'tcm' asks the discriminators of the target loss 'tcm': choose that one too")
        self.features, self.classes, self.paper_literal = features, classes, paper_literal
        self._log_refined = target_loss.log_refined  # a method is not a submodule: nothing is saved twice
        self._prior: Callable[[], Tensor | None] = lambda: target_loss.prior.log  # on its present device

    def forward(self, source: Source, target: Target) -> Tensor:  # noqa: ARG002
        """Return the missing information of the held-out samples; with `paper_literal`, minus the information."""
        refined = self._log_refined(target.features, target.logits)
        return -information(refined) if self.paper_literal else missing_information(refined, self._prior())
