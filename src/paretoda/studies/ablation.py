"""The paper's ablation (IM, TCM, EPO, ParetoDA), completed to all combinations, and our variants below it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from paretoda.bench.contenders import Contender
from paretoda.bench.jobs import describe_failures
from paretoda.studies.contenders import make_accuracy_section, make_tables, run_contenders
from paretoda.studies.page import Page
from paretoda.studies.request import StudyRequest


@dataclass(frozen=True)
class Part:
    """A row of the ablation.

    Args:
        name: of the row.
        settings: what differs from DANN with the defaults.
        paper: the paper's accuracy in per cent, the average of Office-31 with ResNet-50; None: not in the paper.
    """

    name: str
    settings: dict[str, Any] = field(default_factory=dict)
    paper: float | None = None


def _sum(loss: str) -> dict[str, Any]:
    return {"target_loss": loss, "scheme": "linear"}


def _epo(loss: str) -> dict[str, Any]:
    return {"target_loss": loss, "scheme": "epo"}


def _printed(loss: str, guide: str, **more: Any) -> dict[str, Any]:
    return {"target_loss": loss, "scheme": "paretoda-paper", "guide": guide, **more}


def _ours(loss: str = "tcm+propagation", guide: str = "agreement", **more: Any) -> dict[str, Any]:
    return {"target_loss": loss, "scheme": "paretoda", "guide": guide, **more}


PAPER = (
    Part("DANN", _sum("none"), 82.2),
    Part("DANN + IM", _sum("im"), 87.9),
    Part("DANN + TCM", _sum("tcm"), 88.4),
    Part("DANN, EPO", _epo("none"), 87.7),
    Part("DANN + IM, EPO", _epo("im")),
    Part("DANN + TCM, EPO", _epo("tcm"), 89.9),
    Part("DANN, ParetoDA as printed", _printed("none", "im")),
    Part("DANN + IM, ParetoDA as printed", _printed("im", "im"), 89.7),
    Part("DANN + TCM, ParetoDA as printed", _printed("tcm", "tcm"), 90.2),
)
"""The paper's rows, in all combinations; its guide is the target loss on held-out data."""

OURS = (
    Part("source-only", {"method": "source-only", "target_loss": "none", "scheme": "linear"}),
    Part("DANN + TCM + propagation", _sum("tcm+propagation")),
    Part("DANN + TCM + propagation, 1:.3:.3:1", {**_sum("tcm+propagation"), "loss_weights": [1.0, 0.3, 0.3, 1.0]}),
    Part("paretoda", _ours()),
    *(Part(f"paretoda, guide {guide}", _ours(guide=guide)) for guide in ("tcm", "im", "prototypes", "neighbours")),
    Part("paretoda, TCM alone", _ours("tcm")),
    Part("paretoda, no target loss", _ours("none")),
    Part("paretoda, equal prior", _ours(options=["scheme.prior=[1,1,1,1]"])),
    Part("paretoda without lean", _ours(options=["scheme.lean=0"])),
    Part("paretoda, inner products of one step", _ours(average=0.0)),
    Part("paretoda, last layer votes", _ours(voting="last")),
    Part("paretoda, head follows the source", _ours(head_losses=["source"])),
    Part("as printed, guide agreement", _printed("tcm", "agreement")),
    Part("as printed, unit gradients", _printed("tcm", "tcm", options=["scheme.normalise=l2"])),
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


def study_ablation(ask: StudyRequest) -> Page:
    """Run all rows and set the paper's numbers beside them."""
    parts = [*PAPER, *OURS]
    contenders = [Contender(part.name, {"method": "dann", **part.settings}) for part in parts]
    tasks = ask.chosen()
    rows = run_contenders(ask, {ask.suite: contenders}, {ask.suite: tasks})
    chosen, last = make_tables(rows, ask.found.measure)
    printed = {part.name: f"{part.paper:.1f}" for part in parts if part.paper is not None}
    columns = {"paper (Office-31, ResNet-50)": printed}
    means = {name: cells[-1].mean for name in chosen.rows if (cells := chosen.cells(name))[-1] is not None}
    return Page(
        f"Ablation on {ask.suite}, {', '.join(tasks)}",
        [_answer(means), "The paper's column is another benchmark: compare orders, not numbers."],
        [
            make_accuracy_section("Chosen without target labels", chosen, columns),
            make_accuracy_section("After the last step", last, columns),
        ],
        failures=describe_failures(rows),
    )


def _answer(means: dict[str, float]) -> str:
    """How far the order of our numbers is the paper's: pairs of rows in the same order."""
    known = [(part.paper, means[part.name]) for part in PAPER if part.paper is not None and part.name in means]
    pairs = [(a, b) for i, a in enumerate(known) for b in known[i + 1 :]]
    same = sum((a[0] - b[0]) * (a[1] - b[1]) > 0 for a, b in pairs)
    best = max(means, key=means.__getitem__) if means else "nothing"
    return f"Of {len(pairs)} pairs of the paper's rows, {same} have the paper's order here; the best row is {best}."
