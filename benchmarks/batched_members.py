"""Several networks as one batched computation against the same networks one after the other, on one core.

    python benchmarks/batched_members.py [--members 5] [--inputs 128] [--rounds 30] [--json]

Both train the MLP of feature data (inputs - 512 - 256 - classes, BatchNorm, ReLU) by cross-entropy and SGD on batches
of 128 rows; the results are compared before they are timed. Alternating rounds, CPU time, medians.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from statistics import median

import torch
from torch import Tensor, nn
from torch.nn import functional

_ROWS, _CLASSES, _WIDTHS = 128, 7, (512, 256)
_RATE = 0.01


def make_networks(members: int, inputs: int) -> list[nn.Sequential]:
    """Networks with weights of their own."""
    networks = []
    for _ in range(members):
        layers: list[nn.Module] = []
        for before, after in zip((inputs, *_WIDTHS[:-1]), _WIDTHS, strict=True):
            layers += [nn.Linear(before, after), nn.BatchNorm1d(after), nn.ReLU()]
        networks.append(nn.Sequential(*layers, nn.Linear(_WIDTHS[-1], _CLASSES)))
    return networks


def step_in_turn(networks: list[nn.Sequential], rows: Tensor, labels: Tensor) -> Callable[[], None]:
    """One step of each network after the other."""

    def step() -> None:
        for network, own, truth in zip(networks, rows, labels, strict=True):
            parameters: list[Tensor] = list(network.parameters())
            slopes = torch.autograd.grad(functional.cross_entropy(network(own), truth), parameters)
            with torch.no_grad():
                torch._foreach_add_(parameters, slopes, alpha=-_RATE)

    return step


def stack(networks: list[nn.Sequential]) -> list[Tensor]:
    """The parameters of all networks, each with the members in front."""
    columns = zip(*(network.parameters() for network in networks), strict=True)
    return [torch.stack([p.detach() for p in column]).requires_grad_() for column in columns]


def step_together(parameters: list[Tensor], rows: Tensor, labels: Tensor) -> Callable[[], None]:
    """One step of all networks by batched products; the channels of BatchNorm are those of all members."""
    members = len(rows)

    def forward() -> Tensor:
        hidden = rows
        for place in range(0, 4 * len(_WIDTHS), 4):
            weight, bias, scale, shift = parameters[place : place + 4]
            hidden = torch.baddbmm(bias.unsqueeze(1), hidden, weight.transpose(1, 2))
            flat = hidden.transpose(0, 1).reshape(_ROWS, -1)
            flat = functional.batch_norm(flat, None, None, scale.flatten(), shift.flatten(), training=True)
            hidden = functional.relu(flat).view(_ROWS, members, -1).transpose(0, 1)
        weight, bias = parameters[-2:]
        return torch.baddbmm(bias.unsqueeze(1), hidden, weight.transpose(1, 2))

    def step() -> None:
        loss = members * functional.cross_entropy(forward().flatten(0, 1), labels.flatten())
        slopes = torch.autograd.grad(loss, parameters)
        with torch.no_grad():
            torch._foreach_add_(parameters, slopes, alpha=-_RATE)

    return step


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--members", type=int, default=5)
    parser.add_argument("--inputs", type=int, default=128)
    parser.add_argument("--rounds", type=int, default=30)
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    rows = torch.randn(arguments.members, _ROWS, arguments.inputs)
    labels = torch.randint(_CLASSES, (arguments.members, _ROWS))
    networks = make_networks(arguments.members, arguments.inputs)
    stacked = stack(networks)
    turns, together = step_in_turn(networks, rows, labels), step_together(stacked, rows, labels)
    for _ in range(3):
        turns()
        together()
    difference = max(float((a - b).detach().abs().max()) for a, b in zip(stack(networks), stacked, strict=True))
    ratios = []
    for _ in range(arguments.rounds):
        seconds = []
        for work in (turns, together):
            start = time.process_time()
            for _ in range(10):
                work()
            seconds.append(time.process_time() - start)
        ratios.append(seconds[1] / seconds[0])
    result = {"together / in turn": median(ratios), "low": min(ratios), "high": max(ratios), "difference": difference}
    print(json.dumps(result) if arguments.json else "\n".join(f"{k:22}{v:.3g}" for k, v in result.items()))


if __name__ == "__main__":
    main()
