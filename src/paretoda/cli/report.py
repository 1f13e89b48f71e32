"""`paretoda report`: one page of a run, of several runs, or of a bench."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from paretoda.bench.contenders import select_variants
from paretoda.bench.store import Store
from paretoda.cli.console import Console
from paretoda.data import open_samples
from paretoda.data.segmentation import open_scenes
from paretoda.errors import RunError
from paretoda.io.files import write_text
from paretoda.report.facts import NO_PICTURES, Pictures, RunFacts
from paretoda.report.page import render_run_page
from paretoda.report.pictures import take_oracle_pictures
from paretoda.report.runs_page import render_runs_page
from paretoda.run.directory.directory import RunDirectory
from paretoda.run.result import read_facts
from paretoda.tasks.classification.build import pick_device
from paretoda.tasks.classification.predictor import Predictor, load_predictor
from paretoda.tasks.classification.run import pictures_of, reopen_inputs
from paretoda.tasks.segmentation.predictor import is_segmentation, load_scene_predictor
from paretoda.tasks.segmentation.run import cards_of, measured, overlap_of, pictures_of_run


def run_report(
    screen: Console, paths: Sequence[Path], labelled: str | None, out: Path | None, title: str | None
) -> None:
    """Write the page that fits what the directories hold."""
    benches = [path for path in paths if Store(path).path.is_file()]
    if benches and len(benches) < len(paths):
        raise RunError(f"{benches[0]} is a bench and others are runs; report them one by one")
    if benches and labelled is not None:
        raise RunError(f"{benches[0]} is a bench: it has its oracle accuracies already; leave out --labelled")
    if out is None and len(paths) > 1:
        raise RunError("several directories make one page: say where, with --out page.html")
    page, values = _bench(benches, title) if benches else _runs(screen, paths, labelled, title)
    out = out or paths[0] / "report.html"
    write_text(out, page)
    screen.result(f"report: {out}")
    screen.finish(lambda: {"report": str(out), **values})


def _bench(paths: Sequence[Path], title: str | None) -> tuple[str, dict[str, Any]]:
    from paretoda.report.bench_page import render_bench_page  # noqa: PLC0415  (its tables need more than a run's page)

    rows = select_variants([row for path in paths for row in Store(path).results()])
    if not rows:
        raise RunError(f"{Store(paths[0]).path} has no finished run yet, or is damaged")
    names = ", ".join(path.resolve().name for path in paths)
    try:
        return render_bench_page(rows, title=title or f"ParetoDA bench {names}"), {"runs": len(rows)}
    except ValueError as error:  # two lines of one run that contradict each other
        raise RunError(f"{', '.join(str(path) for path in paths)}: {error}") from error


def _runs(
    screen: Console, paths: Sequence[Path], labelled: str | None, title: str | None
) -> tuple[str, dict[str, Any]]:
    found = {name: _facts(screen, path, labelled) for name, path in zip(_names(paths), paths, strict=True)}
    oracle = {
        name: confusion.accuracy
        for name, run in found.items()
        for confusion in run.pictures.confusions
        if confusion.oracle
    }
    for name, accuracy in oracle.items():
        screen.result(f"oracle accuracy of {name}: {accuracy:.4f} (labels were used for the page only)")
    values = {"runs": len(found), "oracle_accuracy": oracle}
    if len(found) > 1:
        return render_runs_page(found, title=title or f"ParetoDA: {len(found)} runs"), values
    run = next(iter(found.values()))
    return render_run_page(run if title is None else replace(run, title=title)), values


def _facts(screen: Console, path: Path, labelled: str | None) -> RunFacts:
    """The run from its files, with pictures as far as its model and data are there."""
    directory = RunDirectory(path)
    facts = read_facts(directory)
    if not directory.model.exists():
        if labelled is not None:
            raise RunError(f"the run in {path} has not finished: it has no model that --labelled could measure")
        screen.say(f"The run in {path} has not finished: the page shows its curves only.")
        return facts
    device = pick_device("auto")
    if is_segmentation(directory.description):
        return replace(facts, pictures=_of_scenes(screen, directory, facts, labelled, device))
    model = load_predictor(directory.model, directory.description, device)
    pictures = pictures_of(model, reopen_inputs(directory, device), facts)
    if pictures is NO_PICTURES:
        screen.say(
            f"The data of {path} are not where they were: no map of features and no held-out source on the page."
        )
    if labelled is not None:
        pictures = _with_oracle(pictures, model, labelled, screen)
    return replace(facts, pictures=pictures)


def _of_scenes(
    screen: Console, directory: RunDirectory, facts: RunFacts, labelled: str | None, device: torch.device
) -> Pictures:
    """Scenes of the target and overlaps of classes; with labels, the labelled images beside their truth."""
    model = load_scene_predictor(directory.model, directory.description, device)
    pictures = pictures_of_run(directory, model, facts)
    if pictures is NO_PICTURES:
        screen.say(f"The data of {directory.path} are not where they were: no scenes on the page.")
    if labelled is None:
        return pictures
    samples = open_scenes(labelled, labelled=True)
    if samples.classes != model.classes:
        raise RunError(f"{labelled} has other classes than the model: {', '.join(samples.classes)}")
    found = measured(model, samples, told=screen.progress)
    screen.progress.stop()
    oracle = overlap_of(model, found.scores, "target (oracle)", oracle=True)
    return replace(
        pictures, map_cards=cards_of(model, samples, found.confidences), overlaps=[oracle, *pictures.overlaps]
    )


def _with_oracle(pictures: Pictures, model: Predictor, labelled: str, screen: Console) -> Pictures:
    """The labelled samples beside the held-out source, their images instead of those without labels."""
    samples = open_samples(labelled, labelled=True, classes=model.classes)
    for note in samples.notes:
        screen.say(note)
    with torch.no_grad():
        oracle = take_oracle_pictures(model.classes, samples, model.probabilities(samples))
    return replace(pictures, cards=oracle.cards, confusions=[*oracle.confusions, *pictures.confusions])


def _names(paths: Sequence[Path]) -> list[str]:
    """The last parts of the paths, as many as tell them apart."""
    whole = [path.resolve() for path in paths]
    if len(set(whole)) < len(whole):
        raise RunError("a run is given twice; name every directory once")
    last = [path.name for path in whole]
    if len(set(last)) == len(last):
        return last
    common = os.path.commonpath(whole)
    return [str(path.relative_to(common)) for path in whole]
