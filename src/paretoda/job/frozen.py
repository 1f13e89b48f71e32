"""A frozen backbone's features, computed once and kept on the disk by content: the way to work without a GPU."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Literal

import torch
from safetensors import SafetensorError
from safetensors.torch import load as load_tensors
from safetensors.torch import save as save_tensors
from torch import Tensor, nn

from paretoda.data import DomainPair
from paretoda.data.index_cache import cache_folder
from paretoda.data.samples import fingerprint
from paretoda.evaluation.predictions import evaluation_mode
from paretoda.training.files import whole_file

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
        for inputs in pair.whole("all-source" if domain == "source" else "all-target", 32):
            rows.append(network(inputs.to(device)).cpu())
            done += len(inputs)
            if told is not None:
                told(f"features of the {domain}", done, total)
    features = torch.cat(rows)
    with whole_file(path) as file:
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
