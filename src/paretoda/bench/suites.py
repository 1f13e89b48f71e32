"""Suites of tasks: the files of source and target, and the settings that the protocol fixes."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from itertools import permutations
from pathlib import Path
from typing import Any

from paretoda.bench.paper_numbers import OFFICE31_PAPER, OFFICE_HOME_PAPER, VISDA_CLASSES_PAPER, VISDA_PAPER
from paretoda.core.options import unknown
from paretoda.errors import DataError

References = Mapping[str, Mapping[str, float]]
"""Published numbers: name -> column -> fraction."""


@dataclass(frozen=True)
class Part:
    """One domain of a task.

    Args:
        path: An .npz, a folder or a list file below the folder of the data; the name of an embedded domain; or, of one
            of the paper's benchmarks, the name of the domain in facts.toml.
        take: Number of samples, drawn with a fixed seed; None for all.
        of: Number of samples, from the first on, that may be drawn (MNIST-M is made of the last digits of MNIST); None
            for all.
        benchmark: The paper's benchmark that the domain belongs to, in any layout; None for other suites.
    """

    path: str
    take: int | None = None
    of: int | None = None
    benchmark: str | None = None


@dataclass(frozen=True)
class Task:
    """From one domain to another.

    Args:
        source: The labelled domain.
        target: The unlabelled domain; its labels are used for the table only.
        settings: Settings of every run on this task.
        test: Images that a segmenter is measured on; their labels are used for the table only.
    """

    source: Part
    target: Part
    settings: Mapping[str, Any] = field(default_factory=dict)
    test: Part | None = None


@dataclass(frozen=True)
class Suite:
    """Tasks that are reported together.

    Args:
        about: One line about the suite.
        tasks: Name -> task.
        measure: The measure of its tables: "accuracy", "mean_class_accuracy" or, in segmentation, "miou".
        references: Published numbers, with a column for each task.
        class_references: Published numbers with a column for each class, for a suite with one task.
    """

    about: str
    tasks: Mapping[str, Task]
    measure: str = "accuracy"
    references: References = field(default_factory=dict)
    class_references: References = field(default_factory=dict)

    @property
    def kind(self) -> str:
        """The kind of its tasks: classification or segmentation."""
        return "segmentation" if self.measure == "miou" else "classification"


def make_pairs(parts: Mapping[str, Part], **settings: Any) -> dict[str, Task]:
    """Return a task for every ordered pair of domains, named by their letters."""
    return {f"{a}-{b}": Task(parts[a], parts[b], settings) for a, b in permutations(parts, 2)}


_PROTOCOL: dict[str, Any] = {"image_size": 224, "augment": "standard", "lr": 0.003, "weight_decay": 1e-4}
"""From the paper's appendix, which does not state batch size and number of steps; presets have these and others."""
_CENTRE_CROP = {"augment": "flip"}
"""On VisDA-2017 the released script and TLL train on the middle of the images."""


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
    ),
    "office-home": Suite(
        "Office-Home images, ResNet-50 with your --backbone-weights; beside the paper's numbers.",
        make_pairs(_OFFICE_HOME, backbone="resnet50", **_PROTOCOL),
        references=OFFICE_HOME_PAPER,
    ),
    "visda2017": Suite(
        "VisDA-2017 images, ResNet-101 with your --backbone-weights; mean over classes, beside the paper's numbers.",
        {"train-validation": Task(_VISDA["T"], _VISDA["V"], {"backbone": "resnet101", **_PROTOCOL, **_CENTRE_CROP})},
        measure="mean_class_accuracy",
        references=VISDA_PAPER,
        class_references=VISDA_CLASSES_PAPER,
    ),
}
"""Name -> suite."""


_SMALL = {"task": "segmentation", "size": "160x120"}
_PAPER: dict[str, Any] = {
    "task": "segmentation",
    "backbone": "deeplab-resnet101",
    "size": "1024x512",
    "source_size": "1280x720",
    "convention": "caffe",
    "augment": "none",
    "class_weights": "none",
    "batch_size": 2,
    "levels": 2,
}
"""From AdvEnt's code, but with two images of each domain, for BatchNorm and the marginal of TCM."""
GTA5_PAPER: References = {
    f"{name} (paper)": {"GTA5-Cityscapes": value / 100}
    for name, value in {
        "ResNet-101": 36.6,
        "AdaSegNet": 42.4,
        "CyCADA": 42.7,
        "CLAN": 43.2,
        "AdvEnt": 43.8,
        "AdvEnt + ParetoDA": 46.1,
        "FDA": 44.6,
        "FDA + ParetoDA": 47.2,
        "CBST": 45.2,
        "CBST + ParetoDA": 48.1,
    }.items()
}
"""Table 4 of Lv et al. (2021), mean IoU of 19 classes; its row CBST uses another network (ResNet-38)."""


