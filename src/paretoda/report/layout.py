"""Templates become pages: one file, no network, every name escaped."""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import Any

from jinja2 import DictLoader, Environment, StrictUndefined

_NAMES = ("frame.html", "run.html", "runs.html", "parts.html", "bench.html", "style.css", "bench.css")


def render(template: str, **values: Any) -> str:
    """The page that the template makes of these values; a value that is missing is an error.

    Args:
        template: a file of the folder `templates`.
        **values: what it names.
    """
    return _environment().get_template(template).render(**values)


@cache
def _environment() -> Environment:
    folder = files("paretoda.report") / "templates"
    loader = DictLoader({name: (folder / name).read_text(encoding="utf-8") for name in _NAMES})
    environment = Environment(
        loader=loader, autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters["percent"] = _percent
    environment.filters["number"] = _number
    return environment


def _percent(value: float | None) -> str:
    return "–" if value is None else f"{100 * value:.1f} %"  # noqa: RUF001


def _number(value: float | None, digits: int = 4) -> str:
    return "–" if value is None else f"{value + 0.0:.{digits}f}"  # noqa: RUF001  (and no minus zero)
