"""One step at any size: two linear layers on feature vectors, m objectives, K classes, and a guide."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

VARIANTS = ("sum", "exact", "last")
"""The plain sum; weights from the gradients of all shared parameters; from those of the last layer."""


@dataclass(frozen=True)
class Point:
    """A problem size; d is 512 (inputs + 1) + 131,328."""

    inputs: int = 2048
    objectives: int = 3
    classes: int = 10
    batch: int = 32


def stepper(point: Point, variant: str) -> Callable[[], None]:
    """One step of a variant, without the optimiser."""
    import torch
    from torch import nn

    import paretoda
    from paretoda.objectives import CrossEntropy, Dann, Information, Tcm
    from paretoda.schemes import SCHEMES
    from paretoda.types import Objective, Source, Target

    torch.manual_seed(0)
    shape = 256, point.classes
    first = nn.Sequential(nn.Linear(point.inputs, 512), nn.ReLU())
    last = nn.Linear(512, 256)
    encoder, head = nn.Sequential(first, last), nn.Linear(256, point.classes)
    kinds: list[type[Objective]] = [CrossEntropy, Dann, Tcm]
    kinds += [Information] * (point.objectives - 3)
    names = ["source", "alignment", "target", *(f"target-{place}" for place in range(2, point.objectives - 1))]
    made = {name: kind(*shape) for name, kind in list(zip(names, kinds, strict=True))[: point.objectives]}
    scale = {name: 1 + 0.1 * place for place, name in enumerate(made)}  # further losses see other temperatures
    x, z, held = torch.randn(3, point.batch, point.inputs).unbind()
    labels, index = torch.randint(point.classes, (point.batch,)), torch.arange(point.batch)
    guide = Information(*shape)
    scheme = SCHEMES["linear" if variant == "sum" else "paretoda"]()
    networks = [encoder, head, *made.values()]

    def step() -> None:
        for network in networks:
            network.zero_grad()
        features = [encoder(x), encoder(z)]
        source = Source(features[0], head(features[0]), index, labels=labels)
        losses = {}
        for name, objective in made.items():
            target = Target(features[1], scale[name] * head(features[1]), index)
            losses[name] = objective(source, target)
        target = Target(features[1], head(features[1]), index)
        own = [(objective.private_loss(source, target), objective) for objective in made.values()]
        guided = None
        if variant != "sum":
            with torch.set_grad_enabled(variant == "exact"):
                hidden = first(held)
            features.append(last(hidden))
            guided = guide(source, Target(features[2], head(features[2]), index))
        paretoda.backward(
            losses,
            shared=encoder,
            scheme=scheme,
            guide=guided,
            features=features,
            heads=head,
            head_losses=None if variant == "sum" else ["source"],
            private=[(loss, network) for loss, network in own if loss is not None],
            voting="last" if variant == "last" else "all",
        )

    return step
