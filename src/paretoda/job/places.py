"""A run's directory: what is in it.

config.toml (everything needed to repeat the run), environment.json, metrics.jsonl (one line a step), checkpoint/ (to
go on), perhaps tensorboard/, and at the end model.safetensors + model.json (to predict), metrics.csv, predictions.csv,
results.json, report.html and README.md, the model card. `paretoda export` adds model.onnx or model.pt2.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


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
