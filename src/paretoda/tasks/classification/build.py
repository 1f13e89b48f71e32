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
from paretoda.objectives.parts.one_source import OneSource
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
        sources=settings.sources,
        skip_bad=settings.skip_bad,
        reading=Reading(settings.workers, settings.index_cache),
    )


def _channels(backbone: Backbone | None) -> Literal[1, 3] | None:
    if backbone is None or not backbone.photos:
        return None
    return 1 if backbone.channels == 1 else 3


def make_classifier(settings: Settings, pair: DomainPair) -> Classifier:
    """Make the network; its new layers are drawn from the seed."""
    preferred = _name_losses(settings, pair) if STRATEGIES.get(settings.scheme) is Hypernetwork else ()
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
        losses=preferred,
    )


def _name_losses(settings: Settings, pair: DomainPair) -> tuple[str, ...]:
    """Return the names of the objectives that the run will have."""
    if pair.source_count == 1:
        return settings.losses
    objectives = make_objectives(settings, 2, _class_shares(settings, pair), pair.kind, pair.source_count)
    return tuple(objectives) + ((LABELS,) if settings.label_loss else ())


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


def make_objectives(
    settings: Settings, width: int, shares: Tensor, kind: str = "images", sources: int = 1
) -> dict[str, Objective]:
    """Make the source, alignment and target losses that the settings name.

    Args:
        settings: Settings of the run.
        width: Width of the features.
        shares: Class frequencies in the source's batches, shape (K,).
        kind: Kind of the data that the network reads.
        sources: Number of sources that are domains of their own.
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
    losses = {} if settings.from_run is not None else _make_source_losses(settings, shape, options, sources)
    for part, name in settings.target_losses.items():
        loss = make_target_loss(name, **shape, options=with_prior(name, options[part], lambda: shares, "uniform"))
        if loss is not None:
            losses[part] = loss
    return losses


def _make_source_losses(
    settings: Settings, shape: dict[str, int], options: dict[str, dict[str, Any]], sources: int
) -> dict[str, Objective]:
    """Make the source loss and the alignment; of each source, with its number, where there are several.

    Args:
        settings: Settings of the run.
        shape: Width of the features and number of classes.
        options: Options of the parts.
        sources: Number of sources that are domains of their own.
    """
    smoothing = {"smoothing": settings.label_smoothing} if settings.label_smoothing else {}

    def one_source() -> dict[str, Objective]:
        losses: dict[str, Objective] = {"source": CrossEntropy(**shape, smoothing=settings.label_smoothing)}
        own = {**smoothing, **options["alignment"]} if settings.method == "mdan" else options["alignment"]
        alignment = make_alignment(settings.method, **shape, sources=sources, options=own)
        if alignment is not None and alignment.is_whole_method:
            return {"source": alignment}
        if alignment is not None and alignment.reads_all_sources and settings.joined and sources > 1:
            raise SettingsError(f"the method {settings.method!r} aligns all sources at once; leave out --joined")
        losses |= {} if alignment is None else {"alignment": alignment}
        return merge_source_and_alignment(losses) if settings.joined else losses

    every = [one_source() for _ in range(sources)]
    if sources == 1 or every[0]["source"].reads_all_sources:
        return every[0]
    separate: dict[str, Objective] = {
        f"{name}-{number}": OneSource(loss, number - 1)
        for number, losses in enumerate(every, start=1)
        for name, loss in losses.items()
        if not loss.reads_all_sources
    }
    return separate | {name: loss for name, loss in every[0].items() if loss.reads_all_sources}


def _class_shares(settings: Settings, pair: DomainPair) -> Tensor:
    """Return how frequent each class is in the source's batches, which have as many samples of every source."""
    shares = []
    for block in pair.source_blocks(pair.source_train):
        counts = torch.from_numpy(pair.labels[block]).bincount(minlength=len(pair.classes)).double()
        counts = (counts > 0).double() if settings.class_balanced else counts
        shares.append(counts / counts.sum())
    return torch.stack(shares).mean(0)


def build(settings: Settings, pair: DomainPair, device: torch.device) -> Step:
    """Build the step of a classification run, before training."""
    model = make_classifier(settings, pair) if settings.from_run is None else _begin_with(settings.from_run, settings)
    width, classes = model.architecture.width, len(pair.classes)
    objectives = make_objectives(settings, width, _class_shares(settings, pair), pair.kind, pair.source_count)
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
