"""The paper's guide: the held-out target's refined predictions carry information (Lv et al., 2021)."""

from __future__ import annotations

from collections.abc import Callable

from torch import Tensor

from paretoda.objectives.target.information import information, missing_information
from paretoda.objectives.target.tcm import Tcm
from paretoda.types import Objective, Source, Target


class TcmGuide(Objective):
    """The information that the refined predictions of held-out samples lack.

    It asks the discriminators that the target loss trains, by their running statistics, and changes nothing in them;
    they stay the target loss's own and are in no list of this guide's parameters.

    Args:
        features: width of the features; not used.
        classes: number of classes; not used.
        target_loss: the `Tcm` whose discriminators are asked.
        paper_literal: minus the information, which is never above 0 and so never guides under the paper's rule.
    """

    def __init__(
        self, features: int, classes: int, target_loss: Objective | None, *, paper_literal: bool = False
    ) -> None:
        super().__init__()
        if not isinstance(target_loss, Tcm):
            raise ValueError("the guide 'tcm' asks the discriminators of the target loss 'tcm': choose that one too")
        self.features, self.classes, self.paper_literal = features, classes, paper_literal
        self._log_refined = target_loss.log_refined  # a method is no submodule: nothing is listed or saved twice
        self._prior: Callable[[], Tensor | None] = lambda: target_loss.prior.log  # wherever the target loss is

    def forward(self, source: Source, target: Target) -> Tensor:  # noqa: ARG002
        """The missing information of the held-out samples `target`; with `paper_literal`, minus the information."""
        refined = self._log_refined(target.features, target.logits)
        return -information(refined) if self.paper_literal else missing_information(refined, self._prior())
