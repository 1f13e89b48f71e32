"""The training step that others take: plain DANN, the authors' of ParetoDA, the naive one, and TorchJD's.

All lower the same losses of the same networks. The authors' step follows the description of their released code
(optimisation.md §0); its class-wise discriminators, which see detached features, are left out of all steps alike.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from importlib import import_module

import numpy as np
import torch
from networks import Setting
from programmes import Programme
from solvers import SOLVERS
from torch import Tensor
from torch.nn.functional import cross_entropy

from paretoda.core.problem import Guide, Matrix, Problem, Vector
from paretoda.models.batchnorm import encode, encode_held_out
from paretoda.schemes.paretoda_paper import ParetoPaper

Step = Callable[[], None]


def plain(setting: Setting) -> Step:
    """DANN: the sum of the losses, back-propagated once; the discriminator's gradient is reversed where it arrives."""

    def step() -> None:
        features = encode(setting.encoder, setting.source, setting.target, bn="joint")
        _backward(torch.stack(list(setting.losses(*features).values())).sum())
        for parameter in setting.discriminator.parameters():
            parameter.grad = -_present(parameter.grad)

    return step


def authors(setting: Setting) -> Step:
    """Two forwards of source and target, one of held-out data, 3 + 1 + 2 backwards, and a copied m x d matrix."""
    heads = [*setting.classifier.parameters(), *setting.discriminator.parameters()]

    def losses() -> dict[str, Tensor]:
        return setting.losses(*encode(setting.encoder, setting.source, setting.target, bn="joint"))

    def gradient(loss: Tensor) -> Tensor:
        setting.optimiser.zero_grad()
        _backward(loss, keep=True)
        return torch.cat([_present(parameter.grad).flatten() for parameter in setting.shared])

    def step() -> None:
        rows = torch.stack([gradient(loss) for loss in losses().values()]).cpu().numpy()
        guide = gradient(setting.uncertainty(setting.encoder(setting.held_out))).cpu().numpy()
        found = SOLVERS["cvxpy+GLPK, float32"](Programme("dom", rows, guide))
        setting.optimiser.zero_grad()
        again = losses()
        _backward(_weighted(again.values(), 3 * (np.ones(3) if found is None else found)), keep=True)
        for parameter in heads:
            parameter.grad = None
        _backward(again["source"] + again["alignment"])

    return step


def naive(setting: Setting) -> Step:
    """What one writes first: m products on the joint graph, one on the guide's, and a matrix of all gradients."""
    scheme = ParetoPaper()

    def gradient(loss: Tensor) -> Tensor:
        tensors = torch.autograd.grad(loss, setting.shared, retain_graph=True)
        return torch.cat([tensor.flatten() for tensor in tensors])

    def step() -> None:
        features = encode(setting.encoder, setting.source, setting.target, bn="joint")
        losses = setting.losses(*features)
        guide = setting.uncertainty(encode_held_out(setting.encoder, setting.held_out))
        matrix = torch.stack([gradient(loss) for loss in [*losses.values(), guide]])
        gram = (matrix @ matrix.T).double().numpy()
        alpha = scheme(_problem(gram, losses.values(), guide)).alpha
        direction = 3 * torch.tensor(alpha).float() @ matrix[:3]
        pieces = torch.split(direction, [parameter.numel() for parameter in setting.shared])
        for parameter, piece in zip(setting.shared, pieces, strict=True):
            parameter.grad = piece.view_as(parameter)
        _heads(setting, *features)

    return step


def torchjd(setting: Setting) -> Step:
    """TorchJD's `mtl_backward`, one row at a time, the guide being a row of weight 0."""
    aggregation, autojac = import_module("torchjd.aggregation"), import_module("torchjd.autojac")
    scheme = ParetoPaper()
    seen: list[Tensor] = []

    class Weighting(aggregation.Weighting):  # type: ignore[misc, name-defined]
        def forward(self, gramian: Tensor, /) -> Tensor:
            weights = scheme(_problem(gramian.double().numpy(), seen[:-1], seen[-1]))
            return torch.cat([3 * torch.tensor(weights.alpha), torch.zeros(1)]).to(gramian)

    aggregator = aggregation.GramianWeightedAggregator(Weighting())

    def step() -> None:
        joint = setting.encoder(torch.cat([setting.source, setting.target]))
        source, target = joint.split(len(setting.source))
        features = [joint, encode_held_out(setting.encoder, setting.held_out)]
        seen[:] = [*setting.losses(source, target).values(), setting.uncertainty(features[1])]
        autojac.mtl_backward(seen, features, tasks_params=[[]] * 4, shared_params=setting.shared, parallel_chunk_size=1)
        autojac.jac_to_grad(setting.shared, aggregator)
        _heads(setting, source, target)

    return step


def _heads(setting: Setting, source: Tensor, target: Tensor) -> None:
    """Gradients of the classifier and the discriminator, on detached features."""
    _backward(cross_entropy(setting.classifier(source.detach()), setting.labels) + setting.adversary(source, target))


def _problem(gram: Matrix, losses: Iterable[Tensor], guide: Tensor) -> Problem:
    """The last row of the Gram matrix is the guide's."""
    products = Guide(gram[:-1, -1], square=float(gram[-1, -1]), loss=guide.item())
    return Problem(gram[:-1, :-1], np.array([loss.item() for loss in losses]), products)


def _backward(loss: Tensor, *, keep: bool = False) -> None:
    loss.backward(retain_graph=keep)  # type: ignore[no-untyped-call]


def _weighted(losses: Iterable[Tensor], weights: Vector) -> Tensor:
    return torch.stack([float(weight) * loss for weight, loss in zip(weights, losses, strict=True)]).sum()


def _present(gradient: Tensor | None) -> Tensor:
    if gradient is None:
        raise RuntimeError("a parameter of the benchmark has no gradient")
    return gradient
