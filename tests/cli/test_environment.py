"""The process of a command keeps freed memory, and hands that on to its children."""

import os
import subprocess
import sys

import pytest

from paretoda.cli import environment

SCRIPT = """
import resource
from paretoda.cli.environment import prepare_environment
{prepare}
def faults():
    bytearray(2**26)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    bytearray(2**26)
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before
print(faults())
"""


def count_faults(prepare: str, **variables: str) -> int:
    clean = {name: value for name, value in os.environ.items() if not name.startswith("MALLOC_")}
    answer = subprocess.run(
        [sys.executable, "-c", SCRIPT.format(prepare=prepare)],
        capture_output=True,
        text=True,
        check=True,
        env={**clean, **variables},
    )
    return int(answer.stdout)


@pytest.mark.skipif(sys.platform != "linux", reason="glibc's malloc")
def test_freed_arrays_do_not_return_to_the_system() -> None:
    plain, kept = count_faults(""), count_faults("prepare_environment()")
    assert plain > 16  # 64 MiB, in pages of 2 MiB at most
    assert kept < plain / 4
    sizes = {name: str(size) for name, (_, size) in environment._MALLOC.items()}
    assert count_faults("", **sizes) < plain / 4


def test_what_the_user_has_set_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in environment._MALLOC:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("MALLOC_TRIM_THRESHOLD_", "1000")
    monkeypatch.setenv("OMP_WAIT_POLICY", "active")
    environment.prepare_environment()
    assert os.environ["MALLOC_TRIM_THRESHOLD_"] == "1000"
    assert os.environ["OMP_WAIT_POLICY"] == "active"
    assert "MALLOC_MMAP_THRESHOLD_" not in os.environ
