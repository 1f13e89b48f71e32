"""Several optimisers behave as one."""

import copy
import subprocess
import sys
from itertools import pairwise

import pytest
import torch
from torch import nn

from paretoda.training.optimisers import SGD, OptimiserGroup, polynomial_decay, set_learning_rates


def made():
    torch.manual_seed(0)
    one, other = nn.Linear(3, 2), nn.Linear(2, 1)
    parts = torch.optim.SGD(one.parameters(), lr=0.1, momentum=0.9), torch.optim.Adam(other.parameters(), lr=0.01)
    return one, other, parts


def equal(one, other):
    return all(a.equal(b) for a, b in zip(one.parameters(), other.parameters(), strict=True))


def train(one, other, optimiser, steps):
    for step in range(steps):
        optimiser.zero_grad()
        inputs = torch.randn(5, 3, generator=torch.Generator().manual_seed(step))
        other(one(inputs)).square().mean().backward()
        set_learning_rates(optimiser, polynomial_decay(step / 10))
        optimiser.step()


def test_a_step_is_a_step_of_each():
    one, other, parts = made()
    joined = OptimiserGroup(*parts)
    train(one, other, joined, 5)
    first, second, (sgd, adam) = made()
    for step in range(5):
        inputs = torch.randn(5, 3, generator=torch.Generator().manual_seed(step))
        sgd.zero_grad(), adam.zero_grad()
        second(first(inputs)).square().mean().backward()
        for optimiser in (sgd, adam):
            set_learning_rates(optimiser, polynomial_decay(step / 10))
            optimiser.step()
    assert all(
        a.equal(b)
        for a, b in zip(
            [*one.parameters(), *other.parameters()], [*first.parameters(), *second.parameters()], strict=True
        )
    )


def test_its_state_goes_on_bit_for_bit_and_its_groups_stay_those_of_the_parts():
    one, other, parts = made()
    joined = OptimiserGroup(*parts)
    train(one, other, joined, 3)
    state, weights = copy.deepcopy(joined.state_dict()), [copy.deepcopy(each.state_dict()) for each in (one, other)]
    train(one, other, joined, 3)
    first, second, fresh = made()
    again = OptimiserGroup(*fresh)
    again.load_state_dict(state)
    first.load_state_dict(weights[0])
    second.load_state_dict(weights[1])
    train(first, second, again, 3)
    assert all(a.equal(b) for a, b in zip(one.parameters(), first.parameters(), strict=True))
    assert all(a.equal(b) for a, b in zip(other.parameters(), second.parameters(), strict=True))
    assert all(
        mine is theirs
        for mine, theirs in zip(again.param_groups, [g for p in fresh for g in p.param_groups], strict=True)
    )


def test_what_does_not_fit_is_refused():
    _, _, parts = made()
    joined = OptimiserGroup(*parts)
    with pytest.raises(ValueError, match="2 optimisers were saved, and here are 1"):
        OptimiserGroup(parts[0]).load_state_dict(joined.state_dict())
    with pytest.raises(ValueError, match="share a closure"):
        joined.step(lambda: 0.0)


def test_the_polynomial_schedule_falls_from_one_to_nothing():
    values = [polynomial_decay(step / 20) for step in range(21)]
    assert values[0] == 1
    assert values[-1] == 0
    assert all(before > after for before, after in pairwise(values))
    assert values[10] == pytest.approx(0.5**0.9)


@pytest.mark.parametrize("fused", [False, True])
def test_our_sgd_is_torchs_to_the_last_bit(fused):
    torch.manual_seed(0)
    networks = nn.Linear(4, 3), nn.Linear(4, 3)
    networks[1].load_state_dict(networks[0].state_dict())
    options = {"lr": 0.1, "momentum": 0.9, "weight_decay": 1e-3, "nesterov": True, "fused": fused}
    ours, theirs = SGD(networks[0].parameters(), **options), torch.optim.SGD(networks[1].parameters(), **options)
    for step in range(6):
        for network, optimiser in zip(networks, (ours, theirs), strict=True):
            optimiser.zero_grad()
            network(torch.ones(2, 4) * step).square().sum().backward()
            optimiser.step()
        if step == 3:
            ours.load_state_dict(copy.deepcopy(theirs.state_dict()))
    assert equal(*networks)
    states = ours.state_dict()["state"], theirs.state_dict()["state"]
    assert all(a["momentum_buffer"].equal(b["momentum_buffer"]) for a, b in zip(*map(dict.values, states), strict=True))


def test_a_run_on_features_imports_neither_torchs_compiler_nor_what_it_does_not_use(tmp_path):
    program = """
import sys
import numpy as np
from paretoda.api import adapt
x = np.random.default_rng(0).normal(size=(60, 4)).astype(np.float32)
seen = []
late = ("torch._dynamo", "sklearn", "matplotlib", "pandas", "jinja2", "scipy.stats", "torch.distributed.tensor")
adapt((x, np.arange(60) % 2), x, sys.argv[1], steps=4, batch_size=8, members=2, components=2,
      after=[lambda *_: seen.append([name for name in late if name in sys.modules])])
assert seen[0] == [], seen[0]
never = [name for name in late if name in sys.modules and name != "jinja2"]
assert not never, never
"""
    done = subprocess.run(
        [sys.executable, "-c", program, tmp_path / "run"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
