"""Does it help on every network? Source-only, DANN and ParetoDA on several, as in the paper's last table."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from paretoda.bench.contenders import Contender
from paretoda.bench.jobs import describe_failures
from paretoda.models.backbones import find_backbone
from paretoda.models.weights import DEFAULT
from paretoda.studies.contenders import make_accuracy_section, make_tables, run_contenders
from paretoda.studies.page import Page
from paretoda.studies.request import SUITE, StudyRequest

METHODS: dict[str, dict[str, Any]] = {
    "source-only": {"method": "source-only", "target_loss": "none", "scheme": "linear"},
    "DANN": {"method": "dann", "target_loss": "none", "scheme": "linear"},
    "DANN + TCM, sum": {"method": "dann", "target_loss": "tcm", "scheme": "linear"},
    "DANN + TCM, as printed": {"method": "dann", "target_loss": "tcm", "scheme": "paretoda-paper", "guide": "tcm"},
    "default": {"method": "dann", "target_loss": "auto+propagation", "scheme": "paretoda"},
}
WIDTHS: dict[str, dict[str, Any]] = {f"width {width}": {"bottleneck": width} for width in (64, 256, 1024)}
"""For stored features: the width of what is trained on them."""
SMALL: dict[str, dict[str, Any]] = {
    "cnn": {"backbone": "cnn"},
    "lenet": {"backbone": "lenet", "image_size": 28},
    "resnet18": {"backbone": "resnet18", "image_size": 32},
}
"""For small images: networks that are trained from random weights."""
PHOTOS: dict[str, dict[str, Any]] = {
    "Lite0": {"backbone": "efficientnet-lite0", "image_size": 224},
    "Lite1": {"backbone": "efficientnet-lite1", "image_size": 240},
    "Lite2": {"backbone": "efficientnet-lite2", "image_size": 260},
}
"""For photographs: EfficientNet-Lites with published weights, each with the image size of their training."""
DEEP = "office-caltech10-deep"
"""The photographs of the default suite as features of EfficientNet-Lite0."""

PAPER: dict[str, dict[str, str]] = {
    "paper, R-50": {"source-only": "60.7", "DANN": "67.4", "DANN + TCM, as printed": "76.3"},
    "paper, R-101": {"source-only": "65.8", "DANN": "74.5", "DANN + TCM, as printed": "77.5"},
    "paper, R-152": {"source-only": "68.2", "DANN": "76.1", "DANN + TCM, as printed": "79.0"},
}
"""The paper's Table 6: ResNet -> row -> accuracy in per cent."""
_PAPER = (
    "The paper's columns are its Table 6: W-A of Office-31 with ResNets that are trained; "
    'its row "+ ParetoDA" is DANN + TCM, as printed.'
)


def choose_networks(request: StudyRequest) -> dict[str, Mapping[str, dict[str, Any]]]:
    """Return suite -> network -> settings: widths for stored features, backbones for images.

    The weights that a suite has for its own backbone are those that its other runs use; others are published ones. An
    image size that the user gives is that of all networks.
    """
    task = request.loaded_suite.tasks[request.choose_tasks()[0]]
    if "backbone" not in task.settings:
        deep: dict[str, Mapping[str, dict[str, Any]]] = {DEEP: WIDTHS} if request.suite == SUITE else {}
        return {request.suite: WIDTHS, **deep}
    photos = find_backbone(task.settings["backbone"]).photos
    found = {}
    for network, settings in (PHOTOS if photos else SMALL).items():
        own = {name: value for name, value in settings.items() if name != "image_size" or name not in request.settings}
        has_weights = "backbone_weights" in task.settings and task.settings["backbone"] == own["backbone"]
        found[network] = {**own, "backbone_weights": DEFAULT} if photos and not has_weights else own
    return {request.suite: found}


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
        [
            _answer({name: [cell.mean if cell else None for cell in chosen.cells(name)[:-1]] for name in chosen.rows}),
            _PAPER,
        ],
        [
            make_accuracy_section("Chosen without target labels", chosen, PAPER),
            make_accuracy_section("After the last step", last, PAPER),
        ],
        failures=describe_failures(turned),
    )


def _answer(means: Mapping[str, list[float | None]]) -> str:
    ours, plain = means.get("default", []), means.get("DANN", [])
    gains = [100 * (a - b) for a, b in zip(ours, plain, strict=False) if a is not None and b is not None]
    points = ", ".join(f"{gain:+.1f}" for gain in gains)
    return f"The default is above DANN on {sum(gain > 0 for gain in gains)} of {len(gains)} networks: {points} points."