def _camvid(split: str, *lights: str) -> str:
    return "+".join(f"camvid/{split}-{light}-120x160.npz" for light in lights)


SCENE_SUITES: dict[str, Suite] = {
    "driving": Suite(
        "Drawn streets: flat and saturated ones to muted, textured ones; embedded, needs no files.",
        {"flat-muted": Task(Part("driving/1/0", 200), Part("driving/0/1", 200), _SMALL, Part("driving/0/2", 100))},
        measure="miou",
    ),
    "driving-tilted": Suite(
        "Drawn streets, as `driving`, but the target's camera looks up, or down: the classes have other frequencies.",
        {
            f"flat-muted-{tilt}": Task(
                Part("driving/1/0", 200), Part(f"driving/0/1/{tilt}", 200), _SMALL, Part(f"driving/0/2/{tilt}", 100)
            )
            for tilt in ("up", "down")
        },
        measure="miou",
    ),
    "camvid": Suite(
        "Drawn streets to CamVid at 160x120, a small network; mean IoU of 11 classes on its test images.",
        {
            "driving-camvid": Task(
                Part("driving/0.5/0", 500),
                Part(_camvid("train", "day", "dusk")),
                _SMALL,
                Part(_camvid("test", "day", "dusk")),
            )
        },
        measure="miou",
    ),
    "camvid-dusk": Suite(
        "CamVid by day to CamVid at dusk at 160x120, a small network; mean IoU of 11 classes.",
        {
            "day-dusk": Task(
                Part(f"{_camvid('train', 'day')}+{_camvid('val', 'day')}+{_camvid('test', 'day')}"),
                Part(_camvid("train", "dusk")),
                _SMALL,
                Part(_camvid("test", "dusk")),
            )
        },
        measure="miou",
    ),
    "gta5-cityscapes": Suite(
        "GTA5 to Cityscapes, DeepLab-v2 with your --backbone-weights; mean IoU beside the paper's numbers.",
        {"GTA5-Cityscapes": Task(Part("GTA5"), Part("Cityscapes"), _PAPER, Part("Cityscapes/leftImg8bit/val"))},
        measure="miou",
        references=GTA5_PAPER,
    ),
}
"""Name -> suite."""


__all__ = ["SUITES", "Part", "Suite", "Task", "find_data_folder", "find_suite"]


_OFFICE = {"A": "amazon", "C": "caltech10", "D": "dslr", "W": "webcam"}
_PACS = {"A": "art_painting", "C": "cartoon", "P": "photo"}
_LENET = {"backbone": "lenet", "image_size": 28}
_NOT_IN_MNIST_M = 54_000


def _features(folder: str, domains: Mapping[str, str], kind: str) -> dict[str, Task]:
    return make_pairs({letter: Part(f"{folder}/{name}-{kind}.npz") for letter, name in domains.items()})


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
        make_pairs(
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


def _pick_tasks(wanted: Mapping[str, tuple[str, str]]) -> dict[str, Task]:
    """Return tasks of other suites, given prefix -> (suite, names separated by commas)."""
    return {
        f"{prefix} {name}": SUITES[suite].tasks[name]
        for prefix, (suite, names) in wanted.items()
        for name in names.split(", ")
    }


SUITES["development"] = Suite(
    "The tasks that choices are made on: PACS and SURF A-C, C-A, small MNIST-USPS.",
    _pick_tasks(
        {
            "pacs": ("pacs", "A-C, C-A"),
            "surf": ("office-caltech10", "A-C, C-A"),
            "digits": ("mnist-usps", "M-U small"),
        }
    ),
)
SUITES["confirmation"] = Suite(
    "The tasks that no choice was made on: PACS with photo, SURF with D or W, small U-M and M-N.",
    _pick_tasks(
        {
            "pacs": ("pacs", "A-P, C-P, P-A, P-C"),
            "surf": ("office-caltech10", "A-D, A-W, C-D, C-W, D-A, D-C, D-W, W-A, W-C, W-D"),
            "digits": ("mnist-usps", "U-M small, M-N small"),
        }
    ),
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
    "served for choices.",
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
    if not folder.is_dir():
        raise DataError(f"there is no folder {folder} with the suite's data; name it with --data or $PARETODA_DATA")
    return folder
