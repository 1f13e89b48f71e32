"""All studies by name."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from dataclasses import replace

from paretoda.errors import SettingsError
from paretoda.run.directory.directory import read_versions
from paretoda.studies.ablation import study_ablation
from paretoda.studies.backbones import study_backbones
from paretoda.studies.front import study_front
from paretoda.studies.guides import study_guides
from paretoda.studies.page import Page
from paretoda.studies.path import study_path
from paretoda.studies.request import StudyRequest
from paretoda.studies.scales import study_scales

STUDIES: dict[str, Callable[[StudyRequest], Page]] = {
    "ablation": study_ablation,
    "path": study_path,
    "scales": study_scales,
    "backbones": study_backbones,
    "front": study_front,
    "guides": study_guides,
}
"""Name -> study."""


def make_study(name: str, request: StudyRequest, command: str) -> Page:
    """Make the runs that are missing, write the page, and return it.

    Args:
        name: Name of the study, a key of `STUDIES`.
        request: What the user asks for.
        command: Command that repeats it.

    Returns:
        The page, which is also in the request's directory.

    Raises:
        SettingsError: The suite has no such task, or the study cannot use a setting.
    """
    if request.factors and name != "scales":
        raise SettingsError(f"--factors are for the study 'scales', not for {name!r}; leave them out")
    if request.rows and name != "ablation":
        raise SettingsError(f"--rows is for the study 'ablation', not for {name!r}; leave it out")
    request.choose_tasks()
    page = STUDIES[name](request)
    facts = {
        "command": command or shlex.join(["paretoda", "study", name]),
        "seeds": f"0 to {request.seeds - 1}",
        "settings": ", ".join(f"{name} {value}" for name, value in request.settings.items()) or "those of the study",
        "selection": "the ensemble of validators, where a table says chosen; the last step elsewhere",
        **read_versions(),
    }
    page = replace(page, facts=facts)
    page.write(request.directory)
    return page
