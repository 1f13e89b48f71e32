"""A network that is one point, and objectives that are quadratics of it: every gradient is known in closed form."""

import torch
from torch import nn

from paretoda.training.step import Step
from paretoda.types import Batch, Model, Objective


class Point(nn.Module):
    """Every sample's features are the parameters themselves."""

    def __init__(self, at):
        super().__init__()
        self.at = nn.Parameter(torch.tensor(at, dtype=torch.float64))

    def forward(self, inputs):
        return self.at.expand(len(inputs), -1)


class Bowl(Objective):
    """½ (x - centre)ᵀ A (x - centre) of the target's mean features; A is the identity if not given."""

    def __init__(self, centre, curvature=None):
        super().__init__()
        self.centre = torch.tensor(centre, dtype=torch.float64)
        eye = torch.eye(len(centre), dtype=torch.float64)
        self.curvature = eye if curvature is None else torch.tensor(curvature, dtype=torch.float64)

    def forward(self, source, target):  # noqa: ARG002
        away = target.features.mean(0) - self.centre
        return 0.5 * away @ self.curvature @ away


def point_step(at, objectives, scheme, lr=0.1, guide=None):
    model = Model(Point(at), nn.Identity())
    return Step(model, objectives, scheme, torch.optim.SGD(model.parameters(), lr=lr), guide=guide)


def point_batch(n=2):
    inputs, index = torch.zeros(n, 1, dtype=torch.float64), torch.arange(n)
    return Batch(inputs, index, inputs, inputs, index, index, index)


def filled(step, batch):
    """The gradients that the strategy writes, by name, without taking the step."""
    step.model.train()
    step.optimiser.zero_grad(set_to_none=True)
    step.scheme.fill(step, batch)
    return {name: parameter.grad.clone() for name, parameter in step.modules().named_parameters()}
