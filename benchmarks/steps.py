"""Our training steps, and the table of all that are compared.

f is the forward pass of one domain's batch; a backward pass costs 2f and a plain step 6f. "every 5" can be cheaper than
its count: where the weights that it holds are zero for all losses of a domain, that domain's backward pass is left out.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from typing import Literal

import rivals
import torch
from networks import Setting
from rivals import Step

import paretoda
from paretoda.models.batchnorm import encode, encode_held_out, frozen_statistics
from paretoda.schemes.paretoda_paper import ParetoPaper
from paretoda.schemes.wrappers import Every


def ours(setting: Setting, *, bn: Literal["joint", "per-domain"], every: int = 1) -> Step:
    """`paretoda.backward` with all shared parameters voting; the guide only at steps that refresh the weights."""
    scheme = Every(ParetoPaper(), every=every)

    def step() -> None:
        source, target = encode(setting.encoder, setting.source, setting.target, bn=bn)
        features, guide = [source, target], None
        if scheme.refreshes:
            features.append(encode_held_out(setting.encoder, setting.held_out))
            guide = setting.uncertainty(features[-1])
        paretoda.backward(
            setting.losses(source, target),
            shared=setting.encoder,
            scheme=scheme,
            guide=guide,
            features=features,
            heads=setting.classifier,
            head_losses=["source"],
            private=[(setting.adversary(source, target), setting.discriminator)],
        )

    return step


def last(setting: Setting) -> Step:
    """`paretoda.backward` with the bottleneck alone voting: the guide's body needs no graph."""
    scheme = ParetoPaper()

    def step() -> None:
        source, target = encode(setting.encoder, setting.source, setting.target, bn="joint")
        with torch.no_grad(), frozen_statistics(setting.body):
            hidden = setting.body(setting.held_out)
        guided = setting.bottleneck(hidden)
        paretoda.backward(
            setting.losses(source, target),
            shared=setting.encoder,
            scheme=scheme,
            guide=setting.uncertainty(guided),
            features=[source, target, guided],
            heads=setting.classifier,
            head_losses=["source"],
            private=[(setting.adversary(source, target), setting.discriminator)],
            voting="last",
        )

    return step


@dataclass(frozen=True)
class Variant:
    """A way to take a step, its cost in theory, and the packages it needs.

    Args:
        make: builds the step for a setting.
        cost: in f.
        rounds: steps that make one measurement.
        needs: packages.
    """

    make: Callable[[Setting], Step]
    cost: float
    rounds: int = 1
    needs: tuple[str, ...] = ()

    @property
    def installed(self) -> bool:
        """Whether its packages are here."""
        return all(find_spec(package) for package in self.needs)


VARIANTS: dict[str, Variant] = {
    "plain": Variant(rivals.plain, 6),
    "authors": Variant(rivals.authors, 27, needs=("cvxpy", "cvxopt")),
    "naive": Variant(rivals.naive, 17),
    "torchjd": Variant(rivals.torchjd, 27, needs=("torchjd",)),
    "exact, joint": Variant(partial(ours, bn="joint"), 17),
    "exact, per-domain": Variant(partial(ours, bn="per-domain"), 13),
    "every 5": Variant(partial(ours, bn="per-domain", every=5), 7.4, rounds=5),
    "last": Variant(last, 7),
}
