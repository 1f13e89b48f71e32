"""Benchmark suites of segmentation: drawn streets, CamVid, GTA5 to Cityscapes."""

from __future__ import annotations

from typing import Any

from paretoda.tasks import SEGMENTATION
from paretoda.tasks.suites import Part, Suite, SuiteTask

_SMALL = {"task": SEGMENTATION, "size": "160x120"}
_IN_CARLA = ("building", "pole", "road", "pavement", "tree", "sign_symbol", "fence", "car")
_GTA5: dict[str, Any] = {
    "task": SEGMENTATION,
    "backbone": "deeplab-resnet101",
    "size": "1024x512",
    "source_size": "1280x720",
    "convention": "caffe",
    "augment": "none",
    "class_weights": "none",
    "batch_size": 2,
    "levels": 2,
    "weight_decay": 1e-4,
}
"""From AdvEnt's code, but with two images of each domain, for BatchNorm and the marginal of TCM, and with the weight
decay that the paper has in all of its experiments (AdvEnt's is 5e-4)."""


def _camvid(split: str, *lights: str) -> str:
    return "+".join(f"camvid/{split}-{light}-120x160.npz" for light in lights)


SEGMENTATION_SUITES: dict[str, Suite] = {
    "driving": Suite(
        "Drawn streets: flat and saturated ones to muted, textured ones; embedded, needs no files.",
        {"flat-muted": SuiteTask(Part("driving/1/0", 200), Part("driving/0/1", 200), _SMALL, Part("driving/0/2", 100))},
        measure="miou",
        task=SEGMENTATION,
    ),
    "driving-tilted": Suite(
        "Drawn streets, as `driving`, but the target's camera looks up, or down: the classes have other frequencies.",
        {
            f"flat-muted-{tilt}": SuiteTask(
                Part("driving/1/0", 200), Part(f"driving/0/1/{tilt}", 200), _SMALL, Part(f"driving/0/2/{tilt}", 100)
            )
            for tilt in ("up", "down")
        },
        measure="miou",
        task=SEGMENTATION,
    ),
    "camvid": Suite(
        "Drawn streets to CamVid at 160x120, a small network; mean IoU of 11 classes on its test images.",
        {
            "driving-camvid": SuiteTask(
                Part("driving/0.5/0", 500),
                Part(_camvid("train", "day", "dusk"), ordered=True),
                _SMALL,
                Part(_camvid("test", "day", "dusk"), ordered=True),
            )
        },
        measure="miou",
        task=SEGMENTATION,
    ),
    "carla-camvid": Suite(
        "Streets of the CARLA simulator to CamVid at 160x120, a small network; mean IoU of their eight common classes.",
        {
            "carla-camvid": SuiteTask(
                Part("carla/carla-160x120"),
                Part(_camvid("train", "day", "dusk"), ordered=True, classes=_IN_CARLA),
                _SMALL,
                Part(_camvid("test", "day", "dusk"), ordered=True, classes=_IN_CARLA),
            ),
            "validation": SuiteTask(
                Part("carla/carla-160x120"),
                Part(_camvid("train", "day"), ordered=True, classes=_IN_CARLA),
                _SMALL,
                Part(_camvid("val", "day"), ordered=True, classes=_IN_CARLA),
            ),
        },
        measure="miou",
        task=SEGMENTATION,
    ),
    "camvid-dusk": Suite(
        "CamVid by day to CamVid at dusk at 160x120, a small network; mean IoU of 11 classes.",
        {
            "day-dusk": SuiteTask(
                Part(f"{_camvid('train', 'day')}+{_camvid('val', 'day')}+{_camvid('test', 'day')}", ordered=True),
                Part(_camvid("train", "dusk"), ordered=True),
                _SMALL,
                Part(_camvid("test", "dusk"), ordered=True),
            )
        },
        measure="miou",
        task=SEGMENTATION,
    ),
    "gta5-cityscapes": Suite(
        "GTA5 to Cityscapes, DeepLab-v2 with your --backbone-weights; mean IoU beside the paper's numbers.",
        {"GTA5-Cityscapes": SuiteTask(Part("GTA5"), Part("Cityscapes"), _GTA5, Part("Cityscapes/leftImg8bit/val"))},
        measure="miou",
        task=SEGMENTATION,
    ),
}
"""Name -> suite."""
