"""The paper's own suites, Office-31, Office-Home and VisDA-2017, for those who have the images; with its numbers.

The numbers are those of Lv et al., "Pareto Domain Adaptation" (2021), tables 1 to 3. Its fifth column of Office-31 is
headed "D:W" a second time and is D-A. Its rows "CDAN" are what the CDAN paper calls CDAN+E on the first two suites.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from paretoda.bench.tasks import Part, Suite, Task, pairs

_PROTOCOL: dict[str, Any] = {"image_size": 224, "augment": "standard", "lr": 0.003, "weight_decay": 1e-4}
"""Of the paper's appendix; its batch size and number of steps are not told."""


def _published(columns: Sequence[str], rows: dict[str, str]) -> dict[str, dict[str, float]]:
    """Rows of percentages as fractions; each row has one for every column."""
    return {
        f"{name} (paper)": {
            column: round(float(value) / 100, 3) for column, value in zip(columns, values.split(), strict=True)
        }
        for name, values in rows.items()
    }


def _office31(domain: str) -> Part:
    """The official archive has the classes below `images`, others left that folder out, or give a list."""
    return Part(f"office31/{domain}/images", others=(f"office31/{domain}", f"office31/{domain}.txt"))


def _office_home(*names: str) -> Part:
    """People write the last domain in several ways; lists have the same names."""
    places = [f"office-home/{name}" for name in names]
    return Part(places[0], others=(*places[1:], *(f"{place}.txt" for place in places)))


def _visda(part: str) -> Part:
    return Part(f"visda2017/{part}", others=(f"visda2017/{part}.txt",))


_OFFICE31 = {"A": _office31("amazon"), "D": _office31("dslr"), "W": _office31("webcam")}
_OFFICE_HOME = {
    "Ar": _office_home("Art"),
    "Cl": _office_home("Clipart"),
    "Pr": _office_home("Product"),
    "Rw": _office_home("Real World", "RealWorld", "Real_World"),
}

OFFICE31_PAPER = _published(
    ("A-W", "D-W", "W-D", "A-D", "D-A", "W-A"),
    {
        "ResNet-50": "68.4 96.7 99.3 68.9 62.5 60.7",
        "DANN": "82.0 96.9 99.1 79.7 68.2 67.4",
        "DANN + ParetoDA": "95.5 98.7 100.0 93.8 76.7 76.3",
        "CDAN": "94.1 98.6 100.0 92.9 71.0 69.3",
        "CDAN + ParetoDA": "95.0 98.9 100.0 95.4 77.6 75.7",
        "MDD": "93.5 98.4 100.0 94.5 74.6 72.2",
        "MDD + ParetoDA": "95.4 98.9 100.0 94.4 76.2 75.8",
    },
)
OFFICE_HOME_PAPER = _published(
    ("Ar-Cl", "Ar-Pr", "Ar-Rw", "Cl-Ar", "Cl-Pr", "Cl-Rw", "Pr-Ar", "Pr-Cl", "Pr-Rw", "Rw-Ar", "Rw-Cl", "Rw-Pr"),
    {
        "ResNet-50": "34.9 50.0 58.0 37.4 41.9 46.2 38.5 31.2 60.4 53.9 41.2 59.9",
        "MDD": "54.9 73.7 77.8 60.0 71.4 71.8 61.2 53.6 78.1 72.5 60.2 82.3",
        "DANN": "45.6 59.3 70.1 47.0 58.5 60.9 46.1 43.7 68.5 63.2 51.8 76.8",
        "DANN + ParetoDA": "55.2 74.4 79.0 61.9 72.4 72.9 62.1 55.8 81.1 74.4 61.1 82.4",
        "CDAN": "50.7 70.6 76.0 57.6 70.0 70.0 57.4 50.9 77.3 70.9 56.7 81.6",
        "CDAN + ParetoDA": "56.8 75.9 80.5 64.4 73.5 73.7 65.6 55.2 81.3 75.2 61.1 83.9",
    },
)
VISDA_PAPER = _published(
    ("train-validation",),
    {"ResNet-101": "52.4", "DANN": "57.4", "DANN + ParetoDA": "82.4", "CDAN": "73.9", "CDAN + ParetoDA": "83.2"},
)
VISDA_CLASSES_PAPER = _published(
    (
        *("aeroplane", "bicycle", "bus", "car", "horse", "knife"),
        *("motorcycle", "person", "plant", "skateboard", "train", "truck"),
    ),
    {
        "ResNet-101": "55.1 53.3 61.9 59.1 80.6 17.9 79.7 31.2 81.0 26.5 73.5 8.5",
        "DANN": "81.9 77.7 82.8 44.3 81.2 29.5 65.1 28.6 51.9 54.6 82.8 7.8",
        "DANN + ParetoDA": "95.3 82.4 82.9 56.2 92.6 95.0 87.1 81.1 90.2 90.8 87.8 46.7",
        "CDAN": "85.2 66.9 83.0 50.8 84.2 74.9 88.1 74.5 83.4 76.0 81.9 38.0",
        "CDAN + ParetoDA": "95.9 82.8 81.3 58.7 93.9 93.7 85.9 83.0 91.9 92.0 87.1 51.8",
    },
)

PAPER_SUITES: dict[str, Suite] = {
    "office31": Suite(
        "Office-31 images, ResNet-50 with your --backbone-weights; beside the paper's numbers.",
        pairs(_OFFICE31, backbone="resnet50", **_PROTOCOL),
        references=OFFICE31_PAPER,
    ),
    "office-home": Suite(
        "Office-Home images, ResNet-50 with your --backbone-weights; beside the paper's numbers.",
        pairs(_OFFICE_HOME, backbone="resnet50", **_PROTOCOL),
        references=OFFICE_HOME_PAPER,
    ),
    "visda2017": Suite(
        "VisDA-2017 images, ResNet-101 with your --backbone-weights; mean over classes, beside the paper's numbers.",
        {"train-validation": Task(_visda("train"), _visda("validation"), {"backbone": "resnet101", **_PROTOCOL})},
        measure="mean_class_accuracy",
        references=VISDA_PAPER,
        class_references=VISDA_CLASSES_PAPER,
    ),
}
"""Name -> suite."""
