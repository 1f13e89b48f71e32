"""The paper's ablation (IM, TCM, EPO, ParetoDA), completed to all combinations, and our variants below it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from paretoda.bench.contenders import Contender
from paretoda.bench.jobs import describe_failures
from paretoda.bench.paper_numbers import OFFICE31_PAPER
from paretoda.core.options import unknown
from paretoda.errors import SettingsError
from paretoda.studies.contenders import make_accuracy_section, make_tables, run_contenders
from paretoda.studies.page import Page
from paretoda.studies.request import StudyRequest


@dataclass(frozen=True)
class Part:
    """A row of the ablation.

    Args:
        name: Name of the row.
        settings: Settings that differ from DANN with the defaults.
        paper: The paper's accuracy in per cent, the average of Office-31 with ResNet-50; None where the paper has none.
    """

    name: str
    settings: dict[str, Any] = field(default_factory=dict)
    paper: float | None = None


def _linear(loss: str) -> dict[str, Any]:
    return {"target_loss": loss, "scheme": "linear"}


def _epo(loss: str) -> dict[str, Any]:
    return {"target_loss": loss, "scheme": "epo"}


def _paper(loss: str, guide: str, **more: Any) -> dict[str, Any]:
    return {"target_loss": loss, "scheme": "paretoda-paper", "guide": guide, **more}


def _default(loss: str = "auto+propagation", guide: str = "agreement", **more: Any) -> dict[str, Any]:
    return {"target_loss": loss, "scheme": "paretoda", "guide": guide, **more}


PAPER = (
    Part("DANN", _linear("none"), 82.2),
    Part("DANN + IM", _linear("im"), 87.9),
    Part("DANN + TCM", _linear("tcm"), 88.4),
    Part("DANN, EPO", _epo("none"), 87.7),
    Part("DANN + IM, EPO", _epo("im")),
    Part("DANN + TCM, EPO", _epo("tcm"), 89.9),
    Part("DANN, ParetoDA as printed", _paper("none", "im")),
    Part("DANN + IM, ParetoDA as printed", _paper("im", "im"), 89.7),
    Part("DANN + TCM, ParetoDA as printed", _paper("tcm", "tcm"), 90.2),
)
"""The paper's rows, in all combinations; its guide is the target loss on held-out data."""

OURS = (
    Part("source-only", {"method": "source-only", "target_loss": "none", "scheme": "linear"}),
    Part("default", _default()),
    Part("default's losses, sum", _linear("auto+propagation")),
    Part(
        "default's losses, sum 1:.3:.3:1",
        {**_linear("auto+propagation"), "loss_weights": [1.0, 0.3, 0.3, 1.0]},
    ),
    *(Part(f"default, guide {guide}", _default(guide=guide)) for guide in ("im", "prototypes", "neighbours")),
    Part("default, TCM + propagation", _default("tcm+propagation")),
    Part("default, TCM alone", _default("tcm")),
    Part("default, propagation alone", _default("propagation")),
    Part("default, no target loss", _default("none")),
    Part("default, equal prior", _default(options=["scheme.prior=[1,1,1,1]"])),
    Part("default, calibrated", _default(calibrate=True)),
    Part("default without lean", _default(options=["scheme.lean=0"])),
    Part("default, inner products of one step", _default(average=0.0)),
    Part("default, all layers vote at every step", _default(voting="all", every=1)),
    Part("default, head follows the source", _default(head_losses=["source"])),
    Part("as printed, guide agreement", _paper("tcm", "agreement")),
    Part("as printed, unit gradients", _paper("tcm", "tcm", options=["scheme.normalise=l2"])),
    Part(
        "as released",
        {
            "target_loss": "tcm",
            "scheme": "paretoda-released",
            "guide": "tcm",
            "options": ["target.refine=logit", "target.released_loss=true"],
        },
    ),
    Part("mgda", {"target_loss": "tcm", "scheme": "mgda"}),
)
"""Our variants."""
ROWS = {"paper": PAPER, "ours": OURS}
"""Group -> its rows."""


def study_ablation(request: StudyRequest) -> Page:
    """Run all rows and set the paper's numbers beside them.

    Args:
        request: What the user asks for.

    Returns:
        The page of the study.
    """
    if request.rows and request.rows not in ROWS:
        raise SettingsError(unknown("group of rows", request.rows, ROWS))
    parts = ROWS[request.rows] if request.rows else (*PAPER, *OURS)
    contenders = [Contender(part.name, {"method": "dann", **part.settings}) for part in parts]
    tasks = request.choose_tasks()
    rows = run_contenders(request, {request.suite: contenders}, {request.suite: tasks})
    chosen, last = make_tables(rows, request.loaded_suite.measure)
    printed = {part.name: f"{part.paper:.1f}" for part in parts if part.paper is not None}
    columns = {"paper": printed}
    means = {name: cells[-1].mean for name in chosen.rows if (cells := chosen.cells(name))[-1] is not None}
    return Page(
        f"Ablation on {request.suite}, {', '.join(tasks)}",
        [_answer(means), *([] if request.rows == "ours" else [_describe_paper(request, tasks)])],
        [
            make_accuracy_section("Chosen without target labels", chosen, columns),
            make_accuracy_section("After the last step", last, columns),
        ],
        failures=describe_failures(rows),
    )


def _describe_paper(request: StudyRequest, tasks: Sequence[str]) -> str:
    """Return what the paper's column is, and how far it can be compared."""
    column = "The paper's column is Table 5, the average of the six tasks of Office-31 with a ResNet-50 that is trained"
    if request.loaded_suite.references is not OFFICE31_PAPER:
        return f"{column}. That is another benchmark: compare orders, not numbers."
    known = next(iter(OFFICE31_PAPER.values()))
    if set(tasks) != set(known):
        return f"{column}; --task {','.join(known)} gives our average of the same tasks."
    return f"{column}; our average is of the same tasks, with the backbone of this study."


def _answer(means: dict[str, float]) -> str:
    """Return which row is the best, and how many pairs of the paper's rows have the paper's order here."""
    known = [(part.paper, means[part.name]) for part in PAPER if part.paper is not None and part.name in means]
    pairs = [(a, b) for i, a in enumerate(known) for b in known[i + 1 :]]
    same = sum((a[0] - b[0]) * (a[1] - b[1]) > 0 for a, b in pairs)
    order = f"Of {len(pairs)} pairs of the paper's rows, {same} have the paper's order here. " if pairs else ""
    return f"{order}The best row is {max(means, key=means.__getitem__) if means else 'none'}."
