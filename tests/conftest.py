"""Settings for all tests: one thread, reproducible examples."""

import os
from pathlib import Path

import pytest
import torch
from hypothesis import HealthCheck, settings

torch.set_num_threads(1)
settings.register_profile("paretoda", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("paretoda")


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The folder with real data sets, which is no part of the project; without it the test is skipped, visibly."""
    folder = Path(os.environ.get("PARETODA_DATA", Path(__file__).parents[2] / "shared" / "data"))
    if not folder.is_dir():
        pytest.skip(f"no real data at {folder}; set PARETODA_DATA")
    return folder
