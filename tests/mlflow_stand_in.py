"""The few functions of MLflow that the documents call, as strict as MLflow; for where it is not installed."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

logged: list[tuple[str, float, int]] = []
parameters: dict[str, object] = {}
artifacts: list[str] = []


@contextmanager
def start_run(*, run_name: str | None = None) -> Iterator[None]:
    for kept in (logged, parameters, artifacts):
        kept.clear()
    assert run_name is None or run_name
    yield


def log_params(params: dict[str, object]) -> None:
    parameters.update(params)


def log_metrics(metrics: dict[str, float], step: int | None = None) -> None:
    assert type(step) is int
    for name, value in metrics.items():
        assert set(name) <= set("abcdefghijklmnopqrstuvwxyz-_./ :"), name  # MLflow refuses other characters
        logged.append((name, float(value), step))


def log_artifacts(local_dir: str) -> None:
    artifacts.extend(path.name for path in Path(local_dir).iterdir())
