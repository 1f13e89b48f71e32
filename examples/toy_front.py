"""Where schemes end on a concave Pareto front (Fonseca and Fleming, 1995): the whole idea in one picture.

Two losses of a point x in the plane, f± = 1 - exp(-|x ∓ (1, 1)/√2|²). A weighted sum finds only the front's ends.
Run it with `python examples/toy_front.py --out toy_front.png`.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import torch
from torch import Tensor

import paretoda
from paretoda.core.problem import Scheme
from paretoda.schemes import EPO, MGDA, PMTL, Linear, ParetoPaper

CENTRE = torch.full((2,), 0.5**0.5, dtype=torch.float64)
RATES = np.geomspace(0.2, 1e-4, 300)  # the weights of a linear programme jump, so the steps must shrink
GUIDED_POINT = 0.4 * CENTRE  # on the Pareto set, the segment from -CENTRE to CENTRE
RAYS = ((1.0, 4.0), (1.0, 1.0), (4.0, 1.0))


def losses(x: Tensor) -> dict[str, Tensor]:
    return {"f1": 1 - torch.exp(-(x - CENTRE).square().sum()), "f2": 1 - torch.exp(-(x + CENTRE).square().sum())}


def descend(scheme: Scheme, start: Tensor) -> np.ndarray[tuple[int, int], np.dtype[np.float64]]:
    """The losses along the way, shape (steps, 2)."""
    x = torch.nn.Parameter(start.clone())
    optimiser = torch.optim.SGD([x])
    path = []
    for rate in RATES:
        optimiser.param_groups[0]["lr"] = rate
        optimiser.zero_grad()
        guide = (x - GUIDED_POINT).square().sum()
        report = paretoda.backward(losses(x), shared=[x], scheme=scheme, guide=guide)
        optimiser.step()
        path.append(report.losses)
    return np.array(path)


def results(starts: int = 4, seed: int = 0) -> dict[str, list[np.ndarray[tuple[int, int], np.dtype[np.float64]]]]:
    """Paths by scheme, from random starts."""
    points = torch.rand(starts, 2, generator=torch.Generator().manual_seed(seed), dtype=torch.float64) * 1.2 - 0.6
    return {
        "linear": [descend(Linear((w, 2 - w)), x) for w in (0.6, 1.4) for x in points],
        "MGDA": [descend(MGDA(), x) for x in points],
        "EPO": [descend(EPO(ray, threshold=1e-7), x) for ray in RAYS for x in points],
        "PMTL": [descend(PMTL(index=k, divisions=4), x) for k in (1, 2, 3) for x in points],
        "ParetoDA": [descend(ParetoPaper(threshold=1e-7), x) for x in points],
    }


def draw(paths: dict[str, list[np.ndarray[tuple[int, int], np.dtype[np.float64]]]], out: Path) -> None:
    front = np.array([[v.item() for v in losses(t * CENTRE).values()] for t in torch.linspace(-1, 1, 200)])
    goal = [v.item() for v in losses(GUIDED_POINT).values()]
    figure, axes = plt.subplots(1, len(paths), figsize=(3.2 * len(paths), 3.4), sharex=True, sharey=True)
    for axis, (name, runs) in zip(axes, paths.items(), strict=True):
        axis.plot(*front.T, color="0.6", lw=4, label="Pareto front", zorder=1)
        for path in runs:
            axis.plot(*path.T, lw=0.9, color="tab:blue", alpha=0.6)
            axis.plot(*path[-1], "o", color="tab:red", ms=6, zorder=3)
        for ray in RAYS if name == "EPO" else ():
            axis.plot([0, 1 / ray[0]], [0, 1 / ray[1]], "--", color="0.3", lw=0.8)
        for angle in np.pi / 16 * np.array([1, 3, 5, 7]) if name == "PMTL" else ():
            axis.plot([0, 1.5 * np.cos(angle)], [0, 1.5 * np.sin(angle)], ":", color="0.3", lw=0.8)
        if name == "ParetoDA":
            axis.plot(*goal, "*", color="gold", mec="k", ms=13, zorder=4, label="guided point")
        axis.set(title=name, xlabel="f1", xlim=(-0.03, 1.03), ylim=(-0.03, 1.03))
        axis.legend(fontsize=7, loc="lower left")
    axes[0].set_ylabel("f2")
    figure.tight_layout()
    figure.savefig(out, dpi=120)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--out", type=Path, default=Path("toy_front.png"), help="where the picture goes")
    options = parser.parse_args()
    found = results()
    for scheme_name, runs_of_scheme in found.items():
        ends = sorted({f"({path[-1][0]:.3f}, {path[-1][1]:.3f})" for path in runs_of_scheme})
        print(f"{scheme_name:9s} ends at {' '.join(ends)}")
    draw(found, options.out)
    print(f"drawn in {options.out}")
