"""Does it help on every network? Source-only, DANN and ParetoDA on several, as in the paper's last table."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from paretoda.bench.contenders import Contender
from paretoda.bench.jobs import describe_failures
from paretoda.studies.contenders import make_accuracy_section, make_tables, run_contenders
from paretoda.studies.page import Grid, Page, Section
from paretoda.studies.request import SUITE, StudyRequest

METHODS: dict[str, dict[str, Any]] = {
    "source-only": {"method": "source-only", "target_loss": "none", "scheme": "linear"},
    "DANN": {"method": "dann", "target_loss": "none", "scheme": "linear"},
    "DANN + TCM, sum": {"method": "dann", "target_loss": "tcm", "scheme": "linear"},
    "DANN + TCM, as printed": {"method": "dann", "target_loss": "tcm", "scheme": "paretoda-paper", "guide": "tcm"},
    "paretoda": {"method": "dann", "target_loss": "tcm+propagation", "scheme": "paretoda"},
}
WIDTHS: dict[str, dict[str, Any]] = {f"width {width}": {"bottleneck": width} for width in (64, 256, 1024)}
"""For stored features: the width of what is trained on them."""
IMAGES: dict[str, dict[str, Any]] = {
    "cnn": {"backbone": "cnn"},
    "lenet": {"backbone": "lenet", "image_size": 28},
    "resnet18": {"backbone": "resnet18", "image_size": 32},
}
"""For images: networks that are trained from random weights."""
DEEP = "office-caltech10-deep"
"""The photographs of the default suite as features of EfficientNet-Lite0."""

PAPER = Grid(
    ["paper, W-A of Office-31", "source-only", "DANN", "+ ParetoDA"],
    [
        ["ResNet-50", "60.7", "67.4", "76.3"],
        ["ResNet-101", "65.8", "74.5", "77.5"],
        ["ResNet-152", "68.2", "76.1", "79.0"],
    ],
)


def choose_networks(request: StudyRequest) -> dict[str, Mapping[str, dict[str, Any]]]:
    """Return suite -> network -> settings: widths for stored features, backbones for images that are trained on."""
    task = request.loaded_suite.tasks[request.choose_tasks()[0]]
    trains_images = "backbone" in task.settings and not task.settings.get("frozen")
    found: dict[str, Mapping[str, dict[str, Any]]] = {request.suite: IMAGES if trains_images else WIDTHS}
    if request.suite == SUITE:
        found[DEEP] = WIDTHS
    return found


def study_backbones(request: StudyRequest) -> Page:
    """Run every method on every network.

    Args:
        request: What the user asks for.

    Returns:
        The page of the study.
    """
    found = choose_networks(request)
    tasks = request.choose_tasks()
    wanted = {
        suite: [
            Contender(f"{method} on {network}", {**settings, **own})
            for network, own in kinds.items()
            for method, settings in METHODS.items()
        ]
        for suite, kinds in found.items()
    }
    rows = run_contenders(request, wanted, dict.fromkeys(wanted, tasks))
    turned = []
    for row in rows:
        method, _, network = row["name"].partition(" on ")
        place = f"{network}, {row['task']}" if len(tasks) > 1 else network
        kind = "EfficientNet-Lite0, " if row["suite"] == DEEP != request.suite else ""
        turned.append({**row, "name": method, "task": kind + place, "suite": request.suite})
    chosen, last = make_tables(turned, request.loaded_suite.measure)
    return Page(
        f"Networks on {request.suite}, {', '.join(tasks)}",
        [_answer({name: [cell.mean if cell else None for cell in chosen.cells(name)[:-1]] for name in chosen.rows})],
        [
            make_accuracy_section("Chosen without target labels", chosen, {}),
            make_accuracy_section("After the last step", last, {}),
            Section("In the paper", grid=PAPER),
        ],
        failures=describe_failures(turned),
    )


def _answer(means: Mapping[str, list[float | None]]) -> str:
    ours, plain = means.get("paretoda", []), means.get("DANN", [])
    gains = [100 * (a - b) for a, b in zip(ours, plain, strict=False) if a is not None and b is not None]
    points = ", ".join(f"{gain:+.1f}" for gain in gains)
    return f"paretoda is above DANN on {sum(gain > 0 for gain in gains)} of {len(gains)} networks: {points} points."
