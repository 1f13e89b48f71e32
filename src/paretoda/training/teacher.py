"""The averaged teacher of self-training (mean teacher, Tarvainen and Valpola, 2017)."""

from __future__ import annotations

from copy import deepcopy

import torch
from torch import Tensor, nn

from paretoda.types import Model

DECAY = 0.99
"""Share of the teacher that a step keeps, as in DACS; the literature has 0.99 to 0.9996."""


class Teacher(nn.Module):
    """A model whose weights are the exponential moving average of those of the model in training.

    After step t the average keeps min(1 - 1 / t, decay) of itself, so that it begins as a plain mean of all models
    since the first step. Buffers, such as the running statistics of BatchNorm, are those of the model in training.

    Args:
        model: Model in training; the teacher begins as a copy of it.
        decay: Largest share that the average keeps in one step, from 0 to below 1.

    Raises:
        ValueError: The decay is out of range.

    Examples:
        >>> model = Model(nn.Linear(3, 4), nn.Linear(4, 2))
        >>> teacher = Teacher(model)
        >>> teacher(torch.zeros(5, 3)).shape
        torch.Size([5, 2])
    """

    steps: Tensor

    def __init__(self, model: Model, decay: float = DECAY) -> None:
        super().__init__()
        if not 0 <= decay < 1:
            raise ValueError(f"the teacher keeps a share of itself from 0 to below 1 in each step, not {decay}")
        self.decay = decay
        self.model = deepcopy(model).requires_grad_(requires_grad=False)
        self.register_buffer("steps", torch.zeros((), dtype=torch.int64))

    @torch.no_grad()
    def follow(self, model: Model) -> None:
        """Move the average towards the model after a step."""
        self.steps += 1
        share = 1 - min(1 - 1 / int(self.steps), self.decay)
        for own, new in zip(self.model.parameters(), model.parameters(), strict=True):
            own.lerp_(new, share)
        for value, present in zip(self.model.buffers(), model.buffers(), strict=True):
            value.copy_(present)

    @torch.no_grad()
    def forward(self, inputs: Tensor) -> Tensor:
        """Return the probabilities of the classes, in evaluation mode; shape (n, K), or maps (n, K, h, w)."""
        self.model.eval()
        probabilities: Tensor = self.model(inputs).float().softmax(1)
        return probabilities
