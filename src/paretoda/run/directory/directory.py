"""A run's directory: its paths, and how its files are written, read and removed.

config.toml (everything needed to repeat the run), environment.json, metrics.jsonl (one line a step), checkpoint/ (to
resume), perhaps tensorboard/, and at the end model.safetensors + model.json (to predict), metrics.csv, predictions.csv,
results.json, report.html and README.md, the model card. `paretoda export` adds model.onnx or model.pt2.
"""

from __future__ import annotations

import json
import os
import platform
import shutil
import sys
from collections.abc import Mapping
from contextlib import suppress
from importlib.metadata import version
from pathlib import Path
from typing import Any

from paretoda import __version__
from paretoda.errors import RunError
from paretoda.gradients import Report
from paretoda.io.files import append_line, atomic_file, find_unfinished, parse_json, write_json, write_text
from paretoda.io.toml import read_toml, to_toml
from paretoda.run.directory.tables import (
    Predicted,
    check_results,
    metrics_line,
    parse_metrics,
    parse_predictions,
    read_text,
)
from paretoda.run.settings import Settings, parse_settings

_INPUTS = ("source", "target", "target_labels")


def read_versions() -> dict[str, str]:
    """Return the versions of what a run depends on."""
    found = {"paretoda": __version__, "python": sys.version.split()[0], "platform": platform.platform()}
    return found | {name: version(name) for name in ("torch", "numpy", "scipy", "scikit-learn", "pillow")}


