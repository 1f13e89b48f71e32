"""Draws the figures of the documents: `python docs/site/figures.py` writes docs/assets/*.svg."""

from __future__ import annotations

import math
import tomllib
from pathlib import Path

import numpy as np
from drawing import arrow, box, drawing, elbow, words

from paretoda.core.problem import Guide, Problem
from paretoda.schemes import ParetoDA

ASSETS = Path(__file__).parents[1] / "assets"
ROOT = Path(__file__).parents[2]
GRADIENTS = {"source": (2.0, 0.4), "alignment": (-1.4, 1.2), "target": (0.3, 1.5)}
GUIDE = (0.5, 1.25)


def overview() -> str:
    """Data on the left, encoder, losses, scheme on the right."""
    shapes = [
        box(20, 30, (150, 60), ["source", "with labels"]),
        box(20, 120, (150, 60), ["target", "90 %, no labels"]),
        box(20, 210, (150, 60), ["target, held out", "10 %, no labels"]),
        box(235, 100, (120, 100), ["encoder", "shared by", "all losses"]),
        box(430, 30, (190, 60), ["source loss", "right on labelled data"]),
        box(430, 100, (190, 60), ["alignment", "domains look alike"]),
        box(430, 170, (190, 60), ["target loss", "certain and diverse"]),
        box(430, 240, (190, 60), ["guide", "the same question, held out"], "no"),
        box(700, 110, (180, 100), ["scheme", "inner products in,", "weights out"], "end"),
        *[arrow((170, y), (233, g)) for y, g in ((60, 125), (150, 150), (240, 175))],
        *[arrow((355, 150), (428, y)) for y in (60, 130, 200, 270)],
        *[arrow((620, y), (698, g)) for y, g in ((60, 135), (130, 152), (200, 170), (270, 190))],
        elbow([(790, 210), (790, 335), (295, 335), (295, 202)]),
        words(540, 327, "one step along m Σ αᵢ gᵢ, at every batch", "mid small"),
    ]
    return drawing(900, 355, "How a step of ParetoDA is made", shapes)


def chosen() -> tuple[np.ndarray, np.ndarray]:
    """The wanted direction Gw and the chosen one Gα of the example, by the scheme itself."""
    rows = np.array(list(GRADIENTS.values()))
    guide = Guide(rows @ GUIDE, float(np.dot(GUIDE, GUIDE)), 1.0)
    problem = Problem(rows @ rows.T, np.ones(3), guide, tuple(GRADIENTS))
    scheme = ParetoDA(lean=0.0)
    return scheme.wanted(problem) @ rows, scheme(problem).alpha @ rows


def cone() -> str:
    """Three gradients and the guide's; the directions along which none of them rises; wanted and chosen."""
    origin, unit = np.array([250.0, 300.0]), 125.0

    def at(vector: tuple[float, float] | np.ndarray, scale: float = 1.0) -> tuple[float, float]:
        x, y = origin + scale * unit * np.array([vector[0], -vector[1]])
        return float(x), float(y)

    wanted, step = chosen()
    angles = [math.atan2(y, x) for x, y in [*GRADIENTS.values(), GUIDE]]
    low, high = max(angles) - math.pi / 2, min(angles) + math.pi / 2
    corners = [(1.9 * math.cos(a), 1.9 * math.sin(a)) for a in np.linspace(low, high, 25)]
    area = " ".join(f"{x:.1f},{y:.1f}" for x, y in [at((0, 0)), *map(at, corners)])
    named = [("source", "a", "g_S", (6, 16)), ("alignment", "b", "g_D", (-12, -10)), ("target", "c", "g_T", (-40, -4))]
    shapes = [f'<polygon points="{area}" class="area"/>']
    shapes += [
        f'<line x1="{x:.1f}" y1="{y:.1f}" x2="{u:.1f}" y2="{v:.1f}" class="edge"/>'
        for (x, y), (u, v) in [(at((0, 0)), at(corners[0])), (at((0, 0)), at(corners[-1]))]
    ]
    for name, kind, label, (dx, dy) in named:
        end = at(GRADIENTS[name])
        shapes += [arrow(at((0, 0)), end, kind, 2.5), words(end[0] + dx, end[1] + dy, label, "strong")]
    end = at(GUIDE)
    shapes += [arrow(at((0, 0)), end, "g", 2.5), words(end[0] + 6, end[1] - 4, "g_v (guide)", "strong")]
    for vector, kind, width in ((wanted, "w", 3.5), (step, "d", 4.5)):
        shapes.append(arrow(at((0, 0)), at(vector), kind, width))
    told = [
        ("the cone: along these directions", "neither a loss nor the guide rises"),
        ("grey: the wanted step, Gw", f"alignment would rise: ⟨Gw, g_D⟩ = {wanted @ GRADIENTS['alignment']:.2f}"),
        (
            "thick: the chosen step, Gα",  # noqa: RUF001
            f"the nearest in the cone: ⟨Gα, g_D⟩ = {abs(step @ GRADIENTS['alignment']):.2f}",  # noqa: RUF001
        ),
    ]
    for place, (head, tail) in enumerate(told):
        shapes += [words(545, 90 + 60 * place, head, "strong"), words(545, 110 + 60 * place, tail, "small")]
    return drawing(
        860, 340, "The cone of directions along which nothing rises, and the step nearest to the wanted one", shapes
    )


