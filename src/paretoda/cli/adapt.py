"""`paretoda adapt`: train a model for the target, with settings from three places."""

# The imports inside functions keep torch out of `paretoda --help`.
# ruff: noqa: PLC0415

from __future__ import annotations

import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from paretoda.cli.console import Console
from paretoda.cli.errors import rank
from paretoda.cli.options import Json, Preset, Quiet, read_settings, read_sources, with_settings
from paretoda.core.options import unknown
from paretoda.errors import DataError, SettingsError
from paretoda.io.toml import read_toml
from paretoda.run.presets import PRESET, expand_preset, split_method
from paretoda.run.settings import SETTINGS

if TYPE_CHECKING:
    from paretoda.run.result import Run

_NO_LABEL = "no target label was used"
_INPUTS = ("source", "target", "target_labels")


@with_settings()
def adapt(  # noqa: PLR0913  (options, not arguments)
    *,
    source: Annotated[
        list[str] | None,
        typer.Option(metavar="DATA", help="labelled data; repeat it for several sources, or give 'FOLDER/*'"),
    ] = None,
    target: Annotated[str | None, typer.Option(metavar="DATA", help="unlabelled data; labels are not read")] = None,
    target_labels: Annotated[
        str | None, typer.Option(metavar="DATA", help="the few target samples whose labels are known, if any")
    ] = None,
    out: Annotated[Path, typer.Option(metavar="RUN", help="directory for the run")],
    config: Annotated[
        Path | None, typer.Option(metavar="FILE.toml", help="settings; those of the command line take precedence")
    ] = None,
    preset: Preset = None,
    resume: Annotated[bool, typer.Option("--resume", help="continue the run in --out")] = False,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="replace the run in --out")] = False,
    json: Json = False,
    quiet: Quiet = False,
    **settings: Any,
) -> None:
    """Train a model for the target; its labels, if it has any, are never read."""
    given = read_settings({**settings, "preset": preset})
    inputs = {"source": read_sources(source, target), "target": target, "target_labels": target_labels}
    values = merge_settings(config, inputs, given)
    silent = rank() > 0
    with Console(quiet=quiet or silent, as_json=json and not silent) as console:
        run = _train(console, values, out, resume=resume, overwrite=overwrite)
        console.progress.stop()
        _summarise(console, run, out)
        console.finish(lambda: {"run": str(out), **run.summary()})


def merge_settings(
    config: Path | None, inputs: Mapping[str, str | list[str] | None], given: Mapping[str, Any]
) -> dict[str, Any]:
    """Return inputs and settings; the command line takes precedence over the config file, and that over the defaults.

    A preset yields to everything that is given in the same place: a preset of the command line yields to the options
    there, but takes precedence over the config file.

    Args:
        config: A TOML file with any settings, and perhaps source and target; the config.toml of a run is one.
        inputs: Source, target and labelled target samples of the command line, None where they were left out.
        given: Settings of the command line.
    """
    values = {} if config is None else read_toml(config)
    for key in values:
        if key not in (*_INPUTS, PRESET) and key not in SETTINGS:
            raise SettingsError(f"{config}: {unknown('setting', key, [*SETTINGS, *_INPUTS, PRESET])}")
    if PRESET in given and values:
        given = _expand_given_preset(given, values)
        values.pop(PRESET, None)
    if "method" in given or "target_loss" in given:
        values = _drop_contradiction(values, given)
    return values | dict(given) | {key: value for key, value in inputs.items() if value is not None}


def _drop_contradiction(values: Mapping[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings of the file without its target loss, if the command line names one.

    Either may be part of a method such as "dann+im".
    """
    kept = split_method(values)
    if "target_loss" in given or "+" in str(given.get("method", "")):
        kept.pop("target_loss", None)
    return kept


def _expand_given_preset(given: Mapping[str, Any], values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings of the command line with their preset spelled out.

    Task and method of the file decide which parts of the preset apply if the command line names none.
    """
    separate = {key: values[key] for key in ("task",) if key in values} | split_method(given)
    whole = expand_preset(separate)
    if "method" in whole or "method" not in values:
        return whole
    return expand_preset({"method": split_method(values)["method"], **separate})


def _train(console: Console, values: Mapping[str, Any], out: Path, *, resume: bool, overwrite: bool) -> Run:
    """Run the training; an error on the way ends with the command that continues."""
    from paretoda.api import adapt as train
    from paretoda.distributed.collectives import LostProcessError
    from paretoda.run.beside import copies_allowed
    from paretoda.run.callbacks import Callbacks
    from paretoda.run.directory.directory import RunDirectory
    from paretoda.run.interrupt import InterruptedRunError
    from paretoda.tasks.settings import make_settings

    settings = {key: value for key, value in values.items() if key not in _INPUTS}
    checked = RunDirectory(out).read_config()[0] if resume else make_settings(settings)
    reference = console.progress.after("source-only reference", checked.steps)
    try:
        with copies_allowed():
            return train(
                values.get("source"),
                values.get("target"),
                out,
                target_labels=values.get("target_labels"),
                resume=resume,
                overwrite=overwrite,
                after=[console.progress.after("training", checked.steps)],
                callbacks=Callbacks(say=console.say, progress=console.progress, reference=[reference]),
                **settings,
            )
    except (KeyboardInterrupt, InterruptedRunError) as stop:
        raise InterruptedRunError(_explain_stop(stop, out)) from stop
    except LostProcessError as lost:
        raise LostProcessError(_explain_stop(lost, out), lost.speaks) from lost
    except DataError as error:
        if overwrite or not RunDirectory(out).config.exists():  # config.toml, if any, is of an earlier run
            raise
        raise DataError(f"{error}; once that is corrected, {_describe_resuming(out)}") from error


def _explain_stop(stop: BaseException, out: Path) -> str:
    """Return why the run stopped and, if something was written, the command that continues."""
    from paretoda.run.directory.directory import RunDirectory

    text = "stopped" if isinstance(stop, KeyboardInterrupt) else str(stop)
    if "--resume" in text:
        return text
    if not RunDirectory(out).config.exists():
        return f"{text}; nothing was written"
    if RunDirectory(out).model.exists():
        return f"{text}; the run in {out} is finished"
    return f"{text}; {_describe_resuming(out)}"


def _describe_resuming(out: Path) -> str:
    return f"`paretoda adapt --out {shlex.quote(str(out))} --resume` continues from the last checkpoint"


def _summarise(console: Console, run: Run, out: Path) -> None:
    from paretoda.run.directory.directory import RunDirectory
    from paretoda.tasks import find_task

    files = RunDirectory(out)
    usage = find_task(run.settings.task).usage(files, run.model)
    console.result()
    used = "of the target, only the labels that you gave were used" if run.settings.reads_labels else _NO_LABEL
    console.result(f"The model after step {run.chosen} of {run.settings.steps} was kept; {used}.")
    if run.scores:
        rows = [[name, f"{value + 0.0:.4f}"] for name, value in run.scores.items()]
        console.table({"label-free score": "left", "higher is better": "right"}, rows)
    console.result()
    for what, path in (("model", files.model), ("predictions", usage.predictions), ("report", files.report)):
        console.result(f"{what + ':':<13}{path}")
    place = shlex.quote(str(out))
    console.result(f"{'next:':<13}paretoda predict {place} INPUT{usage.out}")
    console.result(f"{'':<13}paretoda evaluate {place} LABELLED")
    if usage.losses:
        numbers = ",".join("1" for _ in usage.losses)
        console.result(f"{'':<13}paretoda predict {place} INPUT --preference {numbers}   ({', '.join(usage.losses)})")
