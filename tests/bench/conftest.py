"""A data folder with small features."""

from pathlib import Path

import pytest
from bench.made import write_features
from cli.processes import Inside


@pytest.fixture(scope="session")
def features(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_features(tmp_path_factory.mktemp("data"))


@pytest.fixture
def inside(capfd: pytest.CaptureFixture[str]) -> Inside:
    return Inside(capfd)
