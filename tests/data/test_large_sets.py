"""Large sets of files: few are opened at the start, damage is named later, and threads change no batch."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch
from PIL import Image

from paretoda.data import PairSettings, examine, make_pair, open_samples
from paretoda.data.open import files
from paretoda.data.prefetching import Reading
from paretoda.errors import DataError

SETTINGS = PairSettings(batch_size=5, least_target=2, image_size=16, augment="strong", held_out=0.2)


def pair_with(workers: int, folders: tuple[Path, Path]):
    return make_pair(*folders, replace(SETTINGS, reading=Reading(workers)))


@pytest.mark.parametrize("workers", [1, 3])
@pytest.mark.parametrize("memory", [0, 2**29], ids=["read anew", "kept"])
def test_threads_change_no_batch_and_no_pass(two_folders, workers, memory, monkeypatch) -> None:
    monkeypatch.setattr("paretoda.data.rows._MEMORY", memory)
    monkeypatch.setattr("paretoda.data.prefetching._PIECE", 4)
    from paretoda.data.prefetching import prefetch

    plain, threaded = pair_with(0, two_folders), pair_with(workers, two_folders)
    assert (plain.workers, threaded.workers) == (0, workers)
    batches = prefetch(threaded.batch, range(12), workers)
    for step, batch in enumerate(batches):
        assert batch.tensors().keys() == plain.batch(step).tensors().keys()
        for name, tensor in plain.batch(step).tensors().items():
            assert torch.equal(getattr(batch, name), tensor)
    for part in ("source", "all-target", "held-out-target"):
        ours, theirs = (list(pair.inputs(part, 7)) for pair in (plain, threaded))
        assert [len(rows) for rows in ours] == [len(rows) for rows in theirs]
        assert torch.equal(torch.cat(ours), torch.cat(theirs))


def test_features_need_no_threads() -> None:
    x = torch.randn(60, 3).numpy()
    y = torch.arange(60).numpy() % 2
    assert make_pair((x, y), x, PairSettings(reading=Reading(3))).workers == 0


def test_few_files_are_opened_at_the_start(two_folders, monkeypatch) -> None:
    monkeypatch.setattr(files, "CHECKED_FILES", 4)
    monkeypatch.setattr("paretoda.data.samples.INSPECTED", 4)
    opened = set()
    real = Image.open

    def noted(path, *rest, **options):
        opened.add(Path(path))
        return real(path, *rest, **options)

    monkeypatch.setattr(Image, "open", noted)
    pair = make_pair(*two_folders, replace(SETTINGS, image_size=16))
    assert 0 < len(opened) <= 2 * (4 + 16)
    looked_at = {path for path in opened if path.is_relative_to(two_folders[0])}
    assert len(looked_at) < 24
    assert any("Of 24 image files 4 were looked at; `paretoda doctor` looks at all" in note for note in pair.notes)


@pytest.mark.parametrize("workers", [0, 2])
def test_damage_that_nobody_looked_at_is_named_when_it_is_read_and_by_the_doctor(
    two_folders, workers, monkeypatch
) -> None:
    source, target = two_folders
    bad = sorted(target.rglob("*.png"), key=lambda path: path.name)[8]  # not among those whose size is looked at
    bad.write_bytes(bad.read_bytes()[:-30])
    with pytest.raises(DataError, match=r"08\.png is damaged or truncated"):
        open_samples(target, labelled=False)
    monkeypatch.setattr(files, "CHECKED_FILES", 2)
    pair = pair_with(workers, two_folders)
    with pytest.raises(DataError, match=r"08\.png is damaged or truncated .*--skip-bad"):
        list(pair.inputs("all-target", 6))
    assert any("08.png" in finding.message for finding in examine(source, target))
    skipping = make_pair(source, target, replace(SETTINGS, skip_bad=True))
    assert len(skipping.target.samples) == 23, "leaving files out needs certainty"
