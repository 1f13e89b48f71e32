"""The MLflow hook of docs/tracking.md hands over every step; the stand-in is as strict as MLflow."""

import json
import re
import sys
from pathlib import Path

import mlflow_stand_in
import pytest

PAGE = Path(__file__).parents[2] / "docs" / "tracking.md"


def test_the_hook_logs_the_losses_and_weights_of_every_step(tmp_path, monkeypatch):
    (code,) = re.findall(r"```python\n(import mlflow.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    monkeypatch.setitem(sys.modules, "mlflow", mlflow_stand_in)
    monkeypatch.chdir(tmp_path)
    made = {}
    exec(code, made)
    hook = code[code.index("def to_mlflow") : code.index("rng =")].strip()
    assert len(hook.splitlines()) <= 10
    found = {(name, step): value for name, value, step in mlflow_stand_in.logged}
    for line in map(json.loads, Path("run/metrics.jsonl").read_text().splitlines()):
        for kind in ("losses", "weights"):
            for name, value in line[kind].items():
                key = (f"{ {'losses': 'loss', 'weights': 'weight'}[kind] }/{name}", line["step"])
                assert found[key] == pytest.approx(value)
    assert mlflow_stand_in.parameters == made["settings"]
    assert "model.safetensors" in mlflow_stand_in.artifacts
