"""The real CamVid, where it is at hand."""

from pathlib import Path

import torch

from paretoda.data.segmentation import ScenePairSettings, examine_scenes, make_scene_pair, open_scenes
from paretoda.data.segmentation.label_tables import CAMVID
from paretoda.data.segmentation.translation import FourierTranslation


def test_day_and_dusk(shared_data: Path) -> None:
    day, dusk = (shared_data / f"camvid/train-{light}-120x160.npz" for light in ("day", "dusk"))
    settings = ScenePairSettings(batch_size=3, size=(40, 30))
    pair = make_scene_pair(day, dusk, settings, FourierTranslation(0.05))
    assert pair.colours == CAMVID.colours
    assert (len(pair.source_train), len(pair.target_train), len(pair.target_held_out)) == (275, 56, 6)
    batch = pair.batch(11)
    assert batch.source.shape == (3, 3, 30, 40)
    assert set(batch.labels.unique().tolist()) <= {*range(11), 255}
    assert batch.source.isfinite().all()
    shares = dict(zip(pair.classes, pair.source_frequencies().tolist(), strict=True))
    assert shares["road"] > shares["car"] > shares["pole"] > 0
    priors = pair.source_priors(15, 20)
    sky, road = pair.classes.index("sky"), pair.classes.index("road")
    assert priors[sky, :5].mean() > 2
    assert priors[sky, 10:].mean() < 0.2
    assert priors[road, 10:].mean() > 1.5
    assert priors[road, :5].mean() < 0.2
    assert torch.allclose(priors.mean(dim=(1, 2)), torch.ones(11), atol=1e-4)


def test_the_doctor_finds_nothing_wrong(shared_data: Path) -> None:
    found = examine_scenes(shared_data / "camvid/val-day-120x160.npz", shared_data / "camvid/test-dusk-120x160.npz")
    assert not [finding for finding in found if finding.severity == "error"]


def test_a_test_set_is_opened_with_its_labels(shared_data: Path) -> None:
    scenes = open_scenes(shared_data / "camvid/test-dusk-120x160.npz", labelled=True)
    assert len(scenes) == 62
    assert scenes.sizes([0]) == [(160, 120)]
    assert scenes.read_labels([5])[0].shape == (120, 160)
