"""Suites of tasks: which files are the source, which the target, and what the protocol fixes."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from paretoda.bench.paper_suites import PAPER_SUITES
from paretoda.bench.scene_suites import SCENE_SUITES
from paretoda.bench.tasks import Part, Suite, Task, pairs
from paretoda.core.names import unknown
from paretoda.data.errors import DataError

__all__ = ["SUITES", "Part", "Suite", "Task", "data_folder", "find_suite"]


_OFFICE = {"A": "amazon", "C": "caltech10", "D": "dslr", "W": "webcam"}
_PACS = {"A": "art_painting", "C": "cartoon", "P": "photo"}
_LENET = {"backbone": "lenet", "image_size": 28}
_NOT_IN_MNIST_M = 54_000


def _features(folder: str, domains: Mapping[str, str], kind: str) -> dict[str, Task]:
    return pairs({letter: Part(f"{folder}/{name}-{kind}.npz") for letter, name in domains.items()})


SUITES: dict[str, Suite] = {
    "digits": Suite(
        "Digits printed in fonts to real handwriting; embedded, needs no files.",
        {"printed-handwritten": Task(Part("printed"), Part("handwritten"), {"backbone": "cnn", "image_size": 8})},
    ),
    "mnist-usps": Suite(
        "MNIST, USPS and MNIST-M with a LeNet; M-U small has 2,000 + 1,800 images.",
        {
            "M-U small": Task(Part("digits/mnist-train.npz", 2000), Part("digits/usps-train.npz", 1800), _LENET),
            "U-M small": Task(Part("digits/usps-train.npz", 1800), Part("digits/mnist-train.npz", 2000), _LENET),
            "M-N small": Task(
                Part("digits/mnist-train.npz", 2000, of=_NOT_IN_MNIST_M), Part("digits/mnistm-train.npz", 2000), _LENET
            ),
            "M-U": Task(Part("digits/mnist-train.npz"), Part("digits/usps-train.npz"), _LENET),
            "U-M": Task(Part("digits/usps-train.npz"), Part("digits/mnist-train.npz"), _LENET),
            "M-N": Task(Part("digits/mnist-train.npz", of=_NOT_IN_MNIST_M), Part("digits/mnistm-train.npz"), _LENET),
        },
    ),
    "pacs": Suite("PACS without sketch, stored EfficientNet-Lite0 features.", _features("pacs", _PACS, "effnetlite0")),
    "office-caltech10": Suite("Office-Caltech-10, SURF histograms.", _features("office-caltech10", _OFFICE, "surf")),
    "office-caltech10-deep": Suite(
        "Office-Caltech-10, stored EfficientNet-Lite0 features: little headroom.",
        _features("office-caltech10", _OFFICE, "effnetlite0"),
    ),
    "office-caltech10-jpeg": Suite(
        "Office-Caltech-10 from the JPEG folders, frozen EfficientNet-Lite0.",
        pairs(
            {letter: Part(f"office-caltech10/images-160px/{name}") for letter, name in _OFFICE.items()},
            frozen=True,
            backbone="efficientnet-lite0",
            image_size=160,
            backbone_weights="weights/efficientnet-lite0.safetensors",
        ),
    ),
    **PAPER_SUITES,
    **SCENE_SUITES,
}
"""Name -> suite."""


def _chosen(wanted: Mapping[str, tuple[str, str]]) -> dict[str, Task]:
    """Tasks out of other suites, as prefix -> (suite, names separated by commas)."""
    return {
        f"{prefix} {name}": SUITES[suite].tasks[name]
        for prefix, (suite, names) in wanted.items()
        for name in names.split(", ")
    }


SUITES["development"] = Suite(
    "The tasks that choices are made on: PACS and SURF A-C, C-A, small MNIST-USPS.",
    _chosen(
        {
            "pacs": ("pacs", "A-C, C-A"),
            "surf": ("office-caltech10", "A-C, C-A"),
            "digits": ("mnist-usps", "M-U small"),
        }
    ),
)
SUITES["confirmation"] = Suite(
    "The tasks that no choice was made on: PACS with photo, SURF with D or W, small U-M and M-N.",
    _chosen(
        {
            "pacs": ("pacs", "A-P, C-P, P-A, P-C"),
            "surf": ("office-caltech10", "A-D, A-W, C-D, C-W, D-A, D-C, D-W, W-A, W-C, W-D"),
            "digits": ("mnist-usps", "U-M small, M-N small"),
        }
    ),
)
_COMPARED = _chosen(
    {
        "pacs": ("pacs", "P-A, P-C"),
        "surf": ("office-caltech10", "A-W, D-A"),
        "digits": ("mnist-usps", "M-U small, U-M small"),
    }
)
SUITES["comparison"] = Suite(
    "Six tasks that every method is compared on, two each of PACS, SURF and digits (batches of 32 there); only M-U "
    "served for choices.",
    {
        name: replace(task, settings={**task.settings, "batch_size": 32}) if name.startswith("digits") else task
        for name, task in _COMPARED.items()
    },
)


def find_suite(name: str) -> Suite:
    """The suite of that name."""
    if name not in SUITES:
        raise DataError(unknown("suite", name, SUITES))
    return SUITES[name]


def data_folder(given: str | Path | None = None) -> Path:
    """Where the suites' files are: what is given, $PARETODA_DATA, or ../shared/data."""
    folder = Path(given or os.environ.get("PARETODA_DATA") or "../shared/data").expanduser()
    if not folder.is_dir():
        raise DataError(f"there is no folder {folder} with the suite's data; name it with --data or $PARETODA_DATA")
    return folder
