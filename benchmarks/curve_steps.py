"""One step at any size: two linear layers on feature vectors, m objectives, K classes, and a guide."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

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
    from paretoda.domains import Source, Target
    from paretoda.objectives import CrossEntropy, make_alignment, make_target_loss
    from paretoda.schemes import SCHEMES

    torch.manual_seed(0)
    shape: dict[str, Any] = {"features": 256, "classes": point.classes}
    first = nn.Sequential(nn.Linear(point.inputs, 512), nn.ReLU())
    last = nn.Linear(512, 256)
    encoder, head = nn.Sequential(first, last), nn.Linear(256, point.classes)
    names = ["source", "alignment", "target"][: point.objectives]
    made: dict[str, Any] = {"source": CrossEntropy(**shape)}
    made |= {"alignment": make_alignment("dann", **shape)} if "alignment" in names else {}
    made |= {"target": make_target_loss("tcm", **shape)} if "target" in names else {}
    for place in range(3, point.objectives):
        made[f"im-{place}"] = make_target_loss("im", **shape)
    scale = {name: 1 + 0.1 * place for place, name in enumerate(made)}  # further losses see other temperatures
    x, z, held = torch.randn(3, point.batch, point.inputs).unbind()
    labels, index = torch.randint(point.classes, (point.batch,)), torch.arange(point.batch)
    guide: Any = make_target_loss("im", **shape)
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
