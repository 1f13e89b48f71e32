"""The cores that a process may use: affinity, control groups of both versions, and torchrun's share."""

import os

import pytest

from paretoda.distributed import cores
from paretoda.distributed.cores import free_cores, read_quota


@pytest.mark.parametrize(
    ("text", "wanted"), [("200000 100000\n", 2.0), ("50000 100000\n", 0.5), ("max 100000\n", float("inf"))]
)
def test_the_quota_of_a_new_control_group(tmp_path, text, wanted):
    (tmp_path / "cpu.max").write_text(text)
    assert read_quota(tmp_path) == wanted


@pytest.mark.parametrize(("quota", "wanted"), [("300000", 3.0), ("-1", float("inf"))])
def test_the_quota_of_an_old_control_group(tmp_path, quota, wanted):
    (tmp_path / "cpu").mkdir()
    (tmp_path / "cpu" / "cpu.cfs_quota_us").write_text(quota + "\n")
    (tmp_path / "cpu" / "cpu.cfs_period_us").write_text("100000\n")
    assert read_quota(tmp_path) == wanted


def test_without_control_groups_there_is_no_limit(tmp_path):
    assert read_quota(tmp_path) == float("inf")
    (tmp_path / "cpu.max").write_text("nonsense")
    assert read_quota(tmp_path) == float("inf")


def test_cores_are_shared_with_the_processes_of_torchrun_and_one_is_left(tmp_path, monkeypatch):
    monkeypatch.setattr(cores, "_GROUPS", tmp_path)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(8)), raising=False)
    monkeypatch.delenv("LOCAL_WORLD_SIZE", raising=False)
    assert free_cores() == 8
    (tmp_path / "cpu.max").write_text("600000 100000")
    assert free_cores() == 6
    monkeypatch.setenv("LOCAL_WORLD_SIZE", "2")
    assert free_cores() == 3
    monkeypatch.setenv("LOCAL_WORLD_SIZE", "40")
    assert free_cores() == 1
    monkeypatch.setenv("LOCAL_WORLD_SIZE", "many")
    assert free_cores() == 6
