"""Benchmark suites of regression, which need no files; their tables show R², of which 100 % is perfect."""

from __future__ import annotations

from typing import Any

from paretoda.tasks import REGRESSION
from paretoda.tasks.suites import Part, Suite, SuiteTask

_IMAGES: dict[str, Any] = {"backbone": "cnn", "image_size": 16}

REGRESSION_SUITES: dict[str, Suite] = {
    "turned-digits": Suite(
        "The angle of turned digits, printed to handwritten ones, plain or cluttered; embedded, needs no files.",
        {
            "printed-handwritten": SuiteTask(Part("turned-printed"), Part("turned-handwritten"), _IMAGES),
            "printed-cluttered": SuiteTask(Part("turned-printed"), Part("turned-cluttered"), _IMAGES),
        },
        measure="r2",
        task=REGRESSION,
    ),
    "diabetes": Suite(
        "Progression of diabetes, between patients of other body mass or age; embedded, needs no files.",
        {
            f"{one}-{other}": SuiteTask(Part(f"diabetes-{one}"), Part(f"diabetes-{other}"))
            for one, other in (("slim", "heavy"), ("heavy", "slim"), ("young", "old"), ("old", "young"))
        },
        measure="r2",
        task=REGRESSION,
    ),
}
"""Name -> suite."""
