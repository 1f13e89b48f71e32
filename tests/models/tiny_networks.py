"""Networks of transformers small enough to be made, saved and trained in a test."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import torch

_VIT = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 32}
CONFIGS: dict[str, dict[str, Any]] = {
    "dinov2": {**_VIT, "image_size": 28, "patch_size": 14},
    "vit": {**_VIT, "image_size": 32, "patch_size": 8},
    "convnext": {"hidden_sizes": [8, 8, 16, 24], "depths": [1, 1, 1, 1]},
    "resnet": {"embedding_size": 8, "hidden_sizes": [8, 16], "depths": [1, 1], "layer_type": "basic"},
    "pvt_v2": {"hidden_sizes": [8, 8, 16, 16], "depths": [1, 1, 1, 1], "num_attention_heads": [1, 1, 2, 2]},
}
"""Type -> its configuration: class token, class token with an untrained pooling layer, pooled map twice, plain map."""
SIZES = {"dinov2": 28, "vit": 32}


def size(kind: str) -> int:
    """Side of the images that a test gives it."""
    return SIZES.get(kind, 64)


def saved(folder: Path, kind: str = "vit", *, classifier: bool = False, **config: Any) -> Path:
    """A folder as the hub has them, with weights drawn anew.

    Args:
        folder: to make.
        kind: a key of `CONFIGS`.
        classifier: the file is that of an image classifier, with its head and its prefixes.
        config: what differs.
    """
    from transformers import CONFIG_MAPPING, AutoModel, AutoModelForImageClassification
    from transformers.utils import logging

    logging.disable_progress_bar()
    torch.manual_seed(1)
    made = CONFIG_MAPPING[kind](**{**CONFIGS[kind], **config})
    network = (AutoModelForImageClassification if classifier else AutoModel).from_config(made)
    with torch.no_grad():
        for parameter in network.parameters():
            parameter.normal_(std=0.1)
    network.save_pretrained(folder)
    return folder


def change(path: Path, **values: Any) -> None:
    """Write other values into a JSON file."""
    known = json.loads(path.read_text()) if path.exists() else {}
    path.write_text(json.dumps({**known, **values}))
