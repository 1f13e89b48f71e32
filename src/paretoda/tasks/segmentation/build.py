"""From settings to the parts of a segmentation run: network, objectives, optimiser, step."""

from __future__ import annotations

import copy
import math
from typing import Any

import torch

from paretoda.core.options import with_options
from paretoda.data.segmentation import ScenePair
from paretoda.errors import SettingsError
from paretoda.evaluation.predictions import evaluation_mode
from paretoda.models.segmentation.backbones import SMALL
from paretoda.models.segmentation.segmenter import Segmenter, make_segmenter, segmenter_groups
from paretoda.objectives.parts.sum_objective import merge_source_and_alignment
from paretoda.objectives.segmentation import (
    PixelCrossEntropy,
    PixelLabels,
    make_pixel_guide,
    make_pixel_method,
    make_pixel_target_loss,
)
from paretoda.objectives.segmentation.map_adversary import FEWER_LAYERS
from paretoda.run.build import assemble_step, with_prior
from paretoda.run.settings import LABELS, Settings
from paretoda.tasks.segmentation.given_run import load_given_run
from paretoda.training.optimisers import SGD, OptimiserGroup
from paretoda.training.seeding import seed_everything
from paretoda.training.step import Step
from paretoda.types import Objective

_BY_SGD = 2.5e-4
"""Learning rate of SGD, as published for DeepLab; `PixelBackbone` has Adam's."""
_ADVERSARIES_SHARE = {"adam": 1 / 3, "sgd": 0.4}
"""Optimiser -> learning rate of adversaries as a share of the network's: 1e-3 or 3e-4, and the published 1e-4."""
_GUIDE_PIXELS = 1024
"""Pixels of a step; each is compared with the whole bank of target pixels."""
_ADVERSARIES = ("adasegnet", "advent", "cycada", "clan")
_MULTI_LEVEL = ("adasegnet", "advent", "minent", "cycada")
_SELF_TRAINING = ("cbst", "crst")


def backbone_name(settings: Settings) -> str:
    """Return the name of the backbone."""
    return SMALL if settings.backbone == "auto" else settings.backbone


def make_model(settings: Settings, pair: ScenePair) -> Segmenter:
    """Make the network; its new layers are drawn from the seed."""
    seed_everything(settings.seed, "network")
    if settings.method == "clan" and settings.levels > 1:
        raise SettingsError("clan has two classifiers of one level; leave out --levels")
    return make_segmenter(
        backbone_name(settings),
        len(pair.classes),
        levels=settings.levels,
        classifiers=2 if settings.method == "clan" else 1,
        norm=settings.norm,
        weights=settings.backbone_weights,
    )


def _begin_with(run: str) -> Segmenter:
    """Return the network of a finished run."""
    model = load_given_run(run).model
    model.pretrained = True
    return model


def make_objectives(settings: Settings, pair: ScenePair, model: Segmenter) -> dict[str, Objective]:
    """Make the source, alignment and target losses that the settings name."""
    seed_everything(settings.seed, "objectives")
    options = settings.part_options
    shape = {"features": model.width, "classes": len(pair.classes)}
    made = {
        "source": None if settings.from_run is not None else _source_loss(settings, pair, shape),
        "alignment": make_pixel_method(
            settings.method, **shape, options=_alignment_options(settings, pair, model, options["alignment"])
        ),
        **{
            part: make_pixel_target_loss(name, **shape, options=_with_prior(name, settings, pair, options[part]))
            for part, name in settings.target_losses.items()
        },
    }
    objectives = {name: objective for name, objective in made.items() if objective is not None}
    return merge_source_and_alignment(objectives) if settings.joined else objectives


def _source_loss(settings: Settings, pair: ScenePair, shape: dict[str, int]) -> Objective:
    """Make the cross-entropy, of both classifiers where the method has two."""
    given = {**shape, "both": settings.method == "clan", "weights": _class_weights(settings, pair)}
    return with_options("cross-entropy", PixelCrossEntropy, given, settings.part_options["source"])


