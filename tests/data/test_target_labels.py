"""Deleting the target's labels changes nothing: they were never read."""

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import torch

from paretoda.data.build_pair import make_pair
from paretoda.data.pair import DomainPair
from paretoda.data.settings import PairSettings

SETTINGS = PairSettings(batch_size=7, seed=3)


def identical(one: DomainPair, two: DomainPair) -> bool:
    for step in (0, 1, 50):
        left, right = one.batch(step), two.batch(step)
        ours, theirs = left.tensors(), right.tensors()
        if ours.keys() != theirs.keys() or not all(torch.equal(ours[name], theirs[name]) for name in ours):
            return False
    whole = [torch.cat(list(pair.inputs("all-target", 9))) for pair in (one, two)]
    return torch.equal(*whole) and one.classes == two.classes


def test_in_an_npz(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    source = (rng.normal(size=(50, 3)), np.arange(50) % 4)
    x, y = rng.normal(size=(40, 3)), np.arange(40) % 4
    np.savez(tmp_path / "with.npz", x=x, y=y, classes=np.array(["a", "b", "c", "d"]))
    np.savez(tmp_path / "without.npz", x=x)
    np.savez(tmp_path / "wrong.npz", x=x, y=np.array(["nonsense", None], dtype=object))
    pairs = [make_pair(source, tmp_path / f"{name}.npz", SETTINGS) for name in ("with", "without", "wrong")]
    assert identical(pairs[0], pairs[1])
    assert identical(pairs[0], pairs[2])


def test_in_a_folder(two_folders: tuple[Path, Path], tmp_path: Path) -> None:
    source, target = two_folders
    flat = tmp_path / "flat"
    flat.mkdir()
    for path in target.rglob("*.png"):
        shutil.copy(path, flat / path.name)
    assert identical(make_pair(source, target, SETTINGS), make_pair(source, flat, SETTINGS))


def test_in_a_list(two_folders: tuple[Path, Path]) -> None:
    source, target = two_folders
    paths = [str(path.relative_to(target)) for path in sorted(target.rglob("*.png"))]
    (target / "with.txt").write_text("".join(f"{path} {k % 5}\n" for k, path in enumerate(paths)))
    (target / "without.txt").write_text("\n".join(paths))
    pairs = [make_pair(source, target / f"{name}.txt", SETTINGS) for name in ("with", "without")]
    assert identical(*pairs)


def test_in_a_tuple_and_a_dataset() -> None:
    class Untouchable:
        """Fails whatever is done with it."""

        def __getattribute__(self, name: str) -> Any:
            raise AssertionError(f"the target's labels were asked for {name}")

    rng = np.random.default_rng(0)
    source, x = (rng.normal(size=(50, 3)), np.arange(50) % 4), rng.normal(size=(40, 3))
    plain = make_pair(source, x, SETTINGS)
    assert identical(plain, make_pair(source, (x, Untouchable()), SETTINGS))
    dataset = torch.utils.data.TensorDataset(torch.tensor(x), torch.arange(40))
    assert identical(plain, make_pair(source, dataset, SETTINGS))
