"""Every row of the paper's tables takes a step with ResNet-50 on photographs of 224 pixels, weights random."""

import numpy as np
import pytest
from PIL import Image

from paretoda.bench.contenders import plan
from paretoda.bench.execute import execute_run
from paretoda.bench.paper import make_paper_contenders
from paretoda.bench.suites import PAPER_SUITES

CLASSES = ("mug", "pen", "ruler")
ROWS = {
    "{method}+{target_loss}, {scheme}".format(**contender.settings): contender
    for suite in PAPER_SUITES
    for contender in make_paper_contenders(suite, {"steps": 1, "batch_size": 3, "select": "last", "refresh_every": 1})
}
"""Tables 1 to 3 without repetitions: each method, target loss and scheme once."""


@pytest.fixture(scope="module")
def photographs(tmp_path_factory):
    """Two domains of Office-31 in its official layout, 21 images of 240 pixels each."""
    home = tmp_path_factory.mktemp("office31")
    rng = np.random.default_rng(0)
    for domain in ("amazon", "webcam"):
        for k in range(21):
            coarse = rng.integers(0, 256, (4, 4, 3), dtype=np.uint8)
            path = home / domain / "images" / CLASSES[k % 3] / f"frame_{k:04}.jpg"
            path.parent.mkdir(parents=True, exist_ok=True)
            Image.fromarray(coarse).resize((240, 240), Image.Resampling.BICUBIC).save(path)
    return home


@pytest.mark.slow
@pytest.mark.parametrize("row", ROWS)
def test_a_row_of_the_paper_runs(row, photographs, tmp_path):
    (spec,) = plan("office31", PAPER_SUITES["office31"], [ROWS[row]], seeds=1, tasks=["A-W"])
    line = execute_run(spec, photographs, tmp_path)
    assert line["config"]["backbone"] == "resnet50"
    assert line["config"]["image_size"] == 224
    assert 0 <= line["accuracy"]["chosen"] <= 1
    assert set(line["per_class"]["chosen"]) == {*CLASSES}
    assert all(np.isfinite(value) for value in line["weights"].values())
    losses = {"source", *(["alignment"] if ROWS[row].settings["method"] != "source-only" else [])}
    losses |= {"target"} if ROWS[row].settings["target_loss"] != "none" else set()
    assert set(line["weights"]) == losses
