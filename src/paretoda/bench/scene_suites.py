"""Suites of segmentation: drawn streets, CamVid, and the paper's GTA5 to Cityscapes for those who have the images."""

from __future__ import annotations

from typing import Any

from paretoda.bench.tasks import Part, References, Suite, Task

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
"""Of AdvEnt's code, with two images of each domain, which BatchNorm and the marginal of TCM want."""
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
"""Table 4 of Lv et al. (2021), mean IoU of 19 classes; its row CBST is of another network (ResNet-38)."""


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
            f"flat-muted-{look}": Task(
                Part("driving/1/0", 200), Part(f"driving/0/1/{look}", 200), _SMALL, Part(f"driving/0/2/{look}", 100)
            )
            for look in ("up", "down")
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
