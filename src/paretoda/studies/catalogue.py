"""All studies by name."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from dataclasses import replace

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


def make_study(name: str, ask: StudyRequest, command: str) -> Page:
    """Make the runs that are missing, write the page, and return it.

    Args:
        name: of the study.
        ask: what is asked for.
        command: that repeats it.
    """
    ask.chosen()
    page = STUDIES[name](ask)
    facts = {
        "command": command or shlex.join(["paretoda", "study", name]),
        "seeds": f"0 to {ask.seeds - 1}",
        "steps": str(ask.steps or "the study's own"),
        "selection": "the ensemble of validators, where a table says chosen; the last step elsewhere",
        **read_versions(),
    }
    page = replace(page, facts=facts)
    page.write(ask.directory)
    return page
