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
from contextlib import suppress
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

from paretoda import __version__
from paretoda.errors import RunError
from paretoda.gradients import Report
from paretoda.io.files import append_line, atomic_file, find_unfinished, parse_json, write_json, write_text
from paretoda.io.toml import read_toml, to_toml
from paretoda.run.directory.tables import Predicted, metrics_line, predictions, read_whole, results, step_lines
from paretoda.run.settings import Settings, make_settings


def environment() -> dict[str, str]:
    """Versions of what a run depends on."""
    found = {"paretoda": __version__, "python": sys.version.split()[0], "platform": platform.platform()}
    return found | {name: version(name) for name in ("torch", "numpy", "scipy", "scikit-learn", "pillow")}


@dataclass(frozen=True)
class RunPlaces:
    """Where the files of one run are.

    Args:
        path: the directory.
    """

    path: Path

    @property
    def config(self) -> Path:
        """Settings and inputs."""
        return self.path / "config.toml"

    @property
    def metrics(self) -> Path:
        """One JSON line a step."""
        return self.path / "metrics.jsonl"

    @property
    def table(self) -> Path:
        """The same as a table, at the end."""
        return self.path / "metrics.csv"

    @property
    def tensorboard(self) -> Path:
        """Folder of TensorBoard's event files, where they are wanted."""
        return self.path / "tensorboard"

    @property
    def checkpoint(self) -> Path:
        """The newest state to go on from."""
        return self.path / "checkpoint" / "last.pt"

    def candidate(self, taken: int) -> Path:
        """The model after that many steps, until one is chosen."""
        return self.path / "checkpoint" / f"candidate-{taken:08d}.safetensors"

    @property
    def model(self) -> Path:
        """The chosen model's weights; appears at the end only."""
        return self.path / "model.safetensors"

    @property
    def description(self) -> Path:
        """Classes, transforms, architecture."""
        return self.path / "model.json"

    @property
    def predictions(self) -> Path:
        """The target's predicted classes."""
        return self.path / "predictions.csv"

    @property
    def maps(self) -> Path:
        """Folder of the target's label maps, in segmentation."""
        return self.path / "predictions"

    @property
    def translation(self) -> Path:
        """The CycleGAN that was trained before the run, where it has one."""
        return self.path / "translation.safetensors"

    @property
    def results(self) -> Path:
        """Scores without labels, the choice, warnings."""
        return self.path / "results.json"

    @property
    def report(self) -> Path:
        """The page."""
        return self.path / "report.html"

    @property
    def card(self) -> Path:
        """The model card."""
        return self.path / "README.md"

    @property
    def exported(self) -> dict[str, Path]:
        """Format -> where `paretoda export` puts the model if nobody says otherwise."""
        return {"onnx": self.path / "model.onnx", "torch": self.path / "model.pt2"}


_INPUTS = ("source", "target")


class RunDirectory(RunPlaces):
    """The files of one run: written, read and removed.

    Args:
        path: the directory.
    """

    def check_free(self, *, overwrite: bool) -> None:
        """Raise unless a new run may be put here."""
        if self.path.is_file():
            raise RunError(f"{self.path} is a file; give a directory with --out")
        if not self.path.exists() or not self._foreign():
            return
        if not self.config.exists():
            raise RunError(f"{self.path} is not empty and holds no run; give another --out")
        if not overwrite:
            raise RunError(f"{self.path} already has a run; use --resume to go on, --overwrite to begin anew")

    def begin(self, settings: Settings, inputs: dict[str, str]) -> None:
        """Make the directory and write what the run is; an earlier run in it is removed."""
        self._clear()
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            write_json(self.path / "environment.json", environment())
            self.write_config(settings, inputs)
        except OSError:  # a full disk: what is there is no run, and would be in the way of the next attempt
            self._clear()
            raise

    def write_config(self, settings: Settings, inputs: dict[str, str]) -> None:
        """Write what the run is."""
        write_text(self.config, to_toml({**inputs, **settings.model_dump()}))

    def _foreign(self) -> bool:
        """Whether there is more than a run leaves that was killed before it had written what it is."""
        ours = {self.path / ".lock", self.path / "environment.json", *find_unfinished(self.path)}
        return any(path not in ours for path in self.path.iterdir())

    def _clear(self) -> None:
        """Remove a run's files and nothing else; the directory as well where it is empty then."""
        for folder in (self.checkpoint.parent, self.maps, self.tensorboard):
            shutil.rmtree(folder, ignore_errors=True)
        for file in (*self._files(), *find_unfinished(self.path), self.config):
            file.unlink(missing_ok=True)
        with suppress(OSError):
            self.path.rmdir()

    def _files(self) -> tuple[Path, ...]:
        given = (self.model, self.description, self.predictions, self.results, self.report, self.metrics)
        more = (self.table, self.card, *self.exported.values(), self.translation, self.path / "environment.json")
        return (*given, *more)

    def read_config(self) -> tuple[Settings, dict[str, str]]:
        """The settings and inputs of the run that is here."""
        if not self.config.exists():
            raise RunError(f"there is no run in {self.path}: config.toml is missing")
        values = read_toml(self.config)
        inputs = {key: str(values.pop(key)) for key in _INPUTS if key in values}
        return make_settings(values), inputs

    def add_metrics(self, taken: int, report: Report) -> None:
        """Append the line of a step."""
        append_line(self.metrics, json.dumps(metrics_line(taken, report)), sync=False)

    def sync_metrics(self) -> None:
        """Have all lines on the disk: a checkpoint must not know of steps that they lack after a power cut."""
        with self.metrics.open("rb") as file:
            os.fsync(file.fileno())

    def first_metrics(self, taken: int) -> list[dict[str, Any]]:
        """The lines of the first `taken` steps; no other stays: a killed run may have written more, or half a line."""
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
        """The lines of all steps; half a line at the end, of a run under way or killed, is left out."""
        try:
            text = read_whole(self.metrics)
            return step_lines(text[: text.rfind("\n") + 1])
        except ValueError as error:
            raise RunError(f"{self.metrics} is damaged ({error})") from error

    def read_results(self) -> dict[str, Any]:
        """What results.json holds; nothing where the run has not finished."""
        if not (self.model.exists() or self.results.exists()):
            return {}
        try:
            return results(self._read_json(self.results))
        except ValueError as error:
            raise RunError(f"{self.results} is damaged ({error})") from error

    def read_predictions(self) -> list[Predicted]:
        """(name, class, confidence) of the target's samples."""
        try:
            return predictions(read_whole(self.predictions))
        except ValueError as error:
            raise RunError(f"{self.predictions} is damaged ({error})") from error

    def read_environment(self) -> dict[str, str]:
        """The versions that the run was made with."""
        return {key: str(value) for key, value in self._read_json(self.path / "environment.json").items()}

    def _read_json(self, path: Path) -> dict[str, Any]:
        try:
            values: Any = parse_json(read_whole(path))
        except (OSError, ValueError) as error:
            raise RunError(f"{path} cannot be read ({error}); the run is damaged") from error
        if not isinstance(values, dict):
            raise RunError(f"{path} is no table of names and values; the run is damaged")
        return values

    def tidy(self) -> None:
        """Remove what a killed process was about to write, and of a finished run its candidates."""
        candidates = self.checkpoint.parent.glob("candidate-*.safetensors") if self.model.exists() else ()
        for file in (*find_unfinished(self.path), *candidates):
            file.unlink(missing_ok=True)
