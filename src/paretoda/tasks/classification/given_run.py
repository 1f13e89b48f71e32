"""A finished run that another one begins with, in the place of a source: its network, and the target as it reads it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import torch

from paretoda.core.options import name_some
from paretoda.data.batching import Positions, split_positions
from paretoda.data.build_pair import check_size, count_threads, limit_batch_size
from paretoda.data.doctor.examine import examine_target
from paretoda.data.doctor.findings import Finding, attempt, sort_findings
from paretoda.data.open.arrays import ArraySamples
from paretoda.data.open.samples import open_samples
from paretoda.data.pair import DomainPair
from paretoda.data.rows import Rows, make_feature_rows, make_image_rows
from paretoda.data.samples import Samples
from paretoda.data.scaling import FeatureTransform, fit_z_scores
from paretoda.data.settings import PairSettings
from paretoda.data.transforms import ImageTransform
from paretoda.errors import DataError, RunError
from paretoda.run.given_run import read_given_run
from paretoda.run.settings import Settings
from paretoda.tasks.classification.predictor import ClassificationPredictor, load_predictor
from paretoda.training.strategies import STRATEGIES
from paretoda.types import Progress

DEFAULTS: Mapping[str, Any] = {"method": "source-only", "target_loss": "mcc+propagation", "head_losses": ()}
"""Settings of a run that begins with another one, where the user gives no others (docs/source-free.md)."""
BEGUN: Mapping[str, Mapping[str, Any]] = {
    name: {"start": 0.0, "full": 0.0} for name in ("aad", "centroids", "propagation", "mixup")
}
"""Options of target losses that otherwise wait until the head has learned from the source."""
KEPT_SETTINGS = (
    "backbone",
    "backbone_weights",
    "frozen",
    "bottleneck",
    "dropout",
    "image_size",
    "components",
    "augment",
    "label_smoothing",
    "class_balanced",
    "joined",
    "sources",
)
"""Settings that are those of the given run, or that only a source has a use for."""


def check_given_run(settings: Settings) -> None:
    """Raise ValueError for settings that make no sense without a source."""
    if settings.method != "source-only":
        raise ValueError(
            f"the method {settings.method!r} aligns the target with a source, and --from has none; leave out --method"
        )
    if settings.scheme in STRATEGIES:
        raise ValueError(f"the scheme {settings.scheme!r} needs a source, and --from has none; leave out --scheme")
    if settings.scaling not in ("per-domain", "source"):
        raise ValueError("with --from, --scaling is per-domain, or source: that of the run it begins with")


def load_given_run(place: str, device: torch.device | None = None) -> ClassificationPredictor:
    """Load the predictor of the run; nothing in its files is executed.

    Args:
        place: Directory of a finished run.
        device: Device of the networks; None: the CPU.

    Raises:
        RunError: There is no finished run of one network for classification.
    """
    found = read_given_run(place, lambda run: load_predictor(run.model, run.description, device))
    architecture = found.model.architecture
    if architecture.members > 1 or architecture.losses:
        kind = "has several members" if architecture.members > 1 else "is a hypernetwork"
        raise RunError(f"--from: the run in {place} {kind}; train one with --members 1 and another --scheme")
    return found


def open_given_run(
    given: ClassificationPredictor, settings: PairSettings, target: Any, progress: Progress | None
) -> tuple[DomainPair, DomainPair]:
    """Return the target as a pair with itself: as the user gave it, and as the given run's network reads it.

    The pair's source is the target again, with the labels that the given run predicts, for parts that need labelled
    samples, such as a guide by prototypes. No true label is in it.

    Args:
        given: The predictor of the given run.
        settings: Settings of the pair; with the scaling "per-domain", means and deviations of features are those of the
            new target.
        target: Unlabelled data.
        progress: Called while image files are checked and features computed.

    Raises:
        DataError: The data cannot be used, or are not what the run reads.
    """
    samples = open_samples(
        target,
        labelled=False,
        skip_bad=settings.skip_bad,
        index_cache=settings.reading.index_cache,
        progress=progress,
    )
    check_size(samples, settings.least_target)
    _check_kind(given, samples)
    train, held = split_positions(len(samples), settings.held_out, settings.seed_of_split, "split-target")
    settings, lowered = limit_batch_size(settings, len(train), "samples")
    raw, rows = _make_rows(given, samples, train, settings, progress)
    labels = _replace_scaling(given, rows).probabilities(samples, progress=progress).argmax(axis=1).astype(np.int64)
    threads = count_threads(settings.reading, samples)

    def pair_with_itself(own: Rows, workers: int) -> DomainPair:
        return DomainPair(
            settings=settings,
            classes=given.classes,
            labels=labels,
            source=own,
            target=own,
            source_train=train,
            source_held_out=held,
            target_train=train,
            target_held_out=held,
            notes=(*samples.notes, *lowered),
            workers=workers,
        )

    whole = pair_with_itself(raw, threads)
    return whole, whole if rows is raw else pair_with_itself(rows, 0)


def examine_given_run(place: str, target: Any, settings: PairSettings, progress: Progress | None) -> list[Finding]:
    """Return all findings about a finished run and the target that it is to be adapted to, errors first.

    Args:
        place: Directory of the run.
        target: Unlabelled data.
        settings: Settings of the pair, of which `skip_bad` and `least_target` are used.
        progress: Called while image files are decoded.
    """
    found: list[Finding] = []
    given = attempt(partial(load_given_run, place), "run", found)
    samples = examine_target(target, settings, found, progress)
    if given is not None:
        text = f"The run reads {_kind_of(given)} and predicts {len(given.classes)} classes: {name_some(given.classes)}."
        found.append(Finding("info", "run", text))
        if samples is not None:
            attempt(partial(_check_kind, given, samples), "both", found)
    return sort_findings(found)


def _kind_of(given: ClassificationPredictor) -> str:
    return "features" if isinstance(given.transform, FeatureTransform) else "images"


def _check_kind(given: ClassificationPredictor, samples: Samples) -> None:
    """Raise a `DataError` unless the samples are what the given run reads."""
    if samples.kind != (wanted := _kind_of(given)):
        raise DataError(f"--from: the run reads {wanted}, the target is {samples.kind}; give the same kind")
    if isinstance(given.transform, FeatureTransform):
        (ours,), (width,) = given.transform.tensors()["mean"].shape, samples.shapes()[0]
        if width != ours:
            raise DataError(f"--from: the run reads {ours} features, the target has {width}; give the same ones")


def _make_rows(
    given: ClassificationPredictor,
    samples: Samples,
    train: Positions,
    settings: PairSettings,
    progress: Progress | None,
) -> tuple[Rows, Rows]:
    """Return the samples as the user gave them, and as the given network reads them."""

    def scale(rows: Samples, scaling: FeatureTransform) -> Rows:
        if settings.scaling == "per-domain":
            fitted = fit_z_scores(np.asarray(rows.read(train)))
            scaling = replace(scaling, mean=fitted.mean, std=fitted.std)
        return make_feature_rows(rows, scaling)

    if isinstance(given.transform, FeatureTransform):
        rows = scale(samples, given.transform)
        return rows, rows
    assert isinstance(given.transform, ImageTransform)
    raw = make_image_rows(samples, given.transform)
    if given.backbone is None or given.scaling is None:
        return raw, raw
    threads = count_threads(settings.reading, samples)
    features = given.backbone.features(
        samples, given.transform, threads=threads, progress=progress, what="features of the target"
    )
    return raw, scale(ArraySamples(features.numpy()), given.scaling)


def _replace_scaling(given: ClassificationPredictor, rows: Rows) -> ClassificationPredictor:
    """Return the predictor with the scaling of these rows."""
    if not isinstance(rows.transform, FeatureTransform):
        return given
    if given.backbone is not None:
        return replace(given, scaling=rows.transform)
    return replace(given, transform=rows.transform)
