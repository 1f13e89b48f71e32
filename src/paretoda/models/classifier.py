"""Classifier: backbone, bottleneck and a linear head, and the description that rebuilds it for prediction."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from math import prod
from pathlib import Path
from typing import Any, Literal

import torch
from torch import nn

from paretoda.models.backbones import check_backbone, describe_external, feature_width, make_backbone
from paretoda.models.backbones.small import mlp
from paretoda.models.ensemble import MeanHead, ParallelEncoders
from paretoda.models.hypernetwork import Hypernetwork, Modulation, PreferredHead
from paretoda.models.weights import RANDOM
from paretoda.types import Model

_HIDDEN = 512
_BACKBONE = "encoder.backbone."


@dataclass(frozen=True)
class Architecture:
    """Everything needed to build the network again; `describe` is its JSON form.

    Args:
        backbone: Name in `paretoda.models.backbones.NAMES`, or of an external network.
        input_shape: Shape of one sample: (d,), or (channels, h, w).
        classes: Number of classes K; 1 for a network that predicts a value.
        bottleneck: Width of the features that head and alignment see; 0: those of the backbone itself.
        norm: "batch": BatchNorm in the bottleneck (and in the MLP); "none": no normalisation.
        dropout: Share of features that dropout leaves out behind the bottleneck (and in the MLP) in training.
        losses: Names of the losses that a preference weighs, which features and head then follow; empty: no preference.
        members: Number of such networks, each with its own weights, whose mean is predicted.
        facts: Description that rebuilds an external backbone (`describe_external`); None for others.

    Raises:
        ValueError: The backbone is unknown or cannot read such samples, or a number is out of its range.

    Examples:
        >>> Architecture("mlp", input_shape=(20,), classes=3).width
        256
    """

    backbone: str
    input_shape: tuple[int, ...]
    classes: int
    bottleneck: int = 256
    norm: Literal["batch", "none"] = "batch"
    dropout: float = 0.0
    losses: tuple[str, ...] = ()
    members: int = 1
    facts: Mapping[str, Any] | None = None

    def __post_init__(self) -> None:
        check_backbone(self.backbone, self.input_shape, self.facts)
        if self.classes < 1:
            raise ValueError(f"a network needs at least one output, got {self.classes}")
        if self.bottleneck < 0:
            raise ValueError(f"the bottleneck must be 0 (none) or more wide, got {self.bottleneck}")
        if self.members < 1:
            raise ValueError(f"there must be at least one member, got {self.members}")

    @property
    def width(self) -> int:
        """Width of the features that head and alignment see, those of one member."""
        return self.bottleneck or (_HIDDEN if self.backbone == "mlp" else feature_width(self.backbone, self.facts))


class Classifier(Model):
    """`Model` that knows its architecture and whether its backbone has loaded weights.

    New linear layers start with Xavier-normal weights and zero biases.

    Args:
        architecture: Architecture to build.
        weights: Weights of the backbone, as for `make_backbone`; None for random weights.
    """

    def __init__(self, architecture: Architecture, weights: str | Path | None = None) -> None:
        super().__init__(*_networks(architecture, weights))
        self.architecture = architecture
        self.pretrained = weights is not None and weights != RANDOM
        for name, layer in self.named_modules():
            if isinstance(layer, nn.Linear) and not name.startswith(_BACKBONE):
                nn.init.xavier_normal_(layer.weight)
                nn.init.zeros_(layer.bias)

    def prefer(self, preference: Sequence[float]) -> None:
        """Become the network of this preference.

        Args:
            preference: Weight of each loss, in the order of `architecture.losses`; only proportions matter.

        Raises:
            ValueError: The network follows no preference, or the preference is not valid.
        """
        names = self.architecture.losses
        if not names:
            raise ValueError("this network follows no preference: train one with --scheme hypernetwork")
        given = torch.tensor(list(preference), dtype=torch.float64)
        wrong = f"a preference has a number for each of {', '.join(names)}, none negative and not all 0"
        if len(given) != len(names) or not bool(given.isfinite().all() and (given >= 0).all() and given.sum() > 0):
            raise ValueError(f"{wrong}; got {', '.join(f'{value:g}' for value in given.tolist()) or 'nothing'}")
        for part in self.modules():
            if isinstance(part, Hypernetwork):
                part.prefer(given / given.sum())


def join_classifiers(models: Sequence[Classifier]) -> Classifier:
    """Return the classifier that predicts the mean of these; it is made of their own networks, not of copies.

    Args:
        models: Classifiers of one architecture.

    Examples:
        >>> two = join_classifiers([make_model("mlp", (20,), classes=3) for _ in range(2)])
        >>> two(torch.randn(5, 20)).shape
        torch.Size([5, 3])
    """
    joined = Classifier.__new__(Classifier)
    encoders, heads = [model.encoder for model in models], [model.head for model in models]
    Model.__init__(joined, ParallelEncoders(encoders), MeanHead(heads))
    joined.architecture = replace(models[0].architecture, members=len(models))
    joined.pretrained = models[0].pretrained
    return joined


def _networks(architecture: Architecture, weights: str | Path | None) -> tuple[nn.Module, nn.Module]:
    """Return encoder and head, of all members where there are several."""
    if architecture.members == 1:
        return _encoder(architecture, weights), _head(architecture)
    members = [(_encoder(architecture, weights), _head(architecture)) for _ in range(architecture.members)]
    return ParallelEncoders([encoder for encoder, _ in members]), MeanHead([head for _, head in members])


def _encoder(architecture: Architecture, weights: str | Path | None) -> nn.Sequential:
    name, width, facts = architecture.backbone, architecture.bottleneck, architecture.facts
    widths = (width,) if width else ()
    if name == "mlp":
        if weights is not None and weights != RANDOM:
            raise ValueError("'mlp' has no backbone that could read weights; leave them out or choose a backbone")
        body = mlp(
            prod(architecture.input_shape), (_HIDDEN, *widths), norm=architecture.norm, dropout=architecture.dropout
        )
        return nn.Sequential(OrderedDict(flatten=nn.Flatten(), bottleneck=body, **_modulation(architecture)))
    parts = OrderedDict[str, nn.Module](backbone=make_backbone(name, architecture.input_shape, weights, facts))
    if widths:
        parts["bottleneck"] = mlp(
            feature_width(name, facts), widths, norm=architecture.norm, dropout=architecture.dropout
        )
    parts.update(_modulation(architecture))
    return nn.Sequential(parts)


def _modulation(architecture: Architecture) -> dict[str, nn.Module]:
    losses = len(architecture.losses)
    return {"modulation": Modulation(losses, architecture.width)} if losses else {}


def _head(architecture: Architecture) -> nn.Module:
    if architecture.losses:
        return PreferredHead(len(architecture.losses), architecture.width, architecture.classes)
    return nn.Linear(architecture.width, architecture.classes)


def make_model(
    backbone: str,
    input_shape: tuple[int, ...],
    classes: int,
    *,
    bottleneck: int | None = None,
    dropout: float = 0.0,
    weights: str | Path | None = None,
    losses: Sequence[str] = (),
) -> Classifier:
    """Build a classifier from the name of its backbone.

    Args:
        backbone: Name of the backbone.
        input_shape: Shape of one sample.
        classes: Number of classes K.
        bottleneck: Width of the bottleneck; None: LeNet's own hidden layer of 500, and a layer of 256 for all others.
        dropout: Share of features that dropout leaves out behind the bottleneck.
        weights: Weights of the backbone: a file, a folder, a name at the hub, or "default"; None or "none" for random
            ones.
        losses: Names of the losses that a preference weighs.

    Returns:
        The classifier.

    Raises:
        ValueError: The backbone is unknown, or an argument is out of its range.

    Examples:
        >>> model = make_model("mlp", (20,), classes=3)
        >>> model(torch.randn(5, 20)).shape
        torch.Size([5, 3])
    """
    if bottleneck is None:
        bottleneck = 0 if backbone == "lenet" else 256
    shape = tuple(input_shape)
    facts = describe_external(backbone, shape)
    return Classifier(
        Architecture(backbone, shape, classes, bottleneck, dropout=dropout, losses=tuple(losses), facts=facts), weights
    )


def describe(model: Classifier) -> dict[str, Any]:
    """Return the architecture as plain JSON values; `from_description` reads it back.

    Examples:
        >>> describe(make_model("mlp", (20,), classes=3))["backbone"]
        'mlp'
    """
    lists = {"input_shape": list(model.architecture.input_shape), "losses": list(model.architecture.losses)}
    found = asdict(model.architecture) | lists
    return {key: value for key, value in found.items() if (key, value) not in (("facts", None), ("members", 1))}


def from_description(description: Mapping[str, Any]) -> Classifier:
    """Build the network of that description with random weights, into which its state is loaded next.

    Raises:
        ValueError: The description has unknown or missing entries.
    """
    known = {field.name for field in fields(Architecture)}
    if strange := sorted(set(description) - known) + sorted({"backbone", "input_shape", "classes"} - set(description)):
        raise ValueError(f"not the description of a model: {', '.join(strange)} unknown or missing")
    values = dict(description)
    values["input_shape"] = tuple(int(size) for size in description["input_shape"])
    values["losses"] = tuple(str(name) for name in description.get("losses", ()))
    if not isinstance(values.get("facts", {}), dict):
        raise ValueError("not the description of a model: its facts are no names and values")
    return Classifier(Architecture(**values))


def parameter_groups(model: Model, lr: float, *, backbone: float = 0.1) -> list[dict[str, Any]]:
    """Optimiser groups: a backbone with loaded weights learns at a tenth of the rate, new layers at the full rate.

    Args:
        model: Model; with random weights everywhere it is one group.
        lr: Learning rate of the new layers.
        backbone: Factor of the learning rate for the backbone.

    Returns:
        Groups for a torch optimiser, each with its name.

    Examples:
        >>> [group["name"] for group in parameter_groups(make_model("mlp", (20,), classes=3), lr=0.01)]
        ['new']
    """
    old: list[nn.Parameter] = []
    new: list[nn.Parameter] = []
    for name, parameter in model.named_parameters():
        slow = getattr(model, "pretrained", False) and name.startswith(_BACKBONE)
        (old if slow else new).append(parameter)
    groups = [{"params": old, "lr": lr * backbone, "name": "backbone"}, {"params": new, "lr": lr, "name": "new"}]
    return [group for group in groups if group["params"]]
