"""Suites of tasks: the files of source and target, and the settings that the protocol fixes."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from paretoda.bench.paper_numbers import (
    GTA5_CLASSES_PAPER,
    GTA5_PAPER,
    OFFICE31_PAPER,
    OFFICE31_STDS,
    OFFICE_HOME_PAPER,
    OFFICE_HOME_STDS,
    VISDA_CLASSES_PAPER,
    VISDA_PAPER,
)
from paretoda.core.options import unknown
from paretoda.data.open.decoding import ARCHIVES
from paretoda.errors import DataError
from paretoda.tasks.regression.suites import REGRESSION_SUITES
from paretoda.tasks.segmentation.suites import SEGMENTATION_SUITES
from paretoda.tasks.suites import Part, Suite, SuiteTask, make_pairs, make_sources

_PROTOCOL: dict[str, Any] = {"image_size": 224, "augment": "standard", "lr": 0.03, "weight_decay": 1e-4}
"""From the paper's appendix, which does not state batch size and number of steps; presets have these and others.

Its rate of 0.003 is read as the pretrained network's, of which our `lr`, the rate of new layers, is ten times as much.
"""
_VISDA_SETTINGS = {"backbone": "resnet101", **_PROTOCOL, "augment": "flip"}
"""On VisDA-2017 the released script and TLL train on the middle of the images."""
_OFFICE = {"A": "amazon", "C": "caltech10", "D": "dslr", "W": "webcam"}
_PACS = {"A": "art_painting", "C": "cartoon", "P": "photo"}
_FROZEN: dict[str, Any] = {
    "frozen": True,
    "backbone": "efficientnet-lite0",
    "backbone_weights": "weights/efficientnet-lite0.safetensors",
}
_SENTIMENT = {"A": "amazon", "M": "movies", "N": "nyt", "T": "tweets"}
_LENET = {"backbone": "lenet", "image_size": 28}
_NOT_IN_MNIST_M = 54_000


def _domains(suite: str, **names: str) -> dict[str, Part]:
    """Return letters of a domain in papers -> its place."""
    return {letters: Part(domain, benchmark=suite) for letters, domain in names.items()}


_OFFICE31 = _domains("office31", A="amazon", D="dslr", W="webcam")
_OFFICE_HOME = _domains("office-home", Ar="Art", Cl="Clipart", Pr="Product", Rw="Real World")
_VISDA = _domains("visda2017", T="train", V="validation")

PAPER_SUITES: dict[str, Suite] = {
    "office31": Suite(
        "Office-31 images, ResNet-50 with your --backbone-weights; beside the paper's numbers.",
        make_pairs(_OFFICE31, backbone="resnet50", **_PROTOCOL),
        references=OFFICE31_PAPER,
        reference_stds=OFFICE31_STDS,
    ),
    "office-home": Suite(
        "Office-Home images, ResNet-50 with your --backbone-weights; beside the paper's numbers.",
        make_pairs(_OFFICE_HOME, backbone="resnet50", **_PROTOCOL),
        references=OFFICE_HOME_PAPER,
        reference_stds=OFFICE_HOME_STDS,
    ),
    "visda2017": Suite(
        "VisDA-2017 images, ResNet-101 with your --backbone-weights; mean over classes, beside the paper's numbers.",
        {"train-validation": SuiteTask(_VISDA["T"], _VISDA["V"], _VISDA_SETTINGS)},
        measure="mean_class_accuracy",
        references=VISDA_PAPER,
        class_references=VISDA_CLASSES_PAPER,
    ),
}
"""Name -> suite."""


def _features(folder: str, domains: Mapping[str, str], kind: str) -> dict[str, SuiteTask]:
    return make_pairs({letter: Part(f"{folder}/{name}-{kind}.npz") for letter, name in domains.items()})


SUITES: dict[str, Suite] = {
    "digits": Suite(
        "Digits printed in fonts to real handwriting; embedded, needs no files.",
        {"printed-handwritten": SuiteTask(Part("printed"), Part("handwritten"), {"backbone": "cnn", "image_size": 8})},
    ),
    "mnist-usps": Suite(
        "MNIST, USPS and MNIST-M with a LeNet; M-U small has 2,000 + 1,800 images.",
        {
            "M-U small": SuiteTask(Part("digits/mnist-train.npz", 2000), Part("digits/usps-train.npz", 1800), _LENET),
            "U-M small": SuiteTask(Part("digits/usps-train.npz", 1800), Part("digits/mnist-train.npz", 2000), _LENET),
            "M-N small": SuiteTask(
                Part("digits/mnist-train.npz", 2000, of=_NOT_IN_MNIST_M), Part("digits/mnistm-train.npz", 2000), _LENET
            ),
            "M-U": SuiteTask(Part("digits/mnist-train.npz"), Part("digits/usps-train.npz"), _LENET),
            "U-M": SuiteTask(Part("digits/usps-train.npz"), Part("digits/mnist-train.npz"), _LENET),
            "M-N": SuiteTask(
                Part("digits/mnist-train.npz", of=_NOT_IN_MNIST_M), Part("digits/mnistm-train.npz"), _LENET
            ),
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
        make_pairs(
            {letter: Part(f"office-caltech10/images-160px/{name}") for letter, name in _OFFICE.items()},
            image_size=160,
            **_FROZEN,
        ),
    ),
    "pacs-jpeg": Suite(
        "PACS without sketch from the JPEG folders, frozen EfficientNet-Lite0.",
        make_pairs(
            {letter: Part(f"pacs/images-144px/{name}") for letter, name in _PACS.items()},
            image_size=144,
            **_FROZEN,
        ),
    ),
    "sentiment": Suite(
        "Sentences of Amazon, movie reviews, NYT, tweets as TF-IDF vectors, made by benchmarks/sentiment.py.",
        make_pairs({letter: Part(f"sentiment/{name}.npz") for letter, name in _SENTIMENT.items()}),
    ),
    "office31-jpeg": Suite(
        "Office-31 from the JPEG folders, frozen EfficientNet-Lite0; beside the paper's numbers.",
        make_pairs(
            {letter: Part(f"office31/images-200px/{_OFFICE[letter]}/images") for letter in "ADW"},
            image_size=224,
            **_FROZEN,
        ),
        references=OFFICE31_PAPER,
        reference_stds=OFFICE31_STDS,
    ),
    **REGRESSION_SUITES,
    **PAPER_SUITES,
    **SEGMENTATION_SUITES,
    "gta5-cityscapes": replace(
        SEGMENTATION_SUITES["gta5-cityscapes"], references=GTA5_PAPER, class_references=GTA5_CLASSES_PAPER
    ),
}
"""Name -> suite."""


def _pick_tasks(wanted: Mapping[str, tuple[str, str]]) -> dict[str, SuiteTask]:
    """Return tasks of other suites, given prefix -> (suite, names separated by commas)."""
    return {
        f"{prefix} {name}": SUITES[suite].tasks[name]
        for prefix, (suite, names) in wanted.items()
        for name in names.split(", ")
    }


SUITES["development"] = Suite(
    "The tasks that choices are made on: four each of PACS and SURF, small MNIST-USPS.",
    _pick_tasks(
        {
            "pacs": ("pacs", "A-C, C-A, P-A, P-C"),
            "surf": ("office-caltech10", "A-C, A-W, C-A, D-A"),
            "digits": ("mnist-usps", "M-U small"),
        }
    ),
)
SUITES["confirmation"] = Suite(
    "PACS with photo, SURF with D or W, small U-M and M-N: the first default was confirmed on them; now for choices.",
    _pick_tasks(
        {
            "pacs": ("pacs", "A-P, C-P, P-A, P-C"),
            "surf": ("office-caltech10", "A-D, A-W, C-D, C-W, D-A, D-C, D-W, W-A, W-C, W-D"),
            "digits": ("mnist-usps", "U-M small, M-N small"),
        }
    ),
)
SUITES["pacs-sources"] = Suite(
    "PACS without sketch, from two domains to the third; stored EfficientNet-Lite0 features.",
    make_sources({letter: Part(f"pacs/{name}-effnetlite0.npz") for letter, name in _PACS.items()}),
)
SUITES["digits-sources"] = Suite(
    "Digits printed without and with serifs, two sources, to real handwriting; embedded, needs no files.",
    {
        "sans+serif-handwritten": SuiteTask(
            (Part("printed-sans"), Part("printed-serif")), Part("handwritten"), {"backbone": "cnn", "image_size": 8}
        )
    },
)
SUITES["small-targets"] = Suite(
    "PACS and SURF A-C and C-A with 75, 150, 300 and 600 samples of the target.",
    {
        f"{name} {count}": replace(task, target=replace(task.target, take=count))
        for count in (75, 150, 300, 600)
        for name, task in SUITES["development"].tasks.items()
        if name.endswith((" A-C", " C-A"))
    },
)
_PACS_KNOWN, _PACS_OTHERS = ("dog", "elephant", "giraffe", "guitar"), ("horse", "house", "person")
_OFFICE31_SHARED = (
    *("back_pack", "bike", "calculator", "headphones", "keyboard", "laptop_computer", "monitor", "mouse", "mug"),
    "projector",
)
"""The ten classes of Office-31 that Caltech-256 has as well: those of the target in its partial tasks, and the known
ones in its open tasks."""
_OFFICE31_UNKNOWN = (
    *("pen", "phone", "printer", "punchers", "ring_binder", "ruler", "scissors", "speaker", "stapler"),
    *("tape_dispenser", "trash_can"),
)
"""The last eleven classes of Office-31 in alphabetical order: the unknown ones in its open tasks."""


def _take_part(tasks: Mapping[str, SuiteTask], known: tuple[str, ...]) -> dict[str, SuiteTask]:
    """Return the tasks with a target that has some of the classes only."""
    return {name: replace(task, target=replace(task.target, classes=known)) for name, task in tasks.items()}


def _open_up(tasks: Mapping[str, SuiteTask], known: tuple[str, ...], unknown: tuple[str, ...]) -> dict[str, SuiteTask]:
    """Return the tasks with a source that has some of the classes only, and a target that has others as well."""

    def open_up(task: SuiteTask) -> SuiteTask:
        assert isinstance(task.source, Part)
        target = replace(task.target, classes=known, unknown=unknown)
        return replace(task, source=replace(task.source, classes=known), target=target)

    return {name: open_up(task) for name, task in tasks.items()}


SUITES["pacs-partial"] = Suite(
    "PACS features; the target has dog, elephant, giraffe and guitar only, the source all seven classes.",
    _take_part(SUITES["pacs"].tasks, _PACS_KNOWN),
)
SUITES["pacs-open"] = Suite(
    "PACS features; the source has dog, elephant, giraffe and guitar, horse, house and person are new in the target.",
    _open_up(SUITES["pacs"].tasks, _PACS_KNOWN, _PACS_OTHERS),
    measure="h_score",
)
SUITES["office31-partial"] = Suite(
    "Office-31 JPEGs, frozen EfficientNet-Lite0; the target has the ten classes that Caltech-256 has, the source all.",
    _take_part(SUITES["office31-jpeg"].tasks, _OFFICE31_SHARED),
)
SUITES["office31-open"] = Suite(
    "Office-31 JPEGs, frozen EfficientNet-Lite0; ten known classes, and the last eleven are new in the target.",
    _open_up(SUITES["office31-jpeg"].tasks, _OFFICE31_SHARED, _OFFICE31_UNKNOWN),
    measure="h_score",
)
SUITES["few-labels"] = Suite(
    "PACS and SURF A-C and C-A with the labels of 1, 3, 5 and 10 target samples of each class.",
    {
        f"{name} {count}": replace(task, labels=count)
        for count in (1, 3, 5, 10)
        for name, task in SUITES["development"].tasks.items()
        if name.endswith((" A-C", " C-A"))
    },
)
_COMPARED = _pick_tasks(
    {
        "pacs": ("pacs", "P-A, P-C"),
        "surf": ("office-caltech10", "A-W, D-A"),
        "digits": ("mnist-usps", "M-U small, U-M small"),
    }
)
SUITES["comparison"] = Suite(
    "Six tasks that every method is compared on, two each of PACS, SURF and digits (batches of 32 there); only M-U "
    "was used for choices.",
    {
        name: replace(task, settings={**task.settings, "batch_size": 32}) if name.startswith("digits") else task
        for name, task in _COMPARED.items()
    },
)


def find_suite(name: str) -> Suite:
    """Return the suite of that name; raise DataError if there is none."""
    if name not in SUITES:
        raise DataError(unknown("suite", name, SUITES))
    return SUITES[name]


def find_data_folder(given: str | Path | None = None) -> Path:
    """Return the folder of the suites' files: the one that is given, $PARETODA_DATA, or ../shared/data."""
    folder = Path(given or os.environ.get("PARETODA_DATA") or "../shared/data").expanduser()
    if folder.is_file() and folder.suffix.lower() in ARCHIVES:
        raise DataError(f"{folder} is an archive; unpack it and give --data the folder that it was unpacked into")
    if not folder.is_dir():
        raise DataError(f"there is no folder {folder} with the suite's data; name it with --data or $PARETODA_DATA")
    return folder
