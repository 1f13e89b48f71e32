"""Steps of small runs, on images, features and streets, for tests of memory and precision."""

import numpy as np
import torch
from run.conftest import blobs

from paretoda.data.drawn.streets import DRIVING_CLASSES, draw_driving_scenes
from paretoda.run.build import build_step
from paretoda.tasks import find_task
from paretoda.tasks.settings import make_settings

CPU = torch.device("cpu")
SMALL = {"steps": 3, "batch_size": 8, "bottleneck": 8, "select": "last", "reference": False, "device": "cpu"}


def images(n=40, seed=0):
    rng = np.random.default_rng(seed)
    y = rng.integers(3, size=n)
    x = rng.integers(0, 60, size=(n, 16, 16)).astype(np.uint8)
    x[np.arange(n), :, 5 * y] = 200
    return x, y


def steps(settings, count=2, *, kind="images"):
    """A step of a run with such settings, after some batches, and its reports."""
    made = make_settings({**SMALL, "method": "dann", "target_loss": "tcm", "guide": "tcm", **settings})
    if made.task == "segmentation":
        x, y = draw_driving_scenes(8, seed=0, gap=1.0, size=(24, 32))
        z, _ = draw_driving_scenes(20, seed=1, gap=0.0, size=(24, 32))
        pair = find_task(made.task).open(made, (x, y, list(DRIVING_CLASSES)), z, CPU).pair
    else:
        x, y, t, _ = blobs(n=80) if kind == "features" else (*images(), *images(seed=1))
        pair = find_task(made.task).open(made, (x, y), t, CPU).pair
    step = build_step(find_task(made.task), made, pair, CPU)
    reports = []
    for index in range(count):
        step.advance(index / count)
        torch.manual_seed(index)
        reports.append(step(pair.batch(index, guide=step.wants_guide)))
    return step, reports
