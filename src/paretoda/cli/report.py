"""`paretoda report`: one page of a run, of several runs, or of a bench."""

# The imports inside functions keep torch out of `paretoda --help`.
# ruff: noqa: PLC0415

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from paretoda.cli.console import Console
from paretoda.cli.options import Json, Quiet
from paretoda.errors import RunError
from paretoda.io.files import write_text

if TYPE_CHECKING:
    import torch

    from paretoda.report.facts import Pictures, RunFacts
    from paretoda.run.directory.directory import RunDirectory
    from paretoda.tasks.classification.predictor import Predictor


def report(
    runs: Annotated[list[Path], typer.Argument(metavar="RUN|DIR…", help="directories of runs, or of a bench")],
    labelled: Annotated[
        str | None, typer.Option(metavar="DATA", help="target data with labels: oracle numbers")
    ] = None,
    out: Annotated[Path | None, typer.Option(metavar="PAGE.html", help="instead of report.html in the RUN")] = None,
    title: Annotated[str | None, typer.Option(metavar="TEXT", help="title of the page")] = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Write one self-contained page: of a run, of several runs side by side, or of a bench."""
    from paretoda.bench.store import Store

    with Console(quiet=quiet, as_json=json) as console:
        benches = [path for path in runs if Store(path).path.is_file()]
        if benches and len(benches) < len(runs):
            raise RunError(f"{benches[0]} is a bench and others are runs; report them one by one")
        if benches and labelled is not None:
            raise RunError(f"{benches[0]} is a bench: it has its oracle accuracies already; leave out --labelled")
        if out is None and len(runs) > 1:
            raise RunError("several directories make one page: say where, with --out page.html")
        page, values = _make_bench_page(benches, title) if benches else _make_run_page(console, runs, labelled, title)
        out = out or runs[0] / "report.html"
        write_text(out, page)
        console.result(f"report: {out}")
        console.finish(lambda: {"report": str(out), **values})


def _make_bench_page(paths: Sequence[Path], title: str | None) -> tuple[str, dict[str, Any]]:
    """Return the page of one or several benches, and facts about it."""
    from paretoda.bench.contenders import select_variants
    from paretoda.bench.store import Store
    from paretoda.report.bench_page import bench_page

    rows = select_variants([row for path in paths for row in Store(path).results()])
    if not rows:
        raise RunError(f"{Store(paths[0]).path} has no finished run yet, or is damaged")
    names = ", ".join(path.resolve().name for path in paths)
    try:
        return bench_page(rows, title=title or f"ParetoDA bench {names}"), {"runs": len(rows)}
    except ValueError as error:  # two lines of one run that contradict each other
        raise RunError(f"{', '.join(str(path) for path in paths)}: {error}") from error


def _make_run_page(
    console: Console, paths: Sequence[Path], labelled: str | None, title: str | None
) -> tuple[str, dict[str, Any]]:
    """Return the page of one or several runs, and facts about it."""
    from paretoda.report.compare import runs_page
    from paretoda.report.page import run_page

    found = {name: _read_run(console, path, labelled) for name, path in zip(_name_runs(paths), paths, strict=True)}
    oracle = {
        name: confusion.accuracy
        for name, run in found.items()
        for confusion in run.pictures.confusions
        if confusion.oracle
    }
    for name, accuracy in oracle.items():
        console.result(f"oracle accuracy of {name}: {accuracy:.4f} (labels were used for the page only)")
    values = {"runs": len(found), "oracle_accuracy": oracle}
    if len(found) > 1:
        return runs_page(found, title=title or f"ParetoDA: {len(found)} runs"), values
    run = next(iter(found.values()))
    return run_page(run if title is None else replace(run, title=title)), values


def _read_run(console: Console, path: Path, labelled: str | None) -> RunFacts:
    """Return the facts of a run from its files, with pictures if its model and data are there."""
    from paretoda.report.facts import NO_PICTURES
    from paretoda.run.directory.directory import RunDirectory
    from paretoda.run.result import read_facts
    from paretoda.tasks.classification.build import pick_device
    from paretoda.tasks.classification.predictor import load_predictor
    from paretoda.tasks.classification.run import pictures_of, reopen_inputs
    from paretoda.tasks.segmentation.predictor import is_segmentation

    directory = RunDirectory(path)
    facts = read_facts(directory)
    if not directory.model.exists():
        if labelled is not None:
            raise RunError(f"the run in {path} has not finished: it has no model that --labelled could measure")
        console.say(f"The run in {path} has not finished: the page shows its curves only.")
        return facts
    device = pick_device("auto")
    if is_segmentation(directory.description):
        return replace(facts, pictures=_picture_scenes(console, directory, facts, labelled, device))
    model = load_predictor(directory.model, directory.description, device)
    pictures = pictures_of(model, reopen_inputs(directory, device), facts)
    if pictures is NO_PICTURES:
        console.say(
            f"The data of {path} are not where they were: no map of features and no held-out source on the page."
        )
    if labelled is not None:
        pictures = _add_oracle(pictures, model, labelled, console)
    return replace(facts, pictures=pictures)


def _picture_scenes(
    console: Console, directory: RunDirectory, facts: RunFacts, labelled: str | None, device: torch.device
) -> Pictures:
    """Return scenes of the target and overlaps of classes; with labels, the labelled images beside their labels."""
    from paretoda.data.segmentation import open_scenes
    from paretoda.report.facts import NO_PICTURES
    from paretoda.tasks.segmentation.predictor import load_scene_predictor
    from paretoda.tasks.segmentation.run import cards_of, measured, overlap_of, pictures_of_run

    model = load_scene_predictor(directory.model, directory.description, device)
    pictures = pictures_of_run(directory, model, facts)
    if pictures is NO_PICTURES:
        console.say(f"The data of {directory.path} are not where they were: no scenes on the page.")
    if labelled is None:
        return pictures
    samples = open_scenes(labelled, labelled=True)
    if samples.classes != model.classes:
        raise RunError(f"{labelled} has other classes than the model: {', '.join(samples.classes)}")
    found = measured(model, samples, told=console.progress)
    console.progress.stop()
    oracle = overlap_of(model, found.scores, "target (oracle)", oracle=True)
    return replace(pictures, scenes=cards_of(model, samples, found.confidences), overlaps=[oracle, *pictures.overlaps])


def _add_oracle(pictures: Pictures, model: Predictor, labelled: str, console: Console) -> Pictures:
    """Return the pictures with the confusions of labelled samples, whose images replace those without labels."""
    import torch

    from paretoda.data import open_samples
    from paretoda.report.pictures import oracle_pictures

    samples = open_samples(labelled, labelled=True, classes=model.classes)
    for note in samples.notes:
        console.say(note)
    with torch.no_grad():
        oracle = oracle_pictures(model.classes, samples, model.probabilities(samples))
    return replace(pictures, cards=oracle.cards, confusions=[*oracle.confusions, *pictures.confusions])


def _name_runs(paths: Sequence[Path]) -> list[str]:
    """Return the last parts of the paths, as many as distinguish them."""
    whole = [path.resolve() for path in paths]
    if len(set(whole)) < len(whole):
        raise RunError("a run is given twice; name every directory once")
    last = [path.name for path in whole]
    if len(set(last)) == len(last):
        return last
    common = os.path.commonpath(whole)
    return [str(path.relative_to(common)) for path in whole]
