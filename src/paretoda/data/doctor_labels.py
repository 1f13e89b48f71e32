"""The doctor on labels: counts, imbalance, rare and absent classes."""

from __future__ import annotations

import numpy as np

from paretoda.data.findings import Finding
from paretoda.data.labels import listed
from paretoda.data.samples import Samples

_IMBALANCE = 10
_RARE = 5


def about_labels(source: Samples) -> list[Finding]:
    """How many samples each class has, and whether that is enough and even."""
    if source.labels is None:
        return []
    classes = source.labels.classes
    counts = np.bincount(source.labels.values, minlength=len(classes))
    shown = listed([f"{name} {count}" for name, count in zip(classes, counts, strict=True)])
    found = [Finding("info", "source", f"The source has {len(source)} samples of {len(classes)} classes: {shown}.")]
    absent = [name for name, count in zip(classes, counts, strict=True) if count == 0]
    if absent:
        text = f"These classes have no source sample: {listed(absent)}; the model will hardly ever predict them."
        found.append(Finding("warning", "source", text))
    rare = [name for name, count in zip(classes, counts, strict=True) if 0 < count < _RARE]
    if rare:
        text = f"These classes have fewer than {_RARE} samples: {listed(rare)}; collect more, or merge classes."
        found.append(Finding("warning", "source", text))
    least, most = counts[counts > 0].min(), counts.max()
    if most > _IMBALANCE * least:
        text = f"The largest class has {most} samples, the smallest {least}; consider class_balanced batches."
        found.append(Finding("warning", "source", text))
    return found
