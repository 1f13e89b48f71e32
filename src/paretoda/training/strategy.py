"""What a step computes from a batch, and the protocol of strategies, which use a batch more than once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from torch import Tensor, nn

from paretoda.gradients import Report
from paretoda.training.forward import Pass
from paretoda.types import Batch, Source, Target

if TYPE_CHECKING:
    from paretoda.training.step import Step


@dataclass(frozen=True, eq=False)
class BatchView:
    """Both domains as the network sees them now, and everything that is differentiated.

    Args:
        source: Labelled samples.
        target: Unlabelled samples.
        losses: Scalar losses by the objectives' names.
        features: Output of the encoder, a tensor or micro-batches for each of its passes.
        guide: Loss of the guide; None where it is not wanted.
        private: Pairs of a loss and the network that alone follows it.
    """

    source: Source
    target: Target
    losses: dict[str, Tensor]
    features: list[Pass]
    guide: Tensor | None
    private: list[tuple[Tensor, nn.Module]]


@runtime_checkable
class Strategy(Protocol):
    """A way to train that takes the place of a scheme: it does more than weigh the gradients of one forward pass.

    A class says `guided = True` or `guided = False`, as a scheme does. It may have a property `refreshes`, which says
    whether the next step reads the guide, and `spreads = True` where it differentiates by `Step.weigh` only, so that
    several processes can take its steps. One with memory has `state_dict` and `load_state_dict`, also like a scheme.
    """

    def check(self, step: Step) -> None:
        """Raise a `ValueError` that says what to do where this step makes no sense; called when the step is made."""
        ...

    def fill(self, step: Step, batch: Batch) -> Report:
        """Fill every `.grad` of the step's networks, which are empty before, and report; the step then updates them."""
        ...
