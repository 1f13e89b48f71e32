"""The paper's own suites, Office-31, Office-Home and VisDA-2017, for those who have the images; with its numbers."""

from __future__ import annotations

from typing import Any

from paretoda.bench.paper_numbers import OFFICE31_PAPER, OFFICE_HOME_PAPER, VISDA_CLASSES_PAPER, VISDA_PAPER
from paretoda.bench.tasks import Part, Suite, Task, pairs

_PROTOCOL: dict[str, Any] = {"image_size": 224, "augment": "standard", "lr": 0.003, "weight_decay": 1e-4}
"""Of the paper's appendix; its batch size and number of steps are not told. `--preset` has these and others."""
_MIDDLE = {"augment": "flip"}
"""On VisDA-2017 the released script, and TLL, train on the middle of the images."""


def _domains(suite: str, **names: str) -> dict[str, Part]:
    """The letters that papers give the domains -> where they are."""
    return {letters: Part(domain, benchmark=suite) for letters, domain in names.items()}


_OFFICE31 = _domains("office31", A="amazon", D="dslr", W="webcam")
_OFFICE_HOME = _domains("office-home", Ar="Art", Cl="Clipart", Pr="Product", Rw="Real World")
_VISDA = _domains("visda2017", T="train", V="validation")

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
        {"train-validation": Task(_VISDA["T"], _VISDA["V"], {"backbone": "resnet101", **_PROTOCOL, **_MIDDLE})},
        measure="mean_class_accuracy",
        references=VISDA_PAPER,
        class_references=VISDA_CLASSES_PAPER,
    ),
}
"""Name -> suite."""
