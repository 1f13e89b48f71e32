"""Features and logits of whole sets, in evaluation mode, without gradients, in the order of the set."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import overload

import torch
from torch import Tensor, nn

from paretoda.types import Model, Source, Target


@contextmanager
def evaluation_mode(module: nn.Module) -> Iterator[None]:
    """Inside, every layer is in evaluation mode and nothing is recorded; afterwards each has the mode that it had.

    Examples:
        >>> layer = nn.Dropout()
        >>> with evaluation_mode(layer):
        ...     layer.training
        False
        >>> layer.training
        True
    """
    before = [(layer, layer.training) for layer in module.modules()]
    try:
        module.eval()
        with torch.no_grad():
            yield
    finally:
        for layer, training in before:
            layer.training = training


def predict(model: Model, batches: Iterable[Tensor], *, device: torch.device | str = "cpu") -> tuple[Tensor, Tensor]:
    """Features (n, d) and logits (n, K) of all batches, on the CPU.

    Args:
        model: Model, already on `device`; its mode is restored, layer by layer.
        batches: Inputs, shape (b, ...) each; at least one sample in all.
        device: Device that the batches are sent to.

    Returns:
        The features and the logits.

    Raises:
        ValueError: There is no batch.

    Examples:
        >>> features, logits = predict(Model(nn.Linear(4, 8), nn.Linear(8, 3)), [torch.randn(5, 4)])
        >>> features.shape, logits.shape
        (torch.Size([5, 8]), torch.Size([5, 3]))
    """
    features, logits = [], []
    with evaluation_mode(model):
        for inputs in batches:
            rows = model.encoder(inputs.to(device))
            features.append(rows.cpu())
            logits.append(model.head(rows).cpu())
    if not features:
        raise ValueError("there is nothing to predict: no batch was given")
    return torch.cat(features), torch.cat(logits)


@overload
def domain_outputs(
    model: Model, batches: Iterable[Tensor], labels: Tensor, *, device: torch.device | str = "cpu"
) -> Source: ...
@overload
def domain_outputs(
    model: Model, batches: Iterable[Tensor], labels: None = None, *, device: torch.device | str = "cpu"
) -> Target: ...
def domain_outputs(
    model: Model, batches: Iterable[Tensor], labels: Tensor | None = None, *, device: torch.device | str = "cpu"
) -> Source | Target:
    """One whole set for a `Snapshot`: a `Source` if labels are given, otherwise a `Target`.

    Args:
        model: Model, already on `device`.
        batches: Inputs of the set in its order, shape (b, ...) each.
        labels: Labels of the source, shape (n,); a target has none.
        device: Device that the batches are sent to; the results are on the CPU.

    Raises:
        ValueError: The numbers of samples and labels differ.
    """
    features, logits = predict(model, batches, device=device)
    index = torch.arange(len(features))
    if labels is None:
        return Target(features, logits, index)
    if len(labels) != len(features):
        raise ValueError(f"{len(features)} samples and {len(labels)} labels: there must be as many of both")
    return Source(features, logits, index, labels=labels.cpu())
