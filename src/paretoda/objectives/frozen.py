"""A network as a fixed function: gradients pass through it to its inputs, none stay with its parameters.

The encoder's loss and the adversary's loss have opposite signs. If the encoder's loss reached the adversary as well,
a plain `(objective(source, target) + objective.private_loss(source, target)).backward()` would train nothing.
"""

from __future__ import annotations

from torch import Tensor, nn
from torch.func import functional_call

from paretoda.objectives.normalisation import Statistics


def frozen(network: nn.Module, rows: Tensor, statistics: Statistics) -> Tensor:
    """What the network answers, differentiable in the rows only.

    Args:
        network: called as network(rows, statistics).
        rows: shape (n, d).
        statistics: of its BatchNorm layers.
    """
    fixed = {name: parameter.detach() for name, parameter in network.named_parameters()}
    answer: Tensor = functional_call(network, fixed, (rows, statistics))
    return answer
