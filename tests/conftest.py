"""Settings for all tests: one thread, reproducible examples."""

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
import sklearn
import torch
from hypothesis import HealthCheck, settings

torch.set_num_threads(1)
settings.register_profile("paretoda", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("paretoda")

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # started in the background: processes would inherit it
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The folder with real data sets, which is no part of the project; without it the test is skipped, visibly."""
    folder = Path(os.environ.get("PARETODA_DATA", Path(__file__).parents[2] / "shared" / "data"))
    if not folder.is_dir():
        pytest.skip(f"no real data at {folder}; set PARETODA_DATA")
    return folder


@pytest.fixture(scope="session", autouse=True)
def _own_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Tests neither read nor fill the user's cache."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("PARETODA_CACHE", str(tmp_path_factory.mktemp("cache")))
        yield


@pytest.fixture(autouse=True)
def _routing_as_it_was() -> Iterator[None]:
    """Importing skada enables scikit-learn's metadata routing for the whole process, and so for other tests."""
    before = sklearn.get_config()["enable_metadata_routing"]
    yield
    sklearn.set_config(enable_metadata_routing=before)