def _with_prior(name: str, settings: Settings, pair: ScenePair, options: dict[str, Any]) -> dict[str, Any]:
    """Give losses with a diversity term the frequencies that the source's loss teaches; TCM estimates the target's.

    Roads are larger than signs everywhere; class weights in the source's loss make its predictions less so.
    """

    def expected_frequencies() -> torch.Tensor:
        shares, weights = pair.source_frequencies(), _class_weights(settings, pair)
        return shares if weights is None else shares * weights

    if name == "im" and options.get("prior") == "estimated":
        raise SettingsError("for segmentation, im sees the target alone: target.prior=estimated is for tcm")
    return with_prior(name, options, expected_frequencies, "estimated" if name == "tcm" else "source")


def _class_weights(settings: Settings, pair: ScenePair) -> torch.Tensor | None:
    """Return one over the root of each class's share of source pixels, 1 on average; absent classes count as 1."""
    if settings.class_weights == "none":
        return None
    shares = pair.source_frequencies()
    weights = shares.clamp(min=1e-4).rsqrt().where(shares > 0, torch.ones_like(shares))
    return (weights / (weights * shares).sum()).float()


def _alignment_options(
    settings: Settings, pair: ScenePair, model: Segmenter, options: dict[str, Any]
) -> dict[str, Any]:
    """Add what the data determine: depth of discriminators, number of outputs, spatial priors (`priors=true`)."""
    found = dict(options)
    if settings.method in _ADVERSARIES and not found.get("enlarge"):
        found.setdefault("layers", min(FEWER_LAYERS, int(math.log2(min(map_size(pair, model))))))
    if settings.method in _MULTI_LEVEL and settings.levels > 1:
        found.setdefault("levels", settings.levels)
    if settings.method in _SELF_TRAINING and "priors" in found:
        wanted = found.pop("priors")
        if not isinstance(wanted, bool):
            raise SettingsError("alignment.priors is true or false: the priors are counted in the source's labels")
        if wanted:
            found["priors"] = pair.source_priors(*map_size(pair, model)).float()
    return found


def map_size(pair: ScenePair, model: Segmenter) -> tuple[int, int]:
    """Return height and width of the target's feature maps, without computing them."""
    encoder = copy.deepcopy(model.encoder).to("meta")
    with evaluation_mode(encoder):
        height, width = encoder(torch.zeros(1, *pair.input_shape, device="meta")).shape[-2:]
    return int(height), int(width)


def make_optimiser(settings: Settings, model: Segmenter, objectives: dict[str, Objective]) -> torch.optim.Optimizer:
    """Make the network's optimiser, and Adam for the adversaries."""
    spec = model.architecture.spec
    name = settings.optimiser or spec.optimiser
    usual = spec.adam if name == "adam" else _BY_SGD
    lr = usual if settings.lr is None else settings.lr
    groups = segmenter_groups(model, lr)
    network: torch.optim.Optimizer
    if name == "adam":
        network = torch.optim.AdamW(groups, lr=lr, weight_decay=settings.weight_decay, fused=True)
    else:
        network = SGD(groups, lr=lr, momentum=settings.momentum, weight_decay=settings.weight_decay)
    own = [parameter for objective in objectives.values() for parameter in objective.parameters()]
    if not own:
        return network
    adversaries = {"params": own, "lr": _ADVERSARIES_SHARE[name] * lr, "name": "objectives"}
    return OptimiserGroup(network, torch.optim.Adam([adversaries], betas=(0.9, 0.99), fused=True))


def build(settings: Settings, pair: ScenePair, device: torch.device) -> Step:
    """Build the step of a segmentation run, before training."""
    if settings.bn == "joint" and pair.source.transform.trained_size != pair.target.transform.size:
        raise SettingsError("source and target images differ in size and cannot be one batch: leave out --bn joint")
    model = make_model(settings, pair) if settings.from_run is None else _begin_with(settings.from_run)
    objectives = make_objectives(settings, pair, model)

    shape = {"features": model.width, "classes": len(pair.classes)}
    if settings.label_loss:
        options = settings.part_options[LABELS]
        objectives[LABELS] = with_options(LABELS, PixelLabels, shape, options)

    def guide() -> Objective:
        if settings.guide == LABELS:
            return with_options(LABELS, PixelLabels, shape, {"strength": 1.0})
        return make_pixel_guide(
            settings.guide,
            **shape,
            target_loss=objectives.get(settings.guide_part),
            options={"most": _GUIDE_PIXELS, **settings.part_options["guide"]},
        )

    def optimiser() -> torch.optim.Optimizer:
        return make_optimiser(settings, model, objectives)

    return assemble_step(settings, model, objectives, device, make_guide=guide, make_optimiser=optimiser)
