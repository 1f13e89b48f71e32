"""From settings to the objects of a run: data, networks, objectives, scheme, optimiser, step."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Literal

import torch
from torch import Tensor

from paretoda.core.problem import reads_guide
from paretoda.data import DomainPair, PairSettings
from paretoda.data.prefetching import Reading
from paretoda.data.segmentation import ScenePair
from paretoda.distributed.collectives import SINGLE_PROCESS, Processes
from paretoda.errors import SettingsError
from paretoda.models.backbones import NAMES, default_backbone, find_backbone
from paretoda.models.backbones.backbone import Backbone
from paretoda.models.classifier import Classifier, make_model, parameter_groups
from paretoda.objectives import CrossEntropy, make_alignment, make_guide, make_target_loss
from paretoda.objectives.parts.sum_objective import merge_source_and_alignment
from paretoda.run.build import assemble_step, check_batch_split, check_kind, make_scheme, with_prior
from paretoda.run.settings import Settings
from paretoda.tasks.segmentation.build import make_scene_step
from paretoda.training.seeding import isolated_rng, seed_everything
from paretoda.training.step import Step
from paretoda.training.strategies import STRATEGIES, Hypernetwork
from paretoda.types import Objective


def pick_device(name: str) -> torch.device:
    """The device of that name; "auto" takes a GPU where there is one."""
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        device = torch.device(name)
        torch.empty(1, device=device)
    except (RuntimeError, AssertionError, NotImplementedError) as error:
        raise SettingsError(f"the device {name!r} cannot be used here ({str(error).splitlines()[0]})") from error
    return device


def pair_settings(settings: Settings) -> PairSettings:
    """What the data need to know; a backbone with weights wants its own normalisation and three channels."""
    known = None if settings.backbone in ("auto", NAMES[0]) else find_backbone(settings.backbone)
    photos = known is not None and known.photos
    return PairSettings(
        seed=settings.seed,
        batch_size=settings.batch_size,
        held_out=settings.held_out,
        scaling=settings.scaling,
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
    """The network, its new layers drawn from the seed."""
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
        dropout=_or(settings.dropout, 0.5 if features else 0.0),
        weights=None if features else settings.backbone_weights,
        losses=settings.losses if STRATEGIES.get(settings.scheme) is Hypernetwork else (),
    )


def _check_no_backbone(settings: Settings) -> None:
    """Features are read by an MLP: a backbone that would go unused is refused."""
    if settings.backbone not in ("auto", "mlp"):
        raise SettingsError(f"{settings.backbone} reads images, the data are features; leave out --backbone")
    if settings.backbone_weights is not None:
        raise SettingsError("the data are features, no backbone reads them; leave out --backbone-weights")


def make_objectives(settings: Settings, width: int, shares: Tensor) -> dict[str, Objective]:
    """Source, alignment and target loss, as far as the settings want them.

    Args:
        settings: of the run.
        width: of the features.
        shares: how frequent the classes are in the source's batches, shape (K,).
    """
    seed_everything(settings.seed, "objectives")
    options = settings.part_options
    shape = {"features": width, "classes": len(shares)}
    made = {
        "source": CrossEntropy(**shape, smoothing=settings.label_smoothing),
        "alignment": make_alignment(settings.method, **shape, options=options["alignment"]),
        **{
            part: make_target_loss(name, **shape, options=with_prior(name, options[part], lambda: shares, "uniform"))
            for part, name in settings.target_losses.items()
        },
    }
    objectives = {name: objective for name, objective in made.items() if objective is not None}
    return merge_source_and_alignment(objectives) if settings.joined else objectives


def _shares(settings: Settings, pair: DomainPair) -> Tensor:
    """How frequent each class is in the source's batches."""
    counts = pair.labels_of("source").bincount(minlength=len(pair.classes)).double()
    counts = (counts > 0).double() if settings.class_balanced else counts
    return counts / counts.sum()


def _or(given: float | None, usual: float) -> float:
    return usual if given is None else given


def make_step(
    settings: Settings, pair: DomainPair | ScenePair, device: torch.device, processes: Processes = SINGLE_PROCESS
) -> Step:
    """The step of a run, at its beginning; its networks are drawn from the seed, whatever was drawn before."""
    check_kind(settings, pair.kind)
    try:
        with isolated_rng(device):
            if isinstance(pair, ScenePair):
                step = make_scene_step(settings, pair, device)
            else:
                step = _make_step(settings, pair, device)
        if processes.size == 1:
            return step
        check_batch_split(settings, pair, step.guide is not None, processes)
        return replace(step, processes=processes, sync_bn=settings.sync_bn)
    except (ValueError, TypeError) as error:
        if settings.options:  # a value that a part refuses
            raise SettingsError(f"{', '.join(settings.options)}: {error}") from error
        if settings.scheme in STRATEGIES:  # losses that it cannot be used with
            raise SettingsError(str(error)) from error
        raise


def _make_step(settings: Settings, pair: DomainPair, device: torch.device) -> Step:
    model = make_classifier(settings, pair)
    width, classes = model.architecture.width, len(pair.classes)
    objectives = make_objectives(settings, width, _shares(settings, pair))
    scheme = make_scheme(settings)
    guide = None
    if reads_guide(scheme):
        guide = make_guide(
            settings.guide,
            features=width,
            classes=classes,
            target_loss=objectives.get("target"),
            options=settings.part_options["guide"],
        )
    for module in [model, *objectives.values(), *([guide] if guide is not None else [])]:
        module.to(device)
    lr = _or(settings.lr, 0.1 if pair.kind == "features" else 0.01)
    groups: list[dict[str, Any]] = parameter_groups(model, lr)
    own = [parameter for objective in objectives.values() for parameter in objective.parameters()]
    if own:
        groups.append({"params": own, "lr": lr, "name": "objectives"})
    optimiser = torch.optim.SGD(
        groups,
        lr=lr,
        momentum=settings.momentum,
        weight_decay=settings.weight_decay,
        nesterov=settings.momentum > 0,
        fused=True,
    )
    return assemble_step(settings, model, objectives, scheme, guide, optimiser)
