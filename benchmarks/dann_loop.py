"""DANN on feature vectors as one writes it by hand, with nothing else: the yardstick of `command.py` and `peers.py`.

    python benchmarks/dann_loop.py SOURCE.npz TARGET.npz [--steps 500]

The network, the batches and the optimiser are those of `paretoda adapt --method dann`.
"""

from __future__ import annotations

import argparse
import json
import time
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional


class Reverse(torch.autograd.Function):
    """Identity whose gradient is reversed."""

    @staticmethod
    def forward(ctx: Any, features: Tensor, strength: float) -> Tensor:
        """Return the features as they are."""
        ctx.strength = strength
        return features.view_as(features)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None]:
        """Return the gradient times minus the strength."""
        return -ctx.strength * gradients[0], None


def block(inputs: int, outputs: int, *rest: nn.Module) -> list[nn.Module]:
    """A linear layer, BatchNorm, ReLU and what follows."""
    return [nn.Linear(inputs, outputs), nn.BatchNorm1d(outputs), nn.ReLU(), *rest]


def standardise(rows: np.ndarray) -> Tensor:
    """Zero mean and unit variance for every column."""
    return torch.from_numpy(((rows - rows.mean(0)) / np.maximum(rows.std(0), 1e-6)).astype(np.float32))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("source")
    parser.add_argument("target")
    parser.add_argument("--steps", type=int, default=500)
    parser.add_argument("--batch", type=int, default=64)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    with np.load(arguments.source) as file:
        x, y = standardise(file["x"]), torch.from_numpy(file["y"].astype(np.int64))
    with np.load(arguments.target) as file:
        z, truth = standardise(file["x"]), file["y"]
    encoder = nn.Sequential(*block(x.shape[1], 512, nn.Dropout(0.5)), *block(512, 256, nn.Dropout(0.5)))
    head = nn.Linear(256, int(y.max()) + 1)
    critic = nn.Sequential(*block(256, 256), *block(256, 256), nn.Linear(256, 1))
    optimiser = torch.optim.SGD(
        [*encoder.parameters(), *head.parameters(), *critic.parameters()],
        lr=0.1,
        momentum=0.9,
        weight_decay=1e-3,
        nesterov=True,
        fused=True,
    )
    size, steps = arguments.batch, arguments.steps
    domains = torch.cat([torch.ones(size), torch.zeros(size)])
    before = time.process_time()
    for step in range(steps):
        for group in optimiser.param_groups:
            group["lr"] = 0.1 * (1 + 10 * step / steps) ** -0.75
        own, other = torch.randint(len(x), (size,)), torch.randint(len(z), (size,))
        features = encoder(torch.cat([x[own], z[other]]))
        strength = 2 / (1 + np.exp(-10 * step / steps)) - 1
        scores = critic(Reverse.apply(features, strength)).squeeze(1)  # type: ignore[no-untyped-call]
        loss = functional.cross_entropy(head(features[:size]), y[own])
        loss = loss + functional.binary_cross_entropy_with_logits(scores, domains)
        optimiser.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        optimiser.step()
    trained = time.process_time()
    encoder.eval()
    with torch.no_grad():
        accuracy = float((head(encoder(z)).argmax(1).numpy() == truth).mean())
    print(json.dumps({"steps": trained - before, "whole": time.process_time(), "accuracy": accuracy}))


if __name__ == "__main__":
    main()