def which_method() -> str:
    """Questions on the left, from top to bottom; answers to the right of each."""
    questions = [
        (["Are there labels for the target?"], "yes", ["train on them, too", "worth more than any adaptation"], "end"),
        (["Fewer than 300 target samples?"], "yes", ["--method source-only", "all else was worse with 150"], "no"),
        (["Pixels instead of images?"], "yes", ["--task segmentation", "BatchNorm per domain does most"], "end"),
        (["A pretrained backbone?"], "yes", ["--frozen, then the default", "features, computed once"], "end"),
        (["Small images, from scratch?"], "yes", ["--method cdan-e+tcm", "propagation gained nothing there"], "end"),
        (["Very unequal classes?"], "yes", ["dann+mcc, or target.prior", "tcm and im ask for equal ones"], "end"),
    ]
    shapes = []
    for row, (question, answer, advice, kind) in enumerate(questions):
        y = 20 + 78 * row
        shapes += [
            box(30, y, (300, 50), question),
            arrow((330, y + 25), (448, y + 25)),
            words(389, y + 17, answer, "mid small"),
            box(450, y, (290, 50), advice, kind),
            arrow((180, y + 50), (180, y + 76)),
            words(190, y + 68, "no", "small"),
        ]
    y = 20 + 78 * len(questions)
    shapes.append(box(30, y, (300, 62), ["paretoda adapt, nothing changed", "dann+tcm+propagation, paretoda"], "end"))
    shapes.append(arrow((330, y + 31), (448, y + 31)))
    shapes.append(box(450, y, (290, 62), ["compare with source-only", "and look at the predictions"], "end"))
    return drawing(770, y + 82, "Which method to use: questions from top to bottom", shapes)


def layers() -> str:
    """The import layers, read from the contract that `lint-imports` checks: each row may import the rows below it."""
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"][
        "contracts"
    ]
    rows = next(contract["layers"] for contract in contracts if contract["type"] == "layers")
    shapes, height = [], 44
    for number, row in enumerate(rows):
        names = [part.strip(" ()").removeprefix("paretoda.") for part in row.split("|")]
        width = 560 / len(names)
        shapes += [
            box(20 + place * width, 20 + number * (height + 8), (width - 8, height), [name])
            for place, name in enumerate(names)
        ]
    return drawing(592, 30 + len(rows) * (height + 8), "Import layers, high to low", shapes)


FIGURES = {"layers.svg": layers, "overview.svg": overview, "cone.svg": cone, "which-method.svg": which_method}

if __name__ == "__main__":
    for name, figure in FIGURES.items():
        (ASSETS / name).write_text(figure(), encoding="utf-8")
