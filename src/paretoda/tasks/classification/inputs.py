"""The data of a classification run: the pair as given, and the features of a frozen backbone where there is one."""

from __future__ import annotations

import hashlib
import json
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
from paretoda.data.transforms import ImageTransform
from paretoda.errors import SettingsError
from paretoda.evaluation.predictions import evaluation_mode
from paretoda.io.files import atomic_file
from paretoda.models.backbones import default_backbone, make_backbone
from paretoda.run.backbone_choice import check_frozen, describe_weights
from paretoda.run.callbacks import NO_CALLBACKS, Callbacks
from paretoda.run.settings import Settings
from paretoda.run.task import NO_TARGET
from paretoda.tasks.classification.build import make_pair_settings
from paretoda.types import Progress

Domain = Literal["source", "target"]


def frozen_features(
    pair: DomainPair, domain: Domain, network: nn.Module, device: torch.device, progress: Progress | None = None
) -> Tensor:
    """Return the network's features of all samples of a domain, shape (n, d), from the cache if it has them.

    Args:
        pair: The data, with the transform that the network expects.
        domain: "source" or "target".
        network: The frozen backbone; it runs in evaluation mode, whatever its mode is.
        device: Device of the network.
        progress: Called with the number of samples that are done.
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
            if progress is not None:
                progress(f"features of the {domain}", done, total)
    features = torch.cat(rows)
    with atomic_file(path) as file:
        file.write(save_tensors({"features": features}))
    return features


def _read(path: Path, total: int) -> Tensor | None:
    """Read stored features; None where there are none, or none that can be trusted."""
    try:
        found = load_tensors(path.read_bytes())["features"]
    except (OSError, KeyError, SafetensorError, ValueError):
        return None
    return found if found.ndim == 2 and len(found) == total and found.dtype == torch.float32 else None


def _key(pair: DomainPair, domain: Domain, network: nn.Module) -> str:
    """Return a hash of the samples, the transform, the layers and every weight."""
    rows = pair.source if domain == "source" else pair.target
    digest = hashlib.sha256(fingerprint(rows.samples).encode())
    digest.update(json.dumps(rows.transform.to_json(), sort_keys=True).encode())
    digest.update(repr(network).encode())
    for name, tensor in sorted(network.state_dict().items()):
        digest.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}".encode())
        digest.update(tensor.detach().cpu().reshape(-1).contiguous().view(torch.uint8).numpy().tobytes())
    return digest.hexdigest()[:32]


@dataclass(frozen=True, eq=False)
class ClassificationInputs:
    """The data of a classification run.

    Args:
        raw: The data as the user gave them.
        pair: What is trained on: `raw`, or the features that a frozen backbone made of it.
        frozen: The frozen backbone and its name; None without one.
        has_target: Whether a target was given; without one the unlabelled source stands in its place.
        crops: Crops of an image that a prediction is averaged over.
    """

    raw: DomainPair
    pair: DomainPair
    frozen: tuple[str, nn.Module] | None = None
    has_target: bool = True
    crops: int = 1

    @property
    def notes(self) -> tuple[str, ...]:
        """Sentences about the data for the user."""
        return self.raw.notes


def open_inputs(
    settings: Settings, source: Any, target: Any, device: torch.device, callbacks: Callbacks = NO_CALLBACKS
) -> ClassificationInputs:
    """Open the data, say what the user should know of them, and compute the features of a frozen backbone.

    Args:
        settings: Settings of the run.
        source: Labelled data.
        target: Unlabelled data; None: the source stands in their place.
        device: Device of the frozen backbone.
        callbacks: Receive notes, and the progress of checking images and computing features.
    """
    raw = _open_pair(settings, source, target, callbacks.progress)
    for note in raw.notes:
        callbacks.notify(note)
    _check_crops(settings, raw)
    begins = None if raw.kind == "features" else describe_weights(_backbone(settings, raw), settings.backbone_weights)
    if begins is not None:
        callbacks.notify(begins)
    has_target = target is not None
    if not settings.frozen:
        return ClassificationInputs(raw, raw, has_target=has_target, crops=settings.crops)
    pair, frozen = _freeze(settings, raw, device, callbacks.progress)
    return ClassificationInputs(raw, pair, frozen, has_target=has_target, crops=settings.crops)


def _check_crops(settings: Settings, raw: DomainPair) -> None:
    """Refuse ten crops of images that are not resized to more than the network reads; nothing else would show it."""
    if settings.crops > 1 and raw.kind == "features":
        raise SettingsError("the data are features, which have no crops; leave out --crops")
    transform = raw.target.transform
    if settings.crops > 1 and isinstance(transform, ImageTransform) and transform.resized == transform.size:
        raise SettingsError(
            "ten crops need larger images than the network reads: take --augment flip, light, standard or strong"
            + (" and leave out --frozen" if settings.frozen else "")
        )


def _open_pair(settings: Settings, source: Any, target: Any, progress: Progress | None) -> DomainPair:
    """Open the pair; a source in the target's place may be small, and both get one scaling."""
    wanted = make_pair_settings(settings)
    if target is not None:
        return make_pair(source, target, wanted, progress)
    scaling = wanted.scaling if wanted.scaling == "none" else "source"
    pair = make_pair(source, source, replace(wanted, least_target=2, scaling=scaling), progress)
    return replace(pair, notes=(*pair.notes, NO_TARGET))


def _freeze(
    settings: Settings, pair: DomainPair, device: torch.device, progress: Progress | None
) -> tuple[DomainPair, tuple[str, nn.Module]]:
    """Return the pair of a frozen backbone's features, and the backbone with its name."""
    if pair.kind == "features":
        raise SettingsError("the data are features already; leave out --frozen")
    name = _backbone(settings, pair)
    check_frozen(name, settings.backbone_weights)
    network = make_backbone(name, pair.input_shape, settings.backbone_weights).to(device)
    features = [frozen_features(pair, domain, network, device, progress) for domain in ("source", "target")]
    return pair.with_features(*features), (name, network)


def _backbone(settings: Settings, pair: DomainPair) -> str:
    return default_backbone(pair.input_shape) if settings.backbone == "auto" else settings.backbone
