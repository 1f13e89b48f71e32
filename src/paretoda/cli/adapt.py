"""`paretoda adapt`: settings from three places, the job, and what is said about it."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from paretoda.api import adapt, segment
from paretoda.cli.console import Console
from paretoda.core.options import unknown
from paretoda.distributed.collectives import LostProcessError
from paretoda.errors import DataError, SettingsError
from paretoda.io.toml import read_toml
from paretoda.run.callbacks import Callbacks
from paretoda.run.directory.directory import RunDirectory
from paretoda.run.interrupt import InterruptedRunError
from paretoda.run.presets import PRESET, expand_preset
from paretoda.run.settings import Settings, make_settings
from paretoda.tasks.classification.results import Run
from paretoda.tasks.segmentation.results import SceneRun

_INPUTS = ("source", "target")


def merged(config: Path | None, inputs: Mapping[str, str | None], given: Mapping[str, Any]) -> dict[str, Any]:
    """Inputs and settings: the command line counts before the config file, and that before the defaults.

    A preset counts less than everything that is given in the same place: a preset of the command line less than its
    options, but more than the config file.

    Args:
        config: a TOML file with any settings, and perhaps source and target; a run's config.toml is one.
        inputs: source and target of the command line, None where they were left out.
        given: settings of the command line.
    """
    values = {} if config is None else read_toml(config)
    for key in values:
        if key not in (*_INPUTS, PRESET) and key not in Settings.model_fields:
            raise SettingsError(f"{config}: {unknown('setting', key, [*Settings.model_fields, *_INPUTS, PRESET])}")
    if PRESET in given and values:
        given = _with_preset(given, values)
        values.pop(PRESET, None)
    if "method" in given or "target_loss" in given:
        values = _without_contradiction(values, given)
    return values | dict(given) | {key: value for key, value in inputs.items() if value is not None}


def _without_contradiction(values: Mapping[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """A target loss may stand in the method ("dann+im"): the file's gives way, wherever it stands."""
    kept = dict(values)
    alignment, plus, loss = str(kept.get("method", "")).partition("+")
    if plus:
        kept |= {"method": alignment, "target_loss": loss}
    if "target_loss" in given or "+" in str(given.get("method", "")):
        kept.pop("target_loss", None)
    return kept


def _with_preset(given: Mapping[str, Any], values: Mapping[str, Any]) -> dict[str, Any]:
    """What the command line says, its preset spelled out; the file's method counts where neither names one."""
    alignment, plus, loss = str(given.get("method", "")).partition("+")
    told = {**given, "method": alignment, "target_loss": loss} if plus else given
    whole = expand_preset(told)
    if "method" in whole or "method" not in values:
        return whole
    return expand_preset({"method": str(values["method"]).partition("+")[0], **told})


def run_adapt(
    screen: Console, values: Mapping[str, Any], out: Path, *, resume: bool = False, overwrite: bool = False
) -> None:
    """The whole command; `values` are settings and inputs."""
    settings = {key: value for key, value in values.items() if key not in _INPUTS}
    checked = RunDirectory(out).read_config()[0] if resume else make_settings(settings)
    steps = checked.steps
    listeners = Callbacks(
        say=screen.say,
        told=screen.progress,
        reference=[screen.progress.after("source-only reference", steps)],
    )
    try:
        train: Callable[..., Run | SceneRun] = segment if checked.task == "segmentation" else adapt
        run = train(
            values.get("source"),
            values.get("target"),
            out,
            resume=resume,
            overwrite=overwrite,
            after=[screen.progress.after("training", steps)],
            listeners=listeners,
            **settings,
        )
    except (KeyboardInterrupt, InterruptedRunError) as stop:
        raise InterruptedRunError(_how_to_go_on(stop, out)) from stop
    except LostProcessError as lost:
        raise LostProcessError(_how_to_go_on(lost, out), lost.speaks) from lost
    except DataError as error:
        if overwrite or not RunDirectory(out).config.exists():  # an earlier run's config.toml says nothing of this one
            raise
        raise DataError(f"{error}; when that is mended, {_resumed(out)}") from error
    screen.progress.stop()
    _summary(screen, run, out)
    screen.finish(lambda: {"run": str(out), **run.summary()})


def _how_to_go_on(stop: BaseException, out: Path) -> str:
    """Every way to stop ends with the command that goes on, where there is something to go on with."""
    text = "stopped" if isinstance(stop, KeyboardInterrupt) else str(stop)
    if "--resume" in text:
        return text
    if not RunDirectory(out).config.exists():
        return f"{text}; nothing was written"
    if RunDirectory(out).model.exists():
        return f"{text}; the run in {out} is finished"
    return f"{text}; {_resumed(out)}"


def _resumed(out: Path) -> str:
    return f"`paretoda adapt --out {shlex.quote(str(out))} --resume` goes on from the last checkpoint"


def _summary(screen: Console, run: Run | SceneRun, out: Path) -> None:
    files = RunDirectory(out)
    screen.result()
    screen.result(f"The model after step {run.chosen} of {run.settings.steps} was kept; no target label was used.")
    if run.scores:
        rows = [[name, f"{value + 0.0:.4f}"] for name, value in run.scores.items()]
        screen.table({"label-free score": "left", "higher is better": "right"}, rows)
    screen.result()
    predictions = files.maps if isinstance(run, SceneRun) else files.predictions
    for what, path in (("model", files.model), ("predictions", predictions), ("report", files.report)):
        screen.result(f"{what + ':':<13}{path}")
    place = shlex.quote(str(out))
    more = " --out FOLDER" if isinstance(run, SceneRun) else ""
    screen.result(f"{'next:':<13}paretoda predict {place} INPUT{more}")
    screen.result(f"{'':<13}paretoda evaluate {place} LABELLED")
    losses = run.model.model.architecture.losses if isinstance(run, Run) else ()
    if losses:
        numbers = ",".join("1" for _ in losses)
        screen.result(f"{'':<13}paretoda predict {place} INPUT --preference {numbers}   ({', '.join(losses)})")
