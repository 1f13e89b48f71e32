"""Snapshots with known properties: what the model predicts is said, and the model really predicts it."""

from collections.abc import Iterator

import torch
from torch import Tensor, nn

from paretoda.types import Model, Snapshot, Source, Target


def linear_model(width: int, classes: int, weight: Tensor | None = None) -> Model:
    """The features are the inputs, the head is linear."""
    head = nn.Linear(width, classes, bias=False)
    if weight is not None:
        head = head.to(weight.dtype)
        head.weight.data.copy_(weight)
    return Model(nn.Identity(), head).eval()


def from_features(
    source: tuple[Tensor, Tensor], held_out: tuple[Tensor, Tensor], target: Tensor, model: Model, batch: int = 7
) -> Snapshot:
    """A snapshot of these features (n, d) and labels (n,) under a model whose encoder is the identity."""

    def outputs(features: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        with torch.no_grad():
            return features, model.head(features), torch.arange(len(features))

    def inputs() -> Iterator[Tensor]:
        return iter(target.split(batch))

    return Snapshot(
        Source(*outputs(source[0]), labels=source[1]),
        Source(*outputs(held_out[0]), labels=held_out[1]),
        Target(*outputs(target)),
        Target(*outputs(target[:2])),
        model,
        inputs,
    )


def clusters(n: int, classes: int, scale: float, seed: int = 0, dtype: torch.dtype = torch.float32) -> Snapshot:
    """n samples per domain around K corners, the head a simplex times scale; labels in turn, so that all are used."""
    generator = torch.Generator().manual_seed(seed)
    corners = torch.eye(classes, dtype=dtype)

    def draw(count: int) -> tuple[Tensor, Tensor]:
        labels = torch.arange(count) % classes
        noise = torch.randn(count, classes, generator=generator, dtype=dtype)
        return corners[labels] + 0.02 * noise, labels

    held_out = max(1, n // 5)
    return from_features(
        draw(n), draw(held_out), draw(n)[0], linear_model(classes, classes, scale * (corners - 1 / classes))
    )


def noise(n: int, classes: int, seed: int = 0) -> Snapshot:
    """Predictions that are uniform but for small noise, and labels that have nothing to do with them."""
    generator = torch.Generator().manual_seed(seed)

    def draw(count: int) -> tuple[Tensor, Tensor]:
        labels = torch.randint(classes, (count,), generator=generator)
        return torch.randn(count, classes, generator=generator), labels

    weight = 0.1 * torch.randn(classes, classes, generator=generator)
    return from_features(draw(n), draw(max(1, n // 5)), draw(n)[0], linear_model(classes, classes, weight))


def collapsed(n: int, classes: int, scale: float) -> Snapshot:
    """All samples in one point, all predicted as class 0 with the given logit."""
    point = torch.zeros(n, classes)
    point[:, 0] = 1
    labels = torch.arange(n) % classes
    return from_features(
        (point, labels), (point[:1], labels[:1]), point, linear_model(classes, classes, scale * torch.eye(classes))
    )


def permuted(snapshot: Snapshot, seed: int = 1) -> Snapshot:
    """The same samples in another order, their indices with them."""
    generator = torch.Generator().manual_seed(seed)

    def shuffle(domain, order):
        fields = {"labels": domain.labels[order]} if isinstance(domain, Source) else {}
        return type(domain)(domain.features[order], domain.logits[order], domain.index[order], **fields)

    def order(domain):
        return torch.randperm(len(domain.index), generator=generator)

    target_order = order(snapshot.target)
    inputs = torch.cat(list(snapshot.target_inputs()))[target_order]
    return Snapshot(
        shuffle(snapshot.source, order(snapshot.source)),
        shuffle(snapshot.held_out_source, order(snapshot.held_out_source)),
        shuffle(snapshot.target, target_order),
        snapshot.held_out_target,
        snapshot.model,
        lambda: iter(inputs.split(5)),
    )
