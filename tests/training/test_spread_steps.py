"""Two and three processes take the steps that one process takes on the joint batch."""

import pytest
import torch
from torch import multiprocessing as mp
from training.spread_steps import CASES, free_port, make_step, take_all, taken


@pytest.fixture(scope="module", params=[2, pytest.param(3, marks=pytest.mark.slow)])
def several(request, tmp_path_factory):
    """What each of several processes has after the steps of every case."""
    folder = tmp_path_factory.mktemp("processes")
    mp.spawn(take_all, (request.param, free_port(), str(folder)), nprocs=request.param)
    return [torch.load(folder / f"{rank}.pt") for rank in range(request.param)]


@pytest.mark.parametrize("name", [name for name, case in CASES.items() if case.sync_bn])
def test_several_processes_take_the_steps_of_one(several, name):
    alone = taken(make_step(CASES[name]), CASES[name])
    for found in several:
        assert found[name].keys() == alone.keys()
        for key, value in alone.items():
            torch.testing.assert_close(found[name][key], value, rtol=1e-6, atol=1e-8, msg=lambda m, k=key: f"{k}: {m}")


def test_all_processes_end_with_the_same_numbers(several):
    for name in CASES:  # also where each normalises by its own share
        for key, value in several[0][name].items():
            assert all(torch.equal(other[name][key], value) for other in several[1:]), (name, key)


def test_unsynchronised_statistics_are_others(several):
    alone = taken(make_step(CASES["unsynchronised"]), CASES["unsynchronised"])
    found = several[0]["unsynchronised"]
    key = "model.encoder.1.running_mean"  # the mean of equal shares' means is that of all in the first step only
    assert not torch.allclose(found["reports"], alone["reports"], rtol=1e-6)
    assert torch.isfinite(found[key]).all()


def test_what_cannot_be_done_is_refused_with_one_sentence(several):
    for found in several:
        assert "take voting='last'" in found["refusals"]["exact"]
        assert "different random numbers" in found["refusals"]["chance"]
