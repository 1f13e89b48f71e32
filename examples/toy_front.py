"""Where schemes end on a concave Pareto front (Fonseca and Fleming, 1995): the whole idea in one picture.

Two losses of a point x in the plane, f± = 1 - exp(-|x ∓ (1, 1)/√2|²). A weighted sum finds only the ends of the front.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import torch
from torch import Tensor

import paretoda
from paretoda.core.problem import Matrix, Scheme
from paretoda.schemes import EPO, MGDA, PMTL, Linear, ParetoPaper

CENTRE = torch.full((2,), 0.5**0.5, dtype=torch.float64)
GUIDED_POINT = 0.4 * CENTRE  # on the Pareto set, the segment from -CENTRE to CENTRE
RATES = np.geomspace(0.2, 1e-4, 300)  # the weights of a linear programme jump, so the steps must shrink
RAYS = ((1.0, 4.0), (1.0, 1.0), (4.0, 1.0))
EDGES = {"EPO": [np.arctan2(a, b) for a, b in RAYS], "PMTL": [np.pi / 16 * k for k in (1, 3, 5, 7)]}


def losses(x: Tensor) -> dict[str, Tensor]:
    return {"f1": 1 - torch.exp(-(x - CENTRE).square().sum()), "f2": 1 - torch.exp(-(x + CENTRE).square().sum())}


def descend(scheme: Scheme, start: Tensor) -> Matrix:
    """Return the losses along the path, shape (steps, 2)."""
    x = torch.nn.Parameter(start.clone())
    optimiser = torch.optim.SGD([x])
    path = []
    for rate in RATES:
        optimiser.param_groups[0]["lr"] = rate
        optimiser.zero_grad()
        guide = (x - GUIDED_POINT).square().sum()
        path.append(paretoda.backward(losses(x), shared=[x], scheme=scheme, guide=guide).losses)
        optimiser.step()
    return np.array(path)


def results(starts: int = 4) -> dict[str, list[Matrix]]:
    """Return the paths of each scheme from random starting points."""
    points = torch.rand(starts, 2, generator=torch.Generator().manual_seed(0), dtype=torch.float64) * 1.2 - 0.6
    return {
        "linear": [descend(Linear((w, 2 - w)), x) for w in (0.6, 1.4) for x in points],
        "MGDA": [descend(MGDA(), x) for x in points],
        "EPO": [descend(EPO(ray, threshold=1e-7), x) for ray in RAYS for x in points],
        "PMTL": [descend(PMTL(index=k, divisions=4), x) for k in (1, 2, 3) for x in points],
        "ParetoDA": [descend(ParetoPaper(threshold=1e-7), x) for x in points],
    }


def draw(paths: dict[str, list[Matrix]], out: Path) -> None:
    front = np.array([[v.item() for v in losses(t * CENTRE).values()] for t in torch.linspace(-1, 1, 200)])
    figure, axes = plt.subplots(1, len(paths), figsize=(3.2 * len(paths), 3.4), sharey=True, layout="tight")
    for axis, (name, runs) in zip(axes, paths.items(), strict=True):
        axis.plot(*front.T, color="0.6", lw=4, label="Pareto front")
        for angle in EDGES.get(name, ()):
            axis.plot([0, 1.5 * np.cos(angle)], [0, 1.5 * np.sin(angle)], ":", color="0.3", lw=0.8)
        for path in runs:
            axis.plot(*path.T, "o-", markevery=[-1], lw=0.9, color="tab:blue", mfc="tab:red", mec="tab:red")
        if name == "ParetoDA":
            goal = [value.item() for value in losses(GUIDED_POINT).values()]
            axis.plot(*goal, "*", color="gold", mec="k", ms=13, label="guided point")
        axis.set(title=name, xlabel="f1", ylabel="f2", xlim=(-0.03, 1.03), ylim=(-0.03, 1.03))
        axis.legend(fontsize=7, loc="lower left")
    figure.savefig(out, dpi=120)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Where schemes end on a concave Pareto front.")
    parser.add_argument("--out", type=Path, default=Path("toy_front.png"), help="file of the picture")
    found, picture = results(), parser.parse_args().out
    for title, ways in found.items():
        print(f"{title:9s} ends at", *sorted({f"({way[-1][0]:.3f}, {way[-1][1]:.3f})" for way in ways}))
    draw(found, picture)
