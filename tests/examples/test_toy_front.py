"""The toy front: linear weighting reaches only the ends, EPO its ray, PMTL its region, ParetoDA the guided point."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def toy():
    sys.path.insert(0, str(ROOT / "examples"))
    import toy_front

    yield toy_front
    sys.path.remove(str(ROOT / "examples"))


@pytest.fixture(scope="module")
def ends(toy):
    return {name: np.array([path[-1] for path in paths]) for name, paths in toy.results(starts=2).items()}


def distance_to_front(toy, points):
    import torch

    front = np.array([[v.item() for v in toy.losses(t * toy.CENTRE).values()] for t in torch.linspace(-1, 1, 4001)])
    return np.linalg.norm(front[None] - points[:, None], axis=2).min(axis=1)


def test_linear_weighting_reaches_only_the_two_ends_of_a_concave_front(ends):
    nearest = np.minimum(ends["linear"][:, 0], ends["linear"][:, 1])
    assert (nearest < 0.05).all()
    assert len({bool(point[0] < point[1]) for point in ends["linear"]}) == 2


def test_the_others_end_inside_the_front_and_on_it(toy, ends):
    for name in ("MGDA", "EPO", "PMTL", "ParetoDA"):
        assert (distance_to_front(toy, ends[name]) < 2e-3).all(), name
        assert (ends[name].min(axis=1) > 0.1).all(), name


def test_epo_reaches_its_ray_to_one_thousandth(toy, ends):
    for index, point in enumerate(ends["EPO"]):
        ray = np.array(toy.RAYS[index // 2])
        assert abs(ray[0] * point[0] - ray[1] * point[1]) / (ray @ point) < 1e-3


def test_pmtl_ends_in_its_sub_region(ends):
    for index, point in enumerate(ends["PMTL"]):
        angle = np.arctan2(point[1], point[0]) / (np.pi / 8)
        assert abs(angle - (index // 2 + 1)) <= 0.5 + 1e-3


def test_paretoda_reaches_the_guided_point(toy, ends):
    goal = np.array([value.item() for value in toy.losses(toy.GUIDED_POINT).values()])
    assert np.abs(ends["ParetoDA"] - goal).max() < 5e-3


def test_the_example_runs_as_a_program_and_draws(tmp_path):
    out = tmp_path / "front.png"
    done = subprocess.run(
        [sys.executable, str(ROOT / "examples" / "toy_front.py"), "--out", str(out)],
        capture_output=True,
        text=True,
        check=True,
        env={"MPLBACKEND": "Agg", "PATH": "/usr/bin:/bin", "OMP_NUM_THREADS": "1", "HOME": str(tmp_path)},
    )
    assert "EPO" in done.stdout
    assert out.stat().st_size > 20_000
