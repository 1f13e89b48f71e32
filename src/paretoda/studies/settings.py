"""The settings of a study's runs: the user's below what the study sets itself, and refused where they cannot count."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

from paretoda.bench.contenders import describe_settings
from paretoda.bench.loading import complete_settings
from paretoda.bench.suites import find_suite
from paretoda.errors import BackboneError, SettingsError
from paretoda.run.backbone_choice import describe_weights, resolve_backbone
from paretoda.run.build import check_machine
from paretoda.run.presets import choose_suite_form, expand_preset
from paretoda.run.settings import SETTINGS, Settings
from paretoda.studies.request import StudyRequest
from paretoda.tasks.settings import make_settings

Row = Mapping[str, Any]
"""Settings of a run by name."""
_NOTHING: Row = MappingProxyType({})
_OF_BACKBONES = ("backbone", "backbone_weights", "frozen", "image_size")
_OF_OTHER_NETWORKS = ("members", "joined", "crops")
"""Settings of a run whose losses and predictions are not those of one network, one loss each and whole images."""


def merge_settings(request: StudyRequest, suite: str, own: Row, default: Row = _NOTHING) -> dict[str, Any]:
    """Return the settings of a run, checked and as JSON reads them back.

    What the study sets for the run takes precedence over the user's settings and their preset, and these over the
    study's defaults. Options of the parts add up.

    Args:
        request: What the user asks for.
        suite: Name of the suite.
        own: What the study sets for the run.
        default: Settings of the study's runs that the user may change.

    Raises:
        SettingsError: The settings contradict each other.

    Examples:
        >>> request = StudyRequest(Path(), settings={"steps": 50, "scheme": "mgda"})
        >>> merge_settings(request, "digits", {"scheme": "epo", "target_loss": "im"}, {"steps": 300, "lr": 0.1})
        {'target_loss': 'im', 'scheme': 'epo', 'steps': 50, 'lr': 0.1, 'method': 'dann'}
    """
    options = (*request.settings.get("options", ()), *own.get("options", ()))
    values = {**request.settings, **own, **({"options": options} if options else {})}
    given = expand_preset(choose_suite_form(values, suite))
    return describe_settings(make_settings({**default, **given}))


def refuse_without_effect(request: StudyRequest, rows: Sequence[Row], suites: Iterable[str]) -> None:
    """Raise a SettingsError for a setting of the user that would change no run of the study.

    Args:
        request: What the user asks for.
        rows: What the study sets itself, for each run.
        suites: Names of the suites.
    """
    for name in request.settings:
        whole = "backbone" if name == "backbone_weights" else name  # weights belong to a backbone
        if name != "options" and all(name in row or whole in row for row in rows):
            raise SettingsError(f"this study sets {_option(whole)} itself in every run; leave out {_option(name)}")
    for suite in suites:
        stored = all("backbone" not in task.settings for task in find_suite(suite).tasks.values())
        given = [_option(name) for name in _OF_BACKBONES if name in request.settings]
        if stored and given:
            raise SettingsError(f"{suite} has stored features, which no backbone reads; leave out {', '.join(given)}")


def refuse_other_networks(request: StudyRequest) -> None:
    """Raise a SettingsError for settings under which a study cannot look at the losses of one network."""
    if given := [_option(name) for name in _OF_OTHER_NETWORKS if request.settings.get(name)]:
        raise SettingsError(
            f"this study looks at each loss of one network on whole images; leave out {', '.join(given)}"
        )


def check_runs(request: StudyRequest, suite: str, tasks: Iterable[str], rows: Iterable[Row], data: Path | None) -> None:
    """Check what would make every run fail alike, and say which weights the backbones begin with.

    Args:
        request: What the user asks for.
        suite: Name of the suite.
        tasks: Names of its tasks.
        rows: Merged settings of the runs.
        data: Folder of the suites' files; None if everything is embedded.

    Raises:
        SettingsError: The settings contradict each other or those of the suite.
        BackboneError: The backbone or its weights cannot be found.
        DataError: A file of the suite is missing.
    """
    different = {json.dumps(row, sort_keys=True): row for row in rows}.values()
    seen: set[tuple[str, str | None]] = set()
    for task in tasks:
        for row in different:
            own = complete_settings(find_suite(suite).tasks[task], data, request.directory / "data", row)
            settings = make_settings(own)
            network = (settings.backbone, settings.backbone_weights)
            if network in seen:
                continue
            seen.add(network)
            check_machine(settings)
            _announce_weights(request, resolve_backbone(settings))


def _announce_weights(request: StudyRequest, settings: Settings) -> None:
    """Say which weights the backbone begins with; raise a BackboneError if their file is missing."""
    backbone, weights = settings.backbone, settings.backbone_weights
    if weights is not None and Path(weights).is_absolute() and not Path(weights).exists():
        raise BackboneError(f"there is no file of weights at {weights}; correct --backbone-weights")
    sentence = None if backbone == "auto" else describe_weights(backbone, weights)
    if sentence is not None:
        request.say(sentence)


def _option(name: str) -> str:
    return SETTINGS[name].option if name in SETTINGS else f"--{name}"
