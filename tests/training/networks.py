"""A small network with BatchNorm and dropout, two objectives and a discriminator, in float64."""

import torch
from torch import nn

from paretoda.objectives import CrossEntropy, Dann, Information
from paretoda.training.step import Step
from paretoda.types import Batch, Model


def network_batch(seed=3):
    torch.manual_seed(seed)
    source, target, held_out = (torch.randn(9, 5).double() + shift for shift in (0, 1, 1))
    index = torch.arange(9)
    return Batch(source, index % 3, target, held_out, index, index, index)


def network_step(scheme, *, dropout=0.0, rates=(0.2, 0.05), guide=None):
    """Encoder and head with learning rates of their own."""
    torch.manual_seed(0)
    encoder = nn.Sequential(nn.Linear(5, 6), nn.BatchNorm1d(6), nn.Tanh(), nn.Dropout(dropout), nn.Linear(6, 4))
    model = Model(encoder, nn.Linear(4, 3)).double()
    dann = Dann(4, 3, hidden=7).double()
    groups = [
        {"params": model.encoder.parameters(), "lr": rates[0]},
        {"params": [*model.head.parameters(), *dann.parameters()], "lr": rates[1]},
    ]
    objectives = {"source": CrossEntropy(4, 3), "alignment": dann, "target": Information(4, 3)}
    return Step(model, objectives, scheme, torch.optim.SGD(groups), guide=guide)
