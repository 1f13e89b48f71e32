"""Label maps stay in their folder, whatever their images are called."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from paretoda.errors import RunError
from paretoda.tasks.segmentation.map_files import FileNames, write_maps
from paretoda.tasks.segmentation.predictor import Scene, SegmentationPredictor

parts = st.sampled_from(["..", ".", "", "/", "//", "a", "a.png", "b-overlay.png", "\\", "...", "etc", ".png", "~"])


@given(st.lists(st.lists(parts, max_size=6).map("/".join), max_size=8))
@example(["//etc/passwd.png", "/etc/passwd.png", "../../x.png", "..\\..\\x.png", "..", "", "a.png", "a-overlay.png"])
def test_every_name_is_inside_and_its_own(names: list[str]) -> None:
    give, folder = FileNames(), Path("/out/maps")
    found = [give(name) for name in names]
    files = [file for name in found for file in (f"{name}.png", f"{name}-overlay.png")]
    assert len(set(files)) == len(files)
    for file in files:
        path = folder / file
        assert ".." not in path.parts
        assert path.is_relative_to(folder)
        assert path != folder


def scene(name: str) -> Scene:
    flat = np.zeros((2, 2), np.float32)
    return Scene(name, np.zeros((2, 2, 3), np.uint8), np.zeros((2, 2), np.uint8), flat, flat)


class Names:
    """All that writing asks of a predictor."""

    classes, colours = ("a", "b"), ((0, 0, 0), (255, 255, 255))


def written(folder: Path, *names: str) -> None:
    model: SegmentationPredictor = Names()  # type: ignore[assignment]
    write_maps(map(scene, names), model, folder, overlays=True, count=len(names), progress=None)


def test_names_that_climb_are_written_inside(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    written(tmp_path / "maps", f"/{outside}/x.png", f"{outside}/x.png", "../outside/x.png")
    assert not list(outside.iterdir())
    assert len(list((tmp_path / "maps").rglob("*.png"))) == 6


def test_a_link_that_leads_out_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "outside").mkdir()
    (tmp_path / "maps").mkdir()
    (tmp_path / "maps" / "sub").symlink_to(tmp_path / "outside")
    with pytest.raises(RunError, match="a link that leads out"):
        written(tmp_path / "maps", "sub/x.png")
    assert not list((tmp_path / "outside").iterdir())
