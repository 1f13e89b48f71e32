"""Options that several commands share, and one option for every setting of a run."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, get_origin

import typer

from paretoda.core.options import unknown
from paretoda.errors import DataError, SettingsError
from paretoda.run.settings import SETTINGS, Setting
from paretoda.tasks import TASKS

_CHOICES = f"[{'|'.join(TASKS)}]"
Json = Annotated[bool, typer.Option("--json", help="print one machine-readable last line on stdout")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="show errors only")]
Preset = Annotated[
    str | None,
    typer.Option(
        metavar="NAME", help="settings of the paper or of a code (`paretoda list presets`); all others take precedence"
    ),
]
SkipBad = Annotated[bool, typer.Option("--skip-bad", help="leave out images that cannot be read, with a warning")]
RunPath = Annotated[Path, typer.Argument(metavar="RUN", help="directory of a finished run")]
Preference = Annotated[
    str | None, typer.Option(metavar="X,Y,…", help="weight of each loss, for a run of the scheme 'hypernetwork'")
]
_COMMA = re.compile(r",(?![^\[\]]*\])")
"""A comma outside of square brackets; inside, it belongs to a value: `target.prior=[0.7,0.2,0.1]`."""


def _check_task(name: str) -> str:
    """Return the name of a task, or say which names there are."""
    if name not in TASKS:
        raise SettingsError(unknown("task", name, TASKS))
    return name


Task = Annotated[
    str,
    typer.Option(
        metavar=_CHOICES, callback=_check_task, help="what is predicted: classes of samples, of pixels, or numbers"
    ),
]


def split(text: str | None) -> tuple[str, ...]:
    """Return the parts of a list that is written with commas."""
    return tuple(part.strip() for part in (text or "").split(",") if part.strip())


def read_sources(given: Sequence[str] | None, target: str | None) -> str | list[str] | None:
    """Return the sources of a repeated option: the only one, a list of several, or None without any.

    Args:
        given: What the user wrote; "FOLDER/*" stands for the sub-folders of a folder of domains.
        target: The target, which is no source where it is one of these sub-folders.

    Raises:
        DataError: There are no such sub-folders.
    """
    found = [place for one in given or () for place in (_list_domains(one, target) if one.endswith("/*") else [one])]
    return found if len(found) > 1 else found[0] if found else None


def _list_domains(pattern: str, target: str | None) -> list[str]:
    """Return the sub-folders of "FOLDER/*" in order, without the target."""
    folder = Path(pattern.removesuffix("/*")).expanduser()
    other = None if target is None else Path(target).expanduser().resolve()
    found = [place for place in sorted(folder.glob("*")) if place.is_dir() and not place.name.startswith(".")]
    if not (domains := [str(place) for place in found if place.resolve() != other]):
        raise DataError(f"--source {pattern}: {folder} has no sub-folders besides the target; name a folder of domains")
    return domains


def parse_numbers(option: str, parts: Sequence[str]) -> tuple[float, ...]:
    """Return the parts of a list as numbers.

    Args:
        option: The option that the list was written behind, for the error.
        parts: Texts.

    Raises:
        SettingsError: If a text is no number.
    """
    try:
        return tuple(float(part) for part in parts)
    except ValueError as error:
        raise SettingsError(f"{option} takes numbers separated by commas: {error}") from error


def with_settings(leave_out: Sequence[str] = ()) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Return a decorator that replaces the `**settings` of a command by one option for every setting.

    Args:
        leave_out: Settings that the command decides itself.
    """

    def decorate(command: Callable[..., Any]) -> Callable[..., Any]:
        signature = inspect.signature(command, eval_str=True)
        own = [p for p in signature.parameters.values() if p.kind is not inspect.Parameter.VAR_KEYWORD]
        every = [*own, *(_parameter(setting) for name, setting in SETTINGS.items() if name not in leave_out)]
        command.__signature__ = signature.replace(parameters=every)  # type: ignore[attr-defined]
        command.__annotations__ = {parameter.name: parameter.annotation for parameter in every}
        return command

    return decorate


def _parameter(setting: Setting) -> inspect.Parameter:
    """Return the option of a setting, as typer reads it; its value is None if it is left out."""
    flag, several, default = setting.option, _is_list(setting), setting.default
    option = typer.Option(
        None,
        f"{flag}/--no-{flag[2:]}" if setting.kind is bool else flag,
        help=setting.description,
        show_default=False if default is None or default is False or default == () else str(default),
        metavar="A,B,…" if several else _CHOICES if setting.name == "task" else None,
        rich_help_panel="Settings" if setting.often else "Fine tuning",
    )
    kind = str if several else setting.kind
    return inspect.Parameter(setting.name, inspect.Parameter.KEYWORD_ONLY, default=option, annotation=kind | None)


def _is_list(setting: Setting) -> bool:
    """Return whether the values of a setting are written with commas: `--loss-weights 1,0.5,0.1`."""
    return get_origin(setting.kind) is tuple


def read_settings(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings that were written on the command line, with lists split at their commas.

    Args:
        values: Option -> its value, None if it was left out.
    """
    return {
        name: tuple(part.strip() for part in _COMMA.split(value) if part.strip())
        if name in SETTINGS and _is_list(SETTINGS[name])
        else value
        for name, value in values.items()
        if value is not None
    }
