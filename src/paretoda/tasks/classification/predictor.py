"""A trained classifier that can be used alone: transforms, networks, class names, in two files without code."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.torch import load as load_tensors
from torch import Tensor, nn

from paretoda.data.build_pair import count_threads
from paretoda.data.open.samples import open_samples
from paretoda.data.prefetching import Reading
from paretoda.data.rows import iterate_inputs
from paretoda.data.samples import Samples
from paretoda.data.scaling import FeatureTransform
from paretoda.data.transforms import Transform, transform_from_json
from paretoda.errors import BackboneError, RunError
from paretoda.evaluation.calibration import parse_temperature
from paretoda.evaluation.predictions import predict
from paretoda.io.files import parse_json
from paretoda.models.backbones import feature_width, make_backbone
from paretoda.models.backbones.backbone import ExternalBackbone
from paretoda.models.classifier import Classifier, describe, from_description
from paretoda.models.ensemble import MeanHead
from paretoda.models.memory import put_channels_last
from paretoda.objectives.parts.label_sets import UNKNOWN
from paretoda.objectives.parts.novelty import novelties
from paretoda.objectives.target.tcm import Tcm
from paretoda.run.directory.model_files import check_format, load_module, require_refiner, select_part, write_model
from paretoda.run.task import NOT_ONE_MODEL
from paretoda.tasks.classification.frozen_backbone import FrozenBackbone
from paretoda.types import Progress

_MOST_IN_MEMORY = 2**18
"""Samples whose features of a frozen backbone are in memory at a time."""


@dataclass(frozen=True, eq=False)
class ClassificationPredictor:
    """A classifier with its transforms: from raw samples of the target's kind to class probabilities.

    Args:
        classes: Names of the K classes.
        transform: Maps raw samples to inputs.
        model: Maps inputs (or the frozen backbone's scaled features) to logits.
        backbone: A frozen network before the model; None without one.
        scaling: Scaling of the frozen network's features.
        refiner: The class-wise discriminators of TCM of every member, which give the refined prediction ρ; None without
            them.
        crops: Views of an image that a prediction is averaged over, 1 or 10.
        temperature: Temperature that calibrates the confidence (`paretoda.evaluation.calibration`); None: not fitted.
        threshold: Novelty, one minus the largest probability, above which a sample is `UNKNOWN`; None: no sample is.
    """

    classes: tuple[str, ...]
    transform: Transform
    model: Classifier
    backbone: FrozenBackbone | None = None
    scaling: FeatureTransform | None = None
    refiner: tuple[Tcm, ...] | None = None
    crops: int = 1
    temperature: float | None = None
    threshold: float | None = None

    @property
    def answers(self) -> tuple[str, ...]:
        """Names that a prediction can have: the classes and, where there is a threshold, `UNKNOWN` behind them."""
        return self.classes if self.threshold is None else (*self.classes, UNKNOWN)

    def choose(self, probabilities: NDArray[Any]) -> NDArray[np.int64]:
        """Return positions in `answers`, shape (n,): the most probable class, or `UNKNOWN` above the threshold.

        Args:
            probabilities: Class probabilities, shape (n, K).
        """
        best: NDArray[np.int64] = probabilities.argmax(axis=1).astype(np.int64)
        return best if self.threshold is None else mark_unknown(best, probabilities, self.threshold)

    def predict(self, inputs: Any, *, refined: bool = False) -> list[str]:
        """Return the names of the most probable classes of samples (a path, an array, a dataset), or `UNKNOWN`."""
        return [self.answers[place] for place in self.choose(self.predict_proba(inputs, refined=refined))]

    def predict_proba(self, inputs: Any, *, refined: bool = False) -> NDArray[np.float32]:
        """Return class probabilities of samples (a path, an array, a dataset), shape (n, K)."""
        return self.probabilities(open_samples(inputs, labelled=False), refined=refined)

    def probabilities(
        self,
        samples: Samples,
        *,
        refined: bool = False,
        calibrated: bool = False,
        batch_size: int = 256,
        workers: int | None = None,
        progress: Progress | None = None,
    ) -> NDArray[np.float32]:
        """Return class probabilities, shape (n, K), averaged over crops.

        Args:
            samples: Opened samples of the target's kind.
            refined: Return the refined predictions ρ of Eq. 3.
            calibrated: Divide the logits by the temperature, where there is one.
            batch_size: Samples in a batch.
            workers: Threads that read ahead; None: as many as fit.
            progress: Called while features of a frozen backbone are computed.
        """
        heat = (self.temperature or 1.0) if calibrated else 1.0
        batches = [
            self._scores(*predict(self.model, [inputs], device=self._device), refined=refined, heat=heat)
            for inputs in self._inputs(samples, batch_size, self.crops, workers, progress)
        ]
        return torch.cat(batches).view(-1, self.crops, len(self.classes)).mean(dim=1).numpy()

    def _scores(self, features: Tensor, logits: Tensor, *, refined: bool, heat: float) -> Tensor:
        """Return the probabilities of one batch."""
        if not refined:
            return torch.softmax(logits / heat, dim=1)
        with torch.no_grad():
            return refine(self.model, self.refiner, features.to(self._device), logits.to(self._device)).cpu()

    def with_crops(self, crops: int) -> ClassificationPredictor:
        """Return the same predictor with 1 or 10 crops of an image in a prediction."""
        if crops not in (1, 10):
            raise RunError(f"crops are 1, the middle, or 10, corners and middle and their mirror images; not {crops}")
        return replace(self, crops=crops)

    def with_preference(self, preference: Sequence[float]) -> ClassificationPredictor:
        """Return another point of the front that a hypernetwork was trained for; see `Classifier.prefer`."""
        model = copy.deepcopy(self.model)
        try:
            model.prefer(preference)
        except ValueError as error:
            raise RunError(str(error)) from error
        return replace(self, model=model, temperature=None)  # fitted for the model as it was trained

    def features(self, samples: Samples, batch_size: int = 256) -> NDArray[np.float32]:
        """Return the encoder's features of the samples, shape (n, d)."""
        return predict(self.model, self._inputs(samples, batch_size), device=self._device)[0].numpy()

    @property
    def _device(self) -> torch.device:
        return next(self.model.parameters()).device

    def _inputs(
        self,
        samples: Samples,
        batch_size: int,
        crops: int = 1,
        workers: int | None = None,
        progress: Progress | None = None,
    ) -> Iterator[Tensor]:
        threads = count_threads(Reading(workers), samples)
        if self.backbone is None or self.scaling is None:
            yield from iterate_inputs(samples, self.transform, batch_size, crops, threads)
            return
        size = max(1, batch_size // crops)
        block = max(1, _MOST_IN_MEMORY // size) * size
        blocks = [range(start, min(start + block, len(samples))) for start in range(0, len(samples), block)]
        for places in blocks if len(blocks) > 1 else [None]:
            features = self.backbone.features(
                samples, self.transform, places, crops=crops, threads=threads, progress=progress
            )
            for rows in torch.split(features, size * crops):
                yield self.scaling.evaluate(rows.numpy())

    def save(self, weights: Path, description: Path) -> None:
        """Write both files; the description first, so that weights are never without one."""
        parts: dict[str, Mapping[str, Tensor]] = {
            "model": self.model.state_dict(),
            "transform": self.transform.tensors(),
            "backbone": self.backbone.network.state_dict() if self.backbone else {},
            "scaling": self.scaling.tensors() if self.scaling else {},
            "refiner": _state_of(self.refiner) if self.refiner else {},
        }
        write_model(weights, description, parts, self._description())

    def _description(self) -> dict[str, Any]:
        backbone = None
        if self.backbone is not None:
            network = self.backbone.network
            facts = {"facts": network.facts} if isinstance(network, ExternalBackbone) else {}
            backbone = {"name": self.backbone.name, "input_shape": list(self.transform.shape), **facts}
        return {
            "classes": list(self.classes),
            "transform": self.transform.to_json(),
            "architecture": describe(self.model),
            "backbone": backbone,
            "scaling": self.scaling.to_json() if self.scaling else None,
            "refiner": self.refiner is not None and self.refiner[0].settings(),
            "crops": self.crops,
            "temperature": self.temperature,
            **({} if self.threshold is None else {"novelty_threshold": self.threshold}),
        }


def _state_of(refiner: Sequence[Tcm]) -> dict[str, Tensor]:
    """Return the state of all members; that of a single one has no numbers in its names, as in older files."""
    return (refiner[0] if len(refiner) == 1 else nn.ModuleList(refiner)).state_dict()


def _load_refiner(
    options: Mapping[str, Any], model: Classifier, classes: int, state: Mapping[str, Tensor]
) -> Iterator[Tcm]:
    width, members = model.architecture.width, model.architecture.members
    for index in range(members):
        own = state if members == 1 else select_part(state, str(index))
        yield load_module(lambda: Tcm(width, classes, **options), own)


def refine(model: Classifier, refiner: Sequence[Tcm] | None, features: Tensor, logits: Tensor) -> Tensor:
    """Return the refined prediction ρ, shape (n, K): the mean of the members' where there are several.

    Args:
        model: The classifier.
        refiner: TCM of every member.
        features: Features of the classifier.
        logits: Its logits.

    Raises:
        RunError: The run has no TCM.
    """
    tcms = require_refiner(refiner)
    if len(tcms) == 1:
        return tcms[0].refined(features, logits)
    assert isinstance(model.head, MeanHead)
    members = [tcm.refined(*part) for tcm, part in zip(tcms, model.head.split(features), strict=True)]
    return torch.stack(members).mean(0)


def load_predictor(weights: Path, description: Path, device: torch.device | None = None) -> ClassificationPredictor:
    """Load the predictor that `save` wrote; nothing in the files is executed."""
    for path in (weights, description):
        if not path.is_file():
            raise RunError(f"{path} is missing: the run has not finished, or this is not a run")
    try:
        facts = parse_json(description.read_bytes())
        tensors = load_tensors(weights.read_bytes())
    except (SafetensorError, ValueError, OSError) as error:
        raise RunError(
            f"the model in {weights.parent} cannot be read ({error}); it is damaged or not a model"
        ) from error
    try:
        return _assemble(facts, tensors, device or torch.device("cpu"))
    except BackboneError as error:
        raise RunError(f"{description}: {error}") from error
    except Exception as error:  # whatever a description that is damaged or a stranger's leads to
        first = (str(error).splitlines() or [type(error).__name__])[:2][-1].strip()
        raise RunError(f"{description} and {weights.name} do not fit together ({first})") from error


def _assemble(facts: Mapping[str, Any], tensors: Mapping[str, Tensor], device: torch.device) -> ClassificationPredictor:
    check_format(facts)
    part = partial(select_part, tensors)
    model = load_module(lambda: from_description(facts["architecture"]), part("model"))
    if device.type == "cpu":
        put_channels_last(model)
    classes = tuple(str(name) for name in facts["classes"])
    if len(classes) != model.architecture.classes:
        raise ValueError(f"{len(classes)} class names for {model.architecture.classes} classes")
    backbone = None
    if facts["backbone"] is not None:
        name, shape = str(facts["backbone"]["name"]), tuple(facts["backbone"]["input_shape"])
        own = facts["backbone"].get("facts")
        network = load_module(lambda: make_backbone(name, shape, facts=own), part("backbone"))
        backbone = FrozenBackbone(name, network.to(device))
    scaling = transform_from_json(facts["scaling"], part("scaling")) if facts["scaling"] else None
    refiner = None
    if facts["refiner"]:
        refiner = tuple(_load_refiner(facts["refiner"], model, len(classes), part("refiner")))
    transform = transform_from_json(facts["transform"], part("transform"))
    _check_shapes(transform, facts["backbone"], scaling, model.architecture.input_shape)
    return ClassificationPredictor(
        classes=classes,
        transform=transform,
        model=model.to(device),
        backbone=backbone,
        scaling=scaling if isinstance(scaling, FeatureTransform) else None,
        refiner=None if refiner is None else tuple(tcm.to(device) for tcm in refiner),
        temperature=parse_temperature(facts.get("temperature")),
        threshold=_parse_threshold(facts.get("novelty_threshold")),
    ).with_crops(facts.get("crops", 1))


def _parse_threshold(value: Any) -> float | None:
    """Return the threshold of the novelty that a description has; raise ValueError where it is none."""
    if value is None:
        return None
    if type(value) not in (int, float) or not 0 <= value <= 1:
        raise ValueError(f"the threshold of the novelty lies in 0..1, not {value!r}")
    return float(value)


def mark_unknown(best: NDArray[np.int64], probabilities: NDArray[Any], threshold: float) -> NDArray[np.int64]:
    """Return the predicted classes, shape (n,), with K where the novelty is above the threshold.

    Args:
        best: Most probable classes, shape (n,).
        probabilities: Class probabilities, shape (n, K).
        threshold: Threshold of the novelty.
    """
    novelty = novelties(torch.from_numpy(np.asarray(probabilities))).numpy()
    marked: NDArray[np.int64] = np.where(novelty > threshold, probabilities.shape[1], best)
    return marked


def _check_shapes(transform: Transform, backbone: Any, scaling: Transform | None, wanted: tuple[int, ...]) -> None:
    """Raise ValueError where the output of one part is not what the next one takes."""
    given = transform.shape
    if backbone is not None:
        if tuple(backbone["input_shape"]) != given or not isinstance(scaling, FeatureTransform):
            raise ValueError(f"the backbone takes {tuple(backbone['input_shape'])} and gets {given}")
        given = (feature_width(str(backbone["name"]), backbone.get("facts")),)
        if given != (len(scaling.mean),):
            raise ValueError(f"{len(scaling.mean)} features are scaled and {given[0]} are there")
        given = (scaling.width,)
    if given != wanted:
        raise ValueError(f"the model takes {wanted} and gets {given}")


@dataclass(frozen=True, eq=False)
class MeanPredictor(ClassificationPredictor):
    """Several classifiers of the same classes, whose probabilities are averaged; all else is the first one's.

    Args:
        runs: All predictors, including the first.
    """

    runs: tuple[ClassificationPredictor, ...] = ()

    def probabilities(
        self,
        samples: Samples,
        *,
        refined: bool = False,
        calibrated: bool = False,  # noqa: ARG002
        batch_size: int = 256,
        workers: int | None = None,
        progress: Progress | None = None,
    ) -> NDArray[np.float32]:
        """Return the mean probabilities, shape (n, K); a mean has no temperature, so `calibrated` changes nothing."""
        options: dict[str, Any] = {"refined": refined, "batch_size": batch_size, "workers": workers}
        mean: NDArray[np.float32] = np.stack(
            [run.probabilities(samples, **options, progress=progress) for run in self.runs]
        ).mean(axis=0)
        return mean

    def with_crops(self, crops: int) -> ClassificationPredictor:
        """Return the same with 1 or 10 crops of an image in every run."""
        return average([run.with_crops(crops) for run in self.runs])

    def with_preference(self, preference: Sequence[float]) -> ClassificationPredictor:  # noqa: ARG002
        """Refuse: a preference weighs the losses of one run."""
        raise RunError("a preference is for one run; leave out --preference or --with")

    def save(self, weights: Path, description: Path) -> None:  # noqa: ARG002
        """Refuse: a mean is not written as one file."""
        raise RunError(NOT_ONE_MODEL)


def average(predictors: Sequence[ClassificationPredictor]) -> ClassificationPredictor:
    """Return one predictor whose probabilities are the mean; a single predictor is returned as it is."""
    runs = [one for each in predictors for one in (each.runs if isinstance(each, MeanPredictor) else (each,))]
    if len(runs) == 1:
        return runs[0]
    thresholds = [run.threshold for run in runs if run.threshold is not None]
    if 0 < len(thresholds) < len(runs):
        raise RunError("only some of these runs know unknown samples; give runs with one setting of --label-sets")
    # A temperature was fitted for one model, not for a mean; a threshold lies on the same scale in all of them.
    own = {"temperature": None, "threshold": float(np.mean(thresholds)) if thresholds else None}
    return MeanPredictor(**{**vars(runs[0]), **own}, runs=tuple(runs))
