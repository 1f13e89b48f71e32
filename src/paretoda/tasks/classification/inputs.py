"""The data of a classification run: the pair as given, and the features of a frozen backbone where there is one."""

from __future__ import annotations

import copy
import hashlib
import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import torch
from safetensors import SafetensorError
from safetensors.torch import load as load_tensors
from safetensors.torch import save as save_tensors
from torch import Tensor, nn

from paretoda.data import DomainPair, make_pair
from paretoda.data.open.folders import cache_folder
from paretoda.data.samples import fingerprint
from paretoda.data.scaling import FeatureTransform
from paretoda.data.transforms import ImageTransform
from paretoda.errors import SettingsError
from paretoda.evaluation.calibration import source_temperature
from paretoda.evaluation.predictions import evaluation_mode
from paretoda.io.files import atomic_file
from paretoda.models.backbones import default_backbone, make_backbone
from paretoda.models.classifier import Classifier
from paretoda.objectives.target.tcm import Tcm
from paretoda.run.backbone_choice import check_frozen
from paretoda.run.backbone_choice import describe_weights as weights_told
from paretoda.run.settings import Settings
from paretoda.tasks.classification.build import pair_settings
from paretoda.tasks.classification.predictor import Predictor
from paretoda.training.step import Step
from paretoda.types import Snapshot

Domain = Literal["source", "target"]
Told = Callable[[str, int, int], None]
"""Called with what is being done, how much is done, and how much there is."""


def frozen_features(
    pair: DomainPair, domain: Domain, network: nn.Module, device: torch.device, told: Told | None = None
) -> Tensor:
    """The network's features of all samples of a domain, shape (n, d); read from the cache where they are known.

    Args:
        pair: the data, with the transform that the network wants.
        domain: which.
        network: in evaluation mode here, whatever its mode.
        device: where the network is.
        told: progress.
    """
    path = cache_folder() / "features" / f"{_key(pair, domain, network)}.safetensors"
    total = len((pair.source if domain == "source" else pair.target).samples)
    known = _read(path, total)
    if known is not None:
        return known
    rows: list[Tensor] = []
    done = 0
    with evaluation_mode(network):
        for inputs in pair.inputs("all-source" if domain == "source" else "all-target", 32):
            rows.append(network(inputs.to(device)).cpu())
            done += len(inputs)
            if told is not None:
                told(f"features of the {domain}", done, total)
    features = torch.cat(rows)
    with atomic_file(path) as file:
        file.write(save_tensors({"features": features}))
    return features


def _read(path: Path, total: int) -> Tensor | None:
    """The stored features; None where there are none, or none that can be trusted."""
    try:
        found = load_tensors(path.read_bytes())["features"]
    except (OSError, KeyError, SafetensorError, ValueError):
        return None
    return found if found.ndim == 2 and len(found) == total and found.dtype == torch.float32 else None


def _key(pair: DomainPair, domain: Domain, network: nn.Module) -> str:
    """A hash of the samples, the transform and every weight."""
    rows = pair.source if domain == "source" else pair.target
    digest = hashlib.sha256(fingerprint(rows.samples).encode())
    digest.update(json.dumps(rows.transform.to_json(), sort_keys=True).encode())
    for name, tensor in sorted(network.state_dict().items()):
        digest.update(name.encode())
        digest.update(tensor.detach().cpu().contiguous().view(torch.uint8).numpy().tobytes() if tensor.ndim else b"")
    return digest.hexdigest()[:32]


_ALONE = "There is no target: the model was trained on the source alone, and nothing was adapted."


