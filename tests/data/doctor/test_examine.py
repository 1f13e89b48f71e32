from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from paretoda.data.build_pair import make_pair
from paretoda.data.doctor.examine import examine, examine_target_labels
from paretoda.data.doctor.findings import Finding
from paretoda.data.settings import PairSettings

RNG = np.random.default_rng(0)
X, Y, Z = RNG.normal(size=(200, 5)), np.arange(200) % 3, RNG.normal(size=(250, 5))


def said(found: list[Finding], severity: str) -> str:
    return " ".join(finding.message for finding in found if finding.severity == severity)


def test_good_data_have_no_errors_and_no_warnings() -> None:
    found = examine((X, Y), Z)
    assert [finding.severity for finding in found] == ["info"]
    assert found[0].message == "The source has 200 samples of 3 classes: 0 67, 1 67, 2 66."


def test_all_errors_are_told_at_once(tmp_path: Path) -> None:
    x, z = X.copy(), Z[:10, :4].copy()
    x[3, 1], z[2, 2] = np.nan, np.inf
    np.savez(tmp_path / "s.npz", x=x, y=Y.astype(float))
    np.savez(tmp_path / "t.npz", x=z)
    errors = said(examine(tmp_path / "s.npz", tmp_path / "t.npz"), "error")
    for part in (
        "instead of integers",
        "row 3, column 1",
        "row 2, column 2",
        "10 samples",
        "5 features, the target has 4",
    ):
        assert part in errors


def test_strange_features_are_told() -> None:
    x, z = X.copy(), Z.copy()
    x[:, 0] = 7
    z[:, 1] *= 1000
    z[:, 2] += 1000
    z[:4] = x[:4]
    found = examine((x, np.repeat([0, 1, 2], [190, 7, 3])), z)
    assert "1 of 5 features are constant in the source (columns 0)" in said(found, "info")
    warnings = said(found, "warning")
    assert "2 of 5 features have very different scales" in warnings
    assert "columns 1, 2" in warnings
    assert "4 of 250 target samples are also in the source, for example 0" in warnings
    assert "fewer than 5 samples: 2" in warnings
    assert "The largest class has 190 samples, the smallest 3" in warnings
    assert not said(found, "error")


@pytest.mark.parametrize(
    ("source", "target", "message"),
    [
        ("/nowhere", Z, "/nowhere does not exist"),
        ((X, Y), "/nowhere", "/nowhere does not exist"),
        (X, Z, "no labels"),
        ((X, np.zeros(200, dtype=int)), Z, "single class"),
    ],
)
def test_an_error_in_one_domain_does_not_hide_the_other(source: object, target: object, message: str) -> None:
    found = examine(source, target)
    assert said(found, "error").count(message) == 1


def test_files_are_examined(two_folders: tuple[Path, Path]) -> None:
    source, target = two_folders
    (source / "cat" / "01.png").write_bytes(b"")
    (source / "cat" / "03.png").write_text("text")
    (source / "cat" / "readme.txt").write_text("text")
    (target / "x" / "01.png").write_bytes((source / "dog" / "02.png").read_bytes())
    Image.new("L", (5, 50)).save(target / "x" / "02.png")
    calls: list[tuple[int, int]] = []
    found = examine(source, target, progress=lambda _, done, total: calls.append((done, total)))
    assert "2 of 24 image files cannot be read (cat/01.png, cat/03.png)" in said(found, "error")
    info, warnings = said(found, "info"), said(found, "warning")
    assert "1 files that are no images" in info
    assert "The target has labels; they are ignored" in info
    assert "2 sizes: 32x24 (23), 5x50 (1)" in info
    assert "1 of 24 images are grey" in info
    assert "cat 10, dog 12" in info
    assert "1 of 24 images have a side of less than 8" in warnings
    assert "1 of 24 target samples are also in the source, for example x/01.png" in warnings
    assert "only 24 samples" in warnings
    assert calls[-1] == (24, 24)
    assert [finding.severity for finding in found] == sorted(
        (finding.severity for finding in found), key=("error", "warning", "info").index
    )


def test_bad_files_that_will_be_skipped_are_a_warning(two_folders: tuple[Path, Path]) -> None:
    (two_folders[0] / "cat" / "01.png").write_bytes(b"")
    settings = PairSettings(skip_bad=True)
    found = examine(*two_folders, settings)
    assert not said(found, "error")
    assert "1 of 24 image files cannot be read" in said(found, "warning")
    make_pair(*two_folders, settings)


def test_labels_of_a_target_are_noticed_in_every_form(paint, tmp_path: Path) -> None:
    paint("1.png")
    np.savez(tmp_path / "with.npz", x=Z, y=np.array([None], dtype=object))
    np.savez(tmp_path / "without.npz", x=Z)
    (tmp_path / "with.txt").write_text("1.png 3\n" * 30)
    (tmp_path / "without.txt").write_text("1.png\n" * 30)
    labelled = {"with.npz": True, "without.npz": False, "with.txt": True, "without.txt": False, "1.png": False}
    for name, has in labelled.items():
        assert ("they are ignored" in said(examine((X, Y), tmp_path / name), "info")) is has
    assert "they are ignored" in said(examine((X, Y), (Z, Y)), "info")


def test_target_labels_are_examined() -> None:
    rng = np.random.default_rng(0)
    source, target = (rng.normal(size=(60, 3)), np.arange(60) % 3, ["ant", "bee", "cat"]), rng.normal(size=(40, 3))

    def say(*labels: Any) -> list[tuple[str, str]]:
        return [(found.severity, found.message) for found in examine_target_labels(labels, source, target)]

    assert say(target[:3], [0, 1, 2], ["cat", "bee", "ant"]) == [
        ("info", "3 target samples of 3 of 3 classes are labelled.")
    ]
    assert say(target[:2], [0, 0], ["bee", "cat"])[0] == (
        "warning",
        "These classes have no labelled target sample: ant, cat; label one of each if you can.",
    )
    assert say(source[0][:1], [0], ["ant"])[1][1].startswith("1 of 1 target samples with labels are also in the source")
    ((severity, message),) = say(target[:1], [0], ["dog"])
    assert severity == "error"
    assert "classes that the model does not know: dog" in message
    assert examine_target_labels((target[:1], [0]), target, target) == []
