"""Tiny streets for segmentation: drawn once, as arrays and as folders of PNG files."""

import numpy as np
import pytest
from PIL import Image

from paretoda import segment
from paretoda.data.drawn.streets import DRIVING_CLASSES, draw_driving_scenes

SIZE = (48, 64)
QUICK = {"steps": 4, "batch_size": 2, "evaluate_every": 2, "refresh_every": 2, "device": "cpu"}


@pytest.fixture(scope="session")
def streets():
    """Source (x, y, classes) and target x, of other streets."""
    x, y = draw_driving_scenes(12, seed=0, gap=1.0, size=SIZE)
    z, truth = draw_driving_scenes(24, seed=1, gap=0.0, size=SIZE)
    return (x, y, list(DRIVING_CLASSES)), z, truth


@pytest.fixture(scope="session")
def folders(streets, tmp_path_factory):
    """The same as images/ and labels/ below source/ and target/."""
    (x, y, classes), z, truth = streets
    root = tmp_path_factory.mktemp("streets")
    for domain, images, labels in (("source", x, y), ("target", z, truth)):
        for kind in ("images", "labels"):
            (root / domain / kind).mkdir(parents=True)
        (root / domain / "classes.txt").write_text("\n".join(classes) + "\n")
        for place, (image, label) in enumerate(zip(images, labels, strict=True)):
            Image.fromarray(image).save(root / domain / "images" / f"{place:03d}.png")
            Image.fromarray(label).save(root / domain / "labels" / f"{place:03d}.png")
    return root


def same(one, other):
    """Whether two state dicts are equal, bit for bit."""
    a, b = one.state_dict(), other.state_dict()
    return list(a) == list(b) and all(np.array_equal(a[name].numpy(), b[name].numpy()) for name in a)


def goes_on_to_the_same_bytes(source, target, folder, settings):
    """A run that is killed after three steps and resumed ends as one that is not."""
    whole = segment(source, target, folder / "whole", **settings)

    def stop(taken, _report):
        if taken == 3:
            raise RuntimeError("killed")

    with pytest.raises(RuntimeError, match="killed"):
        segment(source, target, folder / "part", after=[stop], **settings)
    again = segment(source, target, folder / "part", resume=True)
    assert same(whole.model.model, again.model.model)
    for name in ("model.safetensors", "predictions.csv"):
        assert (folder / "whole" / name).read_bytes() == (folder / "part" / name).read_bytes()


@pytest.fixture(scope="session")
def bands(streets, tmp_path_factory):
    """Two finished runs of FDA that differ in their window, and one of other classes."""
    source, target, _ = streets
    root = tmp_path_factory.mktemp("bands")
    for beta in ("0.01", "0.09"):
        options = [f"translation.beta={beta}"]
        segment(source, target, root / beta, method="fda", options=options, **QUICK)
    renamed = (*source[:2], [*source[2][:-1], "unicorn"])
    segment(renamed, target, root / "other", method="source-only", **QUICK)
    return root
