"""From settings to the parts of a classification run: network, objectives, optimiser, step."""

from __future__ import annotations

from typing import Any, Literal

import torch
from torch import Tensor

from paretoda.core.options import with_options
from paretoda.data import DomainPair, PairSettings
from paretoda.data.prefetching import Reading
from paretoda.errors import SettingsError
from paretoda.models.backbones import NAMES, default_backbone, find_backbone
from paretoda.models.backbones.backbone import Backbone
from paretoda.models.classifier import Classifier, make_model, parameter_groups
from paretoda.objectives import CrossEntropy, make_alignment, make_guide, make_target_loss
from paretoda.objectives.parts.label_sets import make_label_set_weights
from paretoda.objectives.parts.sum_objective import merge_source_and_alignment
from paretoda.objectives.target_labels import TargetLabels
from paretoda.run.build import assemble_step, with_prior
from paretoda.run.settings import LABELS, Settings
from paretoda.tasks.classification.given_run import BEGUN, load_given_run
from paretoda.tasks.classification.label_sets import PART_OPTIONS
from paretoda.training.optimisers import SGD
from paretoda.training.seeding import seed_everything
from paretoda.training.step import Step
from paretoda.training.strategies import STRATEGIES, Hypernetwork
from paretoda.types import Objective

_NARROW: dict[str, dict[str, int]] = {"tcm": {"width": 64}}
"""Options of target losses on feature data: as accurate as the default there, at five sixths of the time of a step."""


def make_pair_settings(settings: Settings) -> PairSettings:
    """Return the settings of the pair; a backbone with weights has its own normalisation and three channels."""
    known = None if settings.backbone in ("auto", NAMES[0]) else find_backbone(settings.backbone)
    photos = known is not None and known.photos
    return PairSettings(
        seed=settings.seed,
        batch_size=settings.batch_size,
        held_out=settings.held_out,
        scaling=settings.scaling,
        components=settings.components,
        split_seed=settings.split_seed,
        image_size=settings.image_size or (None if known is None else known.size),
        channels=_channels(known),
        normalise=(known.mean, known.std) if known is not None and photos else None,
        augment="none" if settings.frozen else settings.augment,
        class_balanced=settings.class_balanced,
        skip_bad=settings.skip_bad,
        reading=Reading(settings.workers, settings.index_cache),
    )


def _channels(backbone: Backbone | None) -> Literal[1, 3] | None:
    if backbone is None or not backbone.photos:
        return None
    return 1 if backbone.channels == 1 else 3


def make_classifier(settings: Settings, pair: DomainPair) -> Classifier:
    """Make the network; its new layers are drawn from the seed."""
    seed_everything(settings.seed, "network")
    features = pair.kind == "features"
    if features and not settings.frozen:
        _check_no_backbone(settings)
    name = settings.backbone
    if features or name == "auto":
        name = default_backbone(pair.input_shape)
    return make_model(
        name,
        pair.input_shape,
        len(pair.classes),
        bottleneck=settings.bottleneck,
        dropout=(0.5 if features else 0.0) if settings.dropout is None else settings.dropout,
        weights=None if features else settings.backbone_weights,
        losses=settings.losses if STRATEGIES.get(settings.scheme) is Hypernetwork else (),
    )


def _begin_with(run: str, settings: Settings) -> Classifier:
    """Return the network of a finished run; its head stays as it is where no objective reaches it.

    Args:
        run: Directory of the run.
        settings: Settings of the run that begins with it.
    """
    model = load_given_run(run).model
    model.pretrained = True
    if settings.head_losses == ():
        model.head.requires_grad_(False)
    return model


def _check_no_backbone(settings: Settings) -> None:
    """Refuse a backbone that would not be used: features are read by an MLP."""
    if settings.backbone not in ("auto", "mlp"):
        raise SettingsError(f"{settings.backbone} reads images, the data are features; leave out --backbone")
    if settings.backbone_weights is not None:
        raise SettingsError("the data are features, no backbone reads them; leave out --backbone-weights")


def make_objectives(settings: Settings, width: int, shares: Tensor, kind: str = "images") -> dict[str, Objective]:
    """Make the source, alignment and target losses that the settings name.

    Args:
        settings: Settings of the run.
        width: Width of the features.
        shares: Class frequencies in the source's batches, shape (K,).
        kind: Kind of the data that the network reads.
    """
    seed_everything(settings.seed, "objectives")
    options = settings.part_options
    if kind == "features":
        for part, name in settings.target_losses.items():
            options[part] = {**_NARROW.get(name, {}), **options[part]}
    if settings.from_run is not None:
        for part, name in settings.target_losses.items():
            options[part] = {**BEGUN.get(name, {}), **options[part]}
    for part, name in settings.target_losses.items():
        options[part] = {**PART_OPTIONS.get(settings.label_sets, {}).get(name, {}), **options[part]}
    shape = {"features": width, "classes": len(shares)}
    made = {
        "source": CrossEntropy(**shape, smoothing=settings.label_smoothing),
        "alignment": make_alignment(settings.method, **shape, options=options["alignment"]),
        **{
            part: make_target_loss(name, **shape, options=with_prior(name, options[part], lambda: shares, "uniform"))
            for part, name in settings.target_losses.items()
        },
    }
    if settings.from_run is not None:
        made["source"] = None
    objectives = {name: objective for name, objective in made.items() if objective is not None}
    return merge_source_and_alignment(objectives) if settings.joined else objectives


def _class_shares(settings: Settings, pair: DomainPair) -> Tensor:
    """Return how frequent each class is in the source's batches."""
    counts = pair.labels_of("source").bincount(minlength=len(pair.classes)).double()
    counts = (counts > 0).double() if settings.class_balanced else counts
    return counts / counts.sum()


def build(settings: Settings, pair: DomainPair, device: torch.device) -> Step:
    """Build the step of a classification run, before training."""
    model = make_classifier(settings, pair) if settings.from_run is None else _begin_with(settings.from_run, settings)
    width, classes = model.architecture.width, len(pair.classes)
    objectives = make_objectives(settings, width, _class_shares(settings, pair), pair.kind)
    if settings.label_loss:
        shape = {"features": width, "classes": classes}
        objectives[LABELS] = with_options(LABELS, TargetLabels, shape, settings.part_options[LABELS])

    def guide() -> Objective:
        if settings.guide == LABELS:
            return TargetLabels(width, classes, strength=1.0)
        return make_guide(
            settings.guide,
            features=width,
            classes=classes,
            target_loss=objectives.get(settings.guide_part),
            options=settings.part_options["guide"],
        )

    def optimiser() -> torch.optim.Optimizer:
        return make_optimiser(settings, model, objectives, default_lr=0.1 if pair.kind == "features" else 0.01)

    return assemble_step(
        settings,
        model,
        objectives,
        device,
        make_guide=guide,
        make_optimiser=optimiser,
        weights=make_label_set_weights(settings.label_sets, classes),
    )


def make_optimiser(
    settings: Settings, model: Classifier, objectives: dict[str, Objective], default_lr: float
) -> torch.optim.Optimizer:
    """Make SGD with Nesterov momentum for the network and for the objectives' own networks."""
    lr = default_lr if settings.lr is None else settings.lr
    groups: list[dict[str, Any]] = parameter_groups(model, lr)
    own = [parameter for objective in objectives.values() for parameter in objective.parameters()]
    if own:
        groups.append({"params": own, "lr": lr, "name": "objectives"})
    return SGD(
        groups,
        lr=lr,
        momentum=settings.momentum,
        weight_decay=settings.weight_decay,
        nesterov=settings.momentum > 0,
        fused=True,
    )
