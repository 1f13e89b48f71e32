"""The doctor names what is wrong, all of it, and never reads the target's labels."""

import shutil

from paretoda.data.doctor.findings import Finding
from paretoda.data.segmentation.doctor import examine_scenes
from paretoda.data.segmentation.pair import ScenePairSettings

SETTINGS = ScenePairSettings(least_target=2)


def texts(found: list[Finding], severity: str) -> str:
    return "\n".join(finding.message for finding in found if finding.severity == severity)


def test_good_data(write) -> None:
    found = examine_scenes(write.plain(6), write.plain(6, name="target"), SETTINGS)
    assert not texts(found, "error")
    assert not texts(found, "warning")
    said = texts(found, "info")
    assert "The source has 6 images of 12x8 (6)." in said
    assert "The target has 6 images" in said
    shares = next(line for line in said.splitlines() if "class 0" in line)
    numbers = [float(part.rsplit(" ", 1)[1].rstrip("%.")) for part in shares.split("are ", 1)[1].split(", ")]
    assert abs(sum(numbers) - 100) < 0.05


def test_everything_at_once(write) -> None:
    source, target = write.plain(8), write.plain(6, name="target")
    (source / "classes.txt").write_text("a\nb\nc\nd\n")
    (source / "images/sub/0.png").write_text("no image")
    (source / "labels/sub/1.png").unlink()
    write.ids("plain/labels/sub/2.png", [0], size=(5, 5))
    write.ids("plain/labels/sub/3.png", [77])
    write.ids("plain/labels/sub/4.png", [255])
    shutil.copy(source / "images/sub/5.png", target / "images/sub/5.png")
    (target / "images/sub/1.png").write_bytes(b"")
    found = examine_scenes(source, target, SETTINGS)
    errors, warnings = texts(found, "error"), texts(found, "warning")
    assert "0.png is not an image" in errors
    assert "1.png has no label file" in errors
    assert "2.png is 5x5" in errors
    assert "3.png has the label 77" in errors
    assert "target/images/sub/1.png is empty" in errors
    assert "no source pixel: d;" in warnings
    assert "1 of 4 source images have no label at all (sub/4.png)" in warnings
    assert "1 of 5 target images are also in the source, for example sub/5.png" in warnings
    kept = examine_scenes(source, target, ScenePairSettings(least_target=2, skip_bad=True))
    assert not texts(kept, "error")


def test_a_mismatch_of_classes_and_a_lack_of_images(write) -> None:
    found = examine_scenes(write.gta5(), write.camvid())
    assert "source has 19 classes" in texts(found, "error")
    assert "the target has 4 images" in texts(found, "error")
    found = examine_scenes(write.root / "nowhere", write.root / "camvid")
    assert "nowhere does not exist" in texts(found, "error")


def test_a_source_without_any_label(write) -> None:
    root = write.plain(3)
    (root / "classes.txt").write_text("a\nb\n")
    for k in range(3):
        write.ids(f"plain/labels/sub/{k}.png", [255])
    assert "No pixel of the source has a label" in texts(examine_scenes(root, root, SETTINGS), "error")


def test_a_source_with_one_labelled_image(write) -> None:
    root = write.plain(3)
    for k in range(2):
        write.ids(f"plain/labels/sub/{k}.png", [255])
    assert "Only one source image has labelled pixels" in texts(examine_scenes(root, root, SETTINGS), "error")


def test_target_labels_are_not_read(write) -> None:
    source, target = write.camvid(), write.plain(4, classes=11, name="target")
    before = examine_scenes(source, target, SETTINGS)
    for file in (target / "labels").rglob("*.png"):
        file.write_bytes(b"garbage")
    assert examine_scenes(source, target, SETTINGS) == before