class RunDirectory:
    """The files of one run: their paths, and how they are written, read and removed.

    Args:
        path: The directory of the run.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.config = path / "config.toml"  # settings and inputs
        self.environment = path / "environment.json"  # versions that the run was made with
        self.metrics = path / "metrics.jsonl"  # one JSON line for each step
        self.table = path / "metrics.csv"  # the metrics as a table, written at the end
        self.tensorboard = path / "tensorboard"  # TensorBoard's event files
        self.checkpoint = path / "checkpoint" / "last.pt"  # the newest state to resume from
        self.model = path / "model.safetensors"  # the chosen model's weights, written at the very end
        self.description = path / "model.json"  # classes, transforms, architecture
        self.predictions = path / "predictions.csv"  # the target's predicted classes
        self.maps = path / "predictions"  # the target's label maps, where the task predicts maps
        self.translation = path / "translation.safetensors"  # the CycleGAN that was trained before the run
        self.results = path / "results.json"  # label-free scores, the chosen model, warnings
        self.report = path / "report.html"  # the report as one page
        self.card = path / "README.md"  # the model card
        self.exported = {"onnx": path / "model.onnx", "torch": path / "model.pt2"}  # what `paretoda export` writes

    def candidate(self, taken: int) -> Path:
        """Return the path of the model after that many steps, kept until one is chosen."""
        return self.path / "checkpoint" / f"candidate-{taken:08d}.safetensors"

    def check_free(self, *, overwrite: bool) -> None:
        """Raise RunError unless a new run may be written here."""
        if self.path.is_file():
            raise RunError(f"{self.path} is a file; give a directory with --out")
        if not self.path.exists() or not self._has_other_files():
            return
        if not self.config.exists():
            raise RunError(f"{self.path} is not empty and contains no run; give another --out")
        if not overwrite:
            raise RunError(f"{self.path} already has a run; use --resume to continue, --overwrite to start again")

    def begin(self, settings: Settings, inputs: Mapping[str, str | list[str]]) -> None:
        """Create the directory with config.toml and environment.json; an earlier run in it is removed."""
        self._clear()
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            write_json(self.environment, read_versions())
            self.write_config(settings, inputs)
        except OSError:  # a full disk: the rest is no run, and would be in the way of the next attempt
            self._clear()
            raise

    def write_config(self, settings: Settings, inputs: Mapping[str, str | list[str]]) -> None:
        """Write settings and inputs to config.toml."""
        write_text(self.config, to_toml({**inputs, **settings.model_dump()}))

    def _has_other_files(self) -> bool:
        """Return whether there is more than a run leaves that was killed before it had written config.toml."""
        ours = {self.path / ".lock", self.environment, *find_unfinished(self.path)}
        return any(path not in ours for path in self.path.iterdir())

    def _clear(self) -> None:
        """Remove the files of a run and nothing else, and the directory if it is empty then."""
        for folder in (self.checkpoint.parent, self.maps, self.tensorboard):
            shutil.rmtree(folder, ignore_errors=True)
        for file in (*self._files(), *find_unfinished(self.path), self.config):
            file.unlink(missing_ok=True)
        with suppress(OSError):
            self.path.rmdir()

    def _files(self) -> tuple[Path, ...]:
        given = (self.model, self.description, self.predictions, self.results, self.report, self.metrics)
        more = (self.table, self.card, *self.exported.values(), self.translation, self.environment)
        return (*given, *more)

    def read_config(self) -> tuple[Settings, dict[str, str | list[str]]]:
        """Read the settings and inputs of the run; several sources are a list."""
        if not self.config.exists():
            raise RunError(f"there is no run in {self.path}: config.toml is missing")
        values = read_toml(self.config)
        given = {key: values.pop(key) for key in _INPUTS if key in values}
        inputs = {
            key: [str(one) for one in what] if isinstance(what, list) else str(what) for key, what in given.items()
        }
        return parse_settings(values), inputs

    def add_metrics(self, taken: int, report: Report) -> None:
        """Append the metrics of a step."""
        append_line(self.metrics, json.dumps(metrics_line(taken, report)), sync=False)

    def sync_metrics(self) -> None:
        """Flush the metrics to disk: after a power cut they must not lack steps that a checkpoint has."""
        with self.metrics.open("rb") as file:
            os.fsync(file.fileno())

    def keep_metrics(self, taken: int) -> list[dict[str, Any]]:
        """Keep and return the metrics of the first `taken` steps; a killed run may have written more."""
        written = self.metrics.read_bytes() if self.metrics.exists() else b""
        lines = b"".join(written.splitlines(keepends=True)[:taken])
        if lines != written:
            with atomic_file(self.metrics) as file:
                file.write(lines)
        found = self.read_metrics() if lines else []
        if len(found) < taken:
            raise RunError(f"{self.metrics} lacks lines of the first {taken} steps; start again with --overwrite")
        return found

    def read_metrics(self) -> list[dict[str, Any]]:
        """Read the metrics of all steps; half a line at the end, of a running or killed run, is left out."""
        try:
            text = read_text(self.metrics)
            return parse_metrics(text[: text.rfind("\n") + 1])
        except ValueError as error:
            raise RunError(f"{self.metrics} is damaged ({error})") from error

    def read_results(self) -> dict[str, Any]:
        """Read results.json; an empty dictionary where the run has not finished."""
        if not (self.model.exists() or self.results.exists()):
            return {}
        try:
            return check_results(self._read_json(self.results))
        except ValueError as error:
            raise RunError(f"{self.results} is damaged ({error})") from error

    def read_predictions(self) -> list[Predicted]:
        """Read name, class and confidence of each target sample."""
        try:
            return parse_predictions(read_text(self.predictions))
        except ValueError as error:
            raise RunError(f"{self.predictions} is damaged ({error})") from error

    def read_environment(self) -> dict[str, str]:
        """Read the versions that the run was made with."""
        return {key: str(value) for key, value in self._read_json(self.environment).items()}

    def _read_json(self, path: Path) -> dict[str, Any]:
        try:
            values: Any = parse_json(read_text(path))
        except (OSError, ValueError) as error:
            raise RunError(f"{path} cannot be read ({error}); the run is damaged") from error
        if not isinstance(values, dict):
            raise RunError(f"{path} is not a table of names and values; the run is damaged")
        return values

    def tidy(self) -> None:
        """Remove unfinished files of a killed process and, of a finished run, its candidates."""
        candidates = self.checkpoint.parent.glob("candidate-*.safetensors") if self.model.exists() else ()
        for file in (*find_unfinished(self.path), *candidates):
            file.unlink(missing_ok=True)
