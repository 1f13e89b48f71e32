"""`paretoda predict` and `evaluate` where the model is a segmenter."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from paretoda.cli.console import Console
from paretoda.cli.options import split
from paretoda.core.options import unknown
from paretoda.data.labels import shorten_names
from paretoda.data.segmentation import SceneSamples, open_scenes
from paretoda.errors import RunError
from paretoda.io.files import write_text
from paretoda.run.ensemble import load_scene_mean
from paretoda.tasks.classification.build import pick_device
from paretoda.tasks.segmentation.label_files import write_maps
from paretoda.tasks.segmentation.predictor import ScenePredictor
from paretoda.tasks.segmentation.run import measured

_SHOWN = 5


def _open(
    screen: Console, runs: Sequence[Path], data: str, *, labelled: bool, skip_bad: bool, table: str | None = None
) -> tuple[ScenePredictor, SceneSamples]:
    predictor = load_scene_mean(runs, pick_device("auto"))
    samples = open_scenes(data, labelled=labelled, table=table, skip_bad=skip_bad, progress=screen.progress)
    screen.progress.stop()
    for note in samples.notes:
        screen.say(note)
    if labelled and samples.classes != predictor.classes:
        raise RunError(
            f"{data} has the classes {shorten_names(samples.classes)}, "
            f"the model has {shorten_names(predictor.classes)}; evaluate on "
            "labels of the model's classes, which classes.txt names beside plain images/ and labels/, or read them "
            "as such with --table NAME (`paretoda list tables`)"
        )
    return predictor, samples


def predict_scenes(
    screen: Console,
    runs: Sequence[Path],
    data: str,
    out: Path | None,
    *,
    refined: bool = False,
    skip_bad: bool = False,
) -> None:
    """A label map and an overlay for every image, as PNG, and predictions.csv; of several runs, by their mean."""
    if out is None:
        raise RunError("label maps are pictures: say where they go, with --out FOLDER")
    if out.is_file():
        raise RunError(f"{out} is a file; give a folder with --out")
    predictor, samples = _open(screen, runs, data, labelled=False, skip_bad=skip_bad)
    written = write_maps(
        predictor.scenes(samples, refined=refined),
        predictor,
        out,
        overlays=True,
        count=len(samples),
        told=screen.progress,
    )
    write_text(out / "predictions.csv", written.table())
    screen.progress.stop()
    counts = Counter(largest for _, largest, _ in written.rows)
    common = ", ".join(f"{name} {count}" for name, count in counts.most_common(_SHOWN))
    screen.result(f"{len(written.rows)} label maps and overlays are in {out}; largest classes: {common}.")

    def values() -> dict[str, Any]:
        facts = {"samples": len(written.rows), "refined": refined, "runs": len(runs), "out": str(out)}
        return facts | {"largest": dict(counts)}

    screen.finish(values)


def evaluate_scenes(
    screen: Console,
    runs: Sequence[Path],
    data: str,
    *,
    refined: bool = False,
    skip_bad: bool = False,
    table: str | None = None,
    classes: str | None = None,
) -> None:
    """IoU of every class over all images as one, and its mean, and say that labels were used."""
    predictor, samples = _open(screen, runs, data, labelled=True, skip_bad=skip_bad, table=table)
    chosen = predictor.classes if classes is None else _chosen(classes, predictor.classes)
    found = measured(predictor, samples, refined=refined, told=screen.progress)
    scores = found.scores.over([predictor.classes.index(name) for name in chosen])
    screen.progress.stop()
    screen.result(f"Labels were used: the {len(samples)} images of {data} were compared with theirs.")
    screen.result(f"{'mean IoU:':<20}{scores.miou:.4f} over {scores.counted} classes")
    screen.result(f"{'pixel accuracy:':<20}{scores.accuracy:.4f}")
    screen.result()
    pixels = found.counts.sum(1).tolist()
    rows = [
        [name, f"{number:,}", f"{value:.4f}" if value == value else "neither there nor predicted"]  # noqa: PLR0124
        for name, number, value in zip(predictor.classes, pixels, scores.iou, strict=True)
    ]
    screen.table({"class": "left", "pixels": "right", "IoU": "right"}, rows)

    def values() -> dict[str, Any]:
        per_class = dict(zip(predictor.classes, scores.iou, strict=True))
        facts = {"used_labels": True, "miou": scores.miou, "accuracy": scores.accuracy, "per_class": per_class}
        facts |= {"classes": list(chosen), "classes_counted": scores.counted, "samples": len(samples)}
        return facts | {"refined": refined, "runs": len(runs)}

    screen.finish(values)


def _chosen(classes: str, known: Sequence[str]) -> tuple[str, ...]:
    """The classes that the user wrote, with commas between them."""
    names = tuple(dict.fromkeys(split(classes)))
    for name in names:
        if name not in known:
            raise RunError(f"--classes: {unknown('class', name, known)}")
    if not names:
        raise RunError("--classes takes names of classes, with commas between them")
    return names
