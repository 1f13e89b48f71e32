"""The model card of a run, README.md, as a hub shows it, from plain values; every name is plain text."""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import isfinite

from paretoda.report.facts import RunFacts

_SHOWN = 200
"""Largest number of classes on a card."""
_LONGEST = 400
"""Largest number of characters of a name or a sentence."""
_NOT_ACCURACY = (
    "**These scores are no accuracy.** They were computed without a label of the target, each has a scale of its own, "
    "and they serve to compare models on the same data. A model with better scores can be worse. Measure this one on "
    "labelled data of the target before you rely on it."
)
_ESCAPED = frozenset("\\`*_{}[]()#+!|")
"""Characters that a backslash makes plain in every Markdown."""
_ENTITIES = frozenset('<>&"~:@$=^')
"""Characters that need an entity to be plain."""
_BEGINNING = re.compile(r"^([0-9]*)([-.)])|(?i:\b(www)(\.))")
"""What would begin a list, or an address that becomes a link."""
_ACTING = ("Cc", "Cf", "Cs", "Zl", "Zp")
_PATHS = ("backbone_weights", "teachers", "from_run")
_VERSIONS = ("paretoda", "torch", "numpy", "python")


@dataclass(frozen=True)
class CardFacts:
    """What a card says besides the facts of the run.

    Args:
        classes: Names of the classes.
        task: The hub's name of the task, for example "image-classification".
        temperature: Temperature that calibrates the confidence; None without one.
        output: What `predict --out` takes: a file or a folder.
    """

    classes: Sequence[str]
    task: str
    temperature: float | None = None
    output: str = "predictions.csv"


def render_model_card(run: RunFacts, card: CardFacts) -> str:
    """Return the card as Markdown with a YAML head; the same facts give the same text."""
    parts = [_head(run, card.task), f"# {escape_markdown(run.title)}", _about(run, card.task), _data(run, card.classes)]
    parts += [_use(card), _scores(run), _sentences(run.sentences), _settings(run.settings), _versions(run.environment)]
    return "\n\n".join(part for part in parts if part) + "\n"


def escape_markdown(text: str) -> str:
    r"""Return the text so that Markdown shows it literally: without markup, links, HTML or control characters.

    >>> escape_markdown("*bold*")
    '\\*bold\\*'
    """
    short = text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"
    plain = "".join(_letter(letter) for letter in " ".join(short.split()))
    return _BEGINNING.sub(lambda found: f"{found[1] or found[3] or ''}\\{found[2] or found[4]}", plain)


def _letter(letter: str) -> str:
    if letter in _ESCAPED:
        return f"\\{letter}"
    if letter in _ENTITIES:
        return f"&#{ord(letter)};"
    return letter if unicodedata.category(letter) not in _ACTING else f"\\\\u{ord(letter):04x}"


def _head(run: RunFacts, task: str) -> str:
    """Return what the hub reads. The user must choose the licence, because it depends on the data."""
    names = ["domain-adaptation", "unsupervised-domain-adaptation", "multi-objective-optimization"]
    tags = [*names, str(run.settings["method"]), str(run.settings["scheme"])]
    lines = ["library_name: paretoda", f"pipeline_tag: {task}", "tags:"]
    return "\n".join(["---", *lines, *(f"- {json.dumps(tag)}" for tag in dict.fromkeys(tags)), "---"])


def _about(run: RunFacts, task: str) -> str:
    settings = run.settings
    loss = (
        "no target loss"
        if settings["target_loss"] == "none"
        else f"the target loss {escape_markdown(settings['target_loss'])}"
    )
    chosen_by_labels = "labels" in str(settings.get("select")).split("+")
    few = settings.get("label_loss") or settings.get("guide") == "labels" or chosen_by_labels
    how = "semi-supervised domain adaptation" if few else "unsupervised domain adaptation"
    labels = "data without labels and a few labelled samples" if few else "data without labels"
    source = "labelled source data"
    if settings.get("from_run"):
        how, source = (
            "source-free domain adaptation",
            f"the model of {escape_markdown(_file_name(settings['from_run']))}",
        )
    return (
        f"A model for {task.replace('-', ' ')} on the *target* data below. It was trained by {how}: "
        f"on {source} and on target {labels}.\n\n"
        f"Method: {escape_markdown(settings['method'])} with {loss}, "
        f"weighted by the scheme {escape_markdown(settings['scheme'])}, "
        f"{settings['steps']} steps; the model after step {run.chosen} was chosen, "
        + ("by labelled target samples that no loss was trained on." if chosen_by_labels else "without target labels.")
    )


def _data(run: RunFacts, classes: Sequence[str]) -> str:
    """Return the names of the data, without their location, and the names of the classes."""
    lines = [f"- {domain}: {escape_markdown(_file_name(path))}" for domain, path in run.inputs.items()]
    if run.predictions:
        lines.append(f"- samples of the target: {len(run.predictions)}")
    shown = ", ".join(map(escape_markdown, classes[:_SHOWN]))
    more = f" and {len(classes) - _SHOWN} more, which `model.json` lists" if len(classes) > _SHOWN else ""
    named = f"- {len(classes)} classes: {shown}{more}" if len(classes) > 1 else f"- predicted: {shown}"
    return "\n".join(["## Data", "", *lines, named])


def _file_name(path: str) -> str:
    return path.replace("\\", "/").rstrip("/").rpartition("/")[2] or path


def _use(card: CardFacts) -> str:
    text = (
        "## Use\n\n```\npip install paretoda\n"
        f"paretoda predict . NEW_DATA --out {card.output}\n"
        "paretoda export . --format onnx   # runs without ParetoDA\n```\n\n"
        "The model is for data like the target's. The weights are in `model.safetensors`, all else in `model.json`; "
        "neither holds code."
    )
    if card.temperature is None:
        return text
    return (
        f"{text} Confidences are calibrated by the temperature {card.temperature:.4g} (`predict --calibrated`), which "
        "was fitted without target labels."
    )


def _scores(run: RunFacts) -> str:
    if not run.scores:
        return ""
    rows = [f"| {escape_markdown(name)} | {_number(value)} |" for name, value in run.scores.items()]
    return "\n".join(["## Scores without labels", "", _NOT_ACCURACY, "", "| validator | score |", "|---|---:|", *rows])


def _number(value: float | None) -> str:
    return f"{value:.4f}" if value is not None and isfinite(value) else "not finite"


def _sentences(sentences: Sequence[str]) -> str:
    return (
        "\n".join(["## Notes of the run", "", *(f"- {escape_markdown(one)}" for one in sentences)]) if sentences else ""
    )


def _settings(settings: Mapping[str, object]) -> str:
    return "\n".join(["## Settings", "", "| setting | value |", "|---|---|", *_rows(settings)])


def _rows(settings: Mapping[str, object]) -> Iterator[str]:
    for name, value in settings.items():
        if value not in (None, (), []):
            parts = [str(part) for part in (value if isinstance(value, (list, tuple)) else [value])]
            text = ", ".join(map(_file_name, parts) if name in _PATHS else parts)
            yield f"| {escape_markdown(name)} | {escape_markdown(text)} |"


def _versions(environment: Mapping[str, str]) -> str:
    found = ", ".join(f"{name} {escape_markdown(environment[name])}" for name in _VERSIONS if name in environment)
    return (
        f"## Versions\n\n{found}\n\nThe licence is yours to add, at the top: it depends on the data and on the weights."
    )
