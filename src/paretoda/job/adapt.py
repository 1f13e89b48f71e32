"""The main job as one function."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import nn

from paretoda.data import DomainPair, make_pair
from paretoda.data.scaling import FeatureTransform
from paretoda.evaluation.validators import VALIDATORS, negative_transfer_warning
from paretoda.job.build import pair_settings, pick_device
from paretoda.job.directory import RunDirectory, RunError
from paretoda.job.frozen import Told, frozen_features
from paretoda.job.predictor import Predictor
from paretoda.job.run import Run, write_results
from paretoda.job.settings import Settings, SettingsError, make_settings
from paretoda.job.training import Trained, train
from paretoda.models.backbones import BACKBONES, default_backbone, make_backbone
from paretoda.models.classifier import Classifier
from paretoda.objectives.target.tcm import Tcm
from paretoda.training.loop import After
from paretoda.training.snapshot import take_snapshot
from paretoda.training.step import Step


@dataclass(frozen=True, eq=False)
class Listeners:
    """Who is told what happens.

    Args:
        say: sentences for the user, as they come up.
        told: progress of long jobs other than training.
        after: called after every step.
        reference: called after every step of the source-only reference.
    """

    say: Callable[[str], None] | None = None
    told: Told | None = None
    after: Sequence[After] = ()
    reference: Sequence[After] = ()


_SILENT = Listeners()


def adapt(
    source: Any = None,
    target: Any = None,
    out: str | Path | None = None,
    *,
    resume: bool = False,
    overwrite: bool = False,
    listeners: Listeners = _SILENT,
    **settings: Any,
) -> Run:
    """Train a model for the target from a labelled source and the unlabelled target.

    Args:
        source: an image folder with a sub-folder for each class, a list file, an .npz with x and y, (x, y), a dataset.
        target: the same without labels; labels that are there are not read.
        out: directory for the run's files; None: nothing is written.
        resume: go on with the run in `out`, with its own settings and, unless given, its own data.
        overwrite: replace a run in `out`.
        listeners: who is told what happens.
        **settings: any field of `Settings`, checked: method="dann", scheme="paretoda", steps=1000, seed=0, ...

    Returns:
        The run, with `.model`, `.history`, `.predict(x)`.
    """
    directory = RunDirectory(Path(out)) if out is not None else None
    if resume:
        if directory is None:
            raise RunError("resume needs the directory of the run: give out")
        if settings:
            raise SettingsError(f"a resumed run keeps its settings; leave out {', '.join(settings)}")
        chosen, inputs = directory.read_config()
        source, target = source or inputs.get("source"), target or inputs.get("target")
    else:
        chosen = make_settings(settings)
        if directory is not None:
            directory.check_free(overwrite=overwrite)
    if source is None or target is None:
        raise SettingsError("give a source and a target")
    return _run(chosen, source, target, directory, resume, listeners)


def _run(
    settings: Settings, source: Any, target: Any, directory: RunDirectory | None, resume: bool, listeners: Listeners
) -> Run:
    device = pick_device(settings.device)
    raw = make_pair(source, target, pair_settings(settings))
    for note in raw.notes:
        _say(listeners, note)
    pair, frozen = (raw, None) if not settings.frozen else _freeze(settings, raw, device, listeners.told)
    if directory is not None and not resume:
        directory.begin(settings, {"source": _path(source), "target": _path(target)})
    going_on = resume and directory is not None and directory.checkpoint.exists()
    trained = train(settings, pair, device, directory=directory, resume=going_on, after=listeners.after)
    run = _finish(settings, raw, pair, frozen, trained, listeners, directory)
    if directory is not None:
        write_results(directory, run, raw.target.samples)
    return run


def _path(what: Any) -> str:
    return str(Path(what).expanduser().resolve()) if isinstance(what, (str, Path)) else type(what).__name__


def _say(listeners: Listeners, sentence: str) -> None:
    if listeners.say is not None:
        listeners.say(sentence)


def _freeze(
    settings: Settings, pair: DomainPair, device: torch.device, told: Told | None
) -> tuple[DomainPair, tuple[str, nn.Module]]:
    """The pair of a frozen backbone's features, and the backbone."""
    if pair.kind == "features":
        raise SettingsError("the data are features already; leave out --frozen")
    name = default_backbone(pair.input_shape) if settings.backbone == "auto" else settings.backbone
    if name not in BACKBONES or settings.backbone_weights is None:
        raise SettingsError(
            "a frozen backbone needs weights: --backbone efficientnet-lite0 --backbone-weights FILE, for example"
        )
    network = make_backbone(name, pair.input_shape, settings.backbone_weights).to(device)
    features = [frozen_features(pair, domain, network, device, told) for domain in ("source", "target")]
    return pair.with_features(*features), (name, network)


def _predictor(pair: DomainPair, features: DomainPair, frozen: tuple[str, nn.Module] | None, step: Step) -> Predictor:
    scaling = features.prediction_transform() if frozen is not None else None
    refiner = step.objectives.get("target")
    assert isinstance(step.model, Classifier)
    return Predictor(
        classes=pair.classes,
        transform=pair.prediction_transform(),
        model=copy.deepcopy(step.model),
        backbone=frozen,
        scaling=scaling if isinstance(scaling, FeatureTransform) else None,
        refiner=copy.deepcopy(refiner) if isinstance(refiner, Tcm) else None,
    )


def _finish(
    settings: Settings,
    raw: DomainPair,
    pair: DomainPair,
    frozen: tuple[str, nn.Module] | None,
    trained: Trained,
    listeners: Listeners,
    directory: RunDirectory | None,
) -> Run:
    """Choose the model, compare it with source-only, and say in plain words what was found."""
    step, candidates = trained.step, trained.candidates
    last = _predictor(raw, pair, frozen, step)
    choice = candidates.choice()
    sentences = list(raw.notes)
    index = len(candidates.taken) - 1
    if choice is not None:
        index = choice.index
        sentences.append(choice.sentence)
        _say(listeners, choice.sentence)
        candidates.put_back(index, step)
    scores = _scores(pair, step)
    warning = _compare(settings, pair, step, scores, listeners)
    if warning is not None:
        sentences.append(warning)
        _say(listeners, warning)
    return Run(
        settings=settings,
        model=_predictor(raw, pair, frozen, step),
        last=last,
        history=trained.history,
        scores=scores,
        candidates=[{"step": t, **s} for t, s in zip(candidates.taken, candidates.scores, strict=True)],
        chosen=candidates.taken[index],
        sentences=tuple(sentences),
        directory=None if directory is None else directory.path,
    )


def _scores(pair: DomainPair, step: Step) -> dict[str, float]:
    snapshot = take_snapshot(pair, step.model, step.device)
    return {name: make()(snapshot) for name, make in VALIDATORS.items()}


def _compare(
    settings: Settings, pair: DomainPair, step: Step, scores: dict[str, float], listeners: Listeners
) -> str | None:
    """The warning of negative transfer, from a source-only model of the same settings."""
    wanted = settings.reference if settings.reference is not None else pair.kind == "features"
    if not wanted or set(step.objectives) == {"source"}:
        return None
    plain = settings.model_copy(
        update={
            "method": "source-only",
            "target_loss": "none",
            "scheme": "linear",
            "loss_weights": (),
            "select": "last",
        }
        | {"head_losses": None, "every": 1, "average": 0.0}
    )
    reference = train(plain, pair, step.device, after=listeners.reference)
    return negative_transfer_warning(scores, _scores(pair, reference.step))