@dataclass(frozen=True, eq=False)
class Inputs:
    """What a run reads.

    Args:
        raw: as the user gave it.
        pair: what is trained on: `raw`, or the features that a frozen backbone made of it.
        frozen: that backbone and its name; None without one.
        alone: no target was given, and the unlabelled source stands in its place.
        crops: of an image in a prediction.
    """

    raw: DomainPair
    pair: DomainPair
    frozen: tuple[str, nn.Module] | None = None
    alone: bool = False
    crops: int = 1

    @property
    def notes(self) -> tuple[str, ...]:
        """What the user should know of the data."""
        return self.raw.notes

    def predictor(self, step: Step) -> Predictor:
        """A copy of the step's present model for new data of the target."""
        refiner = step.objectives.get("target")
        assert isinstance(step.model, Classifier)
        return Predictor(
            classes=self.raw.classes,
            transform=self.raw.prediction_transform(),
            model=copy.deepcopy(step.model),
            backbone=self.frozen,
            scaling=self._scaling(self.pair.target.transform),
            refiner=copy.deepcopy(refiner) if isinstance(refiner, Tcm) else None,
            crops=self.crops,
        )

    def calibrated(self, predictor: Predictor, snapshot: Snapshot) -> Predictor:
        """The same with the temperature of its confidence."""
        return replace(predictor, temperature=source_temperature(snapshot))

    def for_source(self, predictor: Predictor) -> Predictor:
        """The same networks for new data of the source: they differ in how features are scaled."""
        return replace(
            predictor, transform=self.raw.source.transform, scaling=self._scaling(self.pair.source.transform)
        )

    def _scaling(self, transform: Any) -> FeatureTransform | None:
        return transform if self.frozen is not None and isinstance(transform, FeatureTransform) else None


def open_inputs(
    settings: Settings,
    source: Any,
    target: Any,
    device: torch.device,
    say: Callable[[str], None],
    told: Told | None = None,
) -> Inputs:
    """Open the data, say what the user should know of them, and compute a frozen backbone's features.

    Args:
        settings: of the run.
        source: labelled.
        target: None: the source stands in its place.
        device: of the frozen backbone.
        say: called with each note.
        told: progress of the checking of images and of the frozen backbone.
    """
    raw = _open(settings, source, target, told)
    for note in raw.notes:
        say(note)
    _check_crops(settings, raw)
    begins = None if raw.kind == "features" else weights_told(_name(settings, raw), settings.backbone_weights)
    if begins is not None:
        say(begins)
    if not settings.frozen:
        return Inputs(raw, raw, alone=target is None, crops=settings.crops)
    pair, frozen = _freeze(settings, raw, device, told)
    return Inputs(raw, pair, frozen, alone=target is None, crops=settings.crops)


def _check_crops(settings: Settings, raw: DomainPair) -> None:
    """Ten crops are of images that are resized to more than the network reads, which nothing shows until the end."""
    if settings.crops > 1 and raw.kind == "features":
        raise SettingsError("the data are features, which have no crops; leave out --crops")
    transform = raw.target.transform
    if settings.crops > 1 and isinstance(transform, ImageTransform) and transform.resized == transform.size:
        raise SettingsError(
            "ten crops need larger images than the network reads: take --augment flip, light, standard or strong"
            + (" and leave out --frozen" if settings.frozen else "")
        )


def _open(settings: Settings, source: Any, target: Any, told: Told | None) -> DomainPair:
    """The pair; a source in the target's place may be small, and both get one scaling."""
    wanted = pair_settings(settings)
    if target is not None:
        return make_pair(source, target, wanted, told)
    scaling = wanted.scaling if wanted.scaling == "none" else "source"
    pair = make_pair(source, source, replace(wanted, least_target=2, scaling=scaling), told)
    return replace(pair, notes=(*pair.notes, _ALONE))


def _freeze(
    settings: Settings, pair: DomainPair, device: torch.device, told: Told | None
) -> tuple[DomainPair, tuple[str, nn.Module]]:
    """The pair of a frozen backbone's features, and the backbone."""
    if pair.kind == "features":
        raise SettingsError("the data are features already; leave out --frozen")
    name = _name(settings, pair)
    check_frozen(name, settings.backbone_weights)
    network = make_backbone(name, pair.input_shape, settings.backbone_weights).to(device)
    features = [frozen_features(pair, domain, network, device, told) for domain in ("source", "target")]
    return pair.with_features(*features), (name, network)


def _name(settings: Settings, pair: DomainPair) -> str:
    return default_backbone(pair.input_shape) if settings.backbone == "auto" else settings.backbone
