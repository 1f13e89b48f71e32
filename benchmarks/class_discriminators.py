"""How fast K class-wise discriminators are as one batched layer, against a loop over K networks.

    python benchmarks/class_discriminators.py [--classes 65] [--features 256] [--batch 32] [--threads 1] [--json]

One measurement is forward, loss of Eq. 4, backward and an SGD step on the same rows; every round times all variants
in turn, and the fastest round counts: the one that other work on the machine disturbed least.
"""

from __future__ import annotations

import argparse
import json
import time

import torch
from torch import Tensor, nn

from paretoda.objectives.parts.class_discriminators import ClassDiscriminators, discriminator_loss
from paretoda.objectives.parts.discriminator import Discriminator


class Loop(nn.Module):
    """K networks one after the other, as the authors' code has them.

    Args:
        features: width of the rows.
        classes: K.
        width: of the hidden layers.
        apart: source and target rows in two passes, as the authors' code has it; otherwise in one.
    """

    def __init__(self, features: int, classes: int, width: int, *, apart: bool) -> None:
        super().__init__()
        self.apart = apart
        self.networks = nn.ModuleList(
            nn.Sequential(
                nn.Linear(features, width),
                nn.BatchNorm1d(width),
                nn.ReLU(),
                nn.Linear(width, width),
                nn.BatchNorm1d(width),
                nn.ReLU(),
                nn.Linear(width, 1),
            )
            for _ in range(classes)
        )

    def forward(self, source: Tensor, target: Tensor) -> tuple[Tensor, Tensor]:
        """Scores of both domains."""
        parts = (source, target) if self.apart else (torch.cat([source, target]),)
        scores = torch.cat([torch.cat([network(part) for network in self.networks], dim=1) for part in parts])
        return scores[: len(source)], scores[len(source) :]


class Batched(nn.Module):
    """All at once.

    Args:
        network: called with all rows and the BatchNorm statistics.
    """

    def __init__(self, network: nn.Module) -> None:
        super().__init__()
        self.network = network

    def forward(self, source: Tensor, target: Tensor) -> tuple[Tensor, Tensor]:
        """Scores of both domains."""
        scores = self.network(torch.cat([source, target]), "learn")
        return scores[: len(source)], scores[len(source) :]


def variants(features: int, classes: int) -> dict[str, nn.Module]:
    """What is compared; the first is the measure."""
    return {
        "batched, width 128": Batched(ClassDiscriminators(features, classes, 128)),
        "loop, width 128": Loop(features, classes, 128, apart=False),
        "loop, width 128, two passes": Loop(features, classes, 128, apart=True),
        "light, width 128": Batched(Discriminator(features, 128, classes)),
        "batched, width 32": Batched(ClassDiscriminators(features, classes, 32)),
        "loop, width 32": Loop(features, classes, 32, apart=False),
        "loop, width 1024, two passes": Loop(features, classes, 1024, apart=True),
    }


def seconds(network: nn.Module, rows: tuple[Tensor, Tensor], labels: Tensor, classes: int) -> float:
    """Of one step."""
    optimiser = torch.optim.SGD(network.parameters(), lr=1e-3, momentum=0.9)
    weights = torch.full((len(rows[1]), classes), 1 / classes)
    taken = []
    for _ in range(2):  # the first pays for memory and momentum
        start = time.perf_counter()
        optimiser.zero_grad()
        source, target = network(*rows)
        discriminator_loss(source, labels, target, weights).backward()  # type: ignore[no-untyped-call]
        optimiser.step()
        taken.append(time.perf_counter() - start)
    return taken[-1]


def measure(arguments: argparse.Namespace) -> dict[str, dict[str, float]]:
    """Milliseconds, and time relative to the first variant, of every variant."""
    torch.manual_seed(0)
    rows = torch.randn(arguments.batch, arguments.features), torch.randn(arguments.batch, arguments.features) + 1
    labels = torch.arange(arguments.batch) % arguments.classes
    taken: dict[str, list[float]] = {}
    networks = variants(arguments.features, arguments.classes)
    for _ in range(arguments.repeats):
        for name, network in networks.items():
            taken.setdefault(name, []).append(seconds(network, rows, labels, arguments.classes))
    first = next(iter(taken.values()))
    return {
        name: {
            "milliseconds": 1000 * min(times),
            "ratio": min(times) / min(first),
            "parameters": float(sum(parameter.numel() for parameter in networks[name].parameters())),
        }
        for name, times in taken.items()
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--classes", type=int, default=65)
    parser.add_argument("--features", type=int, default=256)
    parser.add_argument("--batch", type=int, default=32, help="rows of each domain (default: %(default)s)")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    rows = measure(arguments)
    if arguments.json:
        settings = {name: value for name, value in vars(arguments).items() if name != "json"}
        print(json.dumps({"settings": settings, "variants": rows}))
        return
    print(
        f"K = {arguments.classes}, d = {arguments.features}, {arguments.batch} rows of each domain; "
        f"threads: {arguments.threads}"
    )
    for name, row in rows.items():
        print(f"{name:30}{row['milliseconds']:10.1f} ms{row['ratio']:9.2f}x{row['parameters'] / 1e6:9.1f} M parameters")


if __name__ == "__main__":
    main()
