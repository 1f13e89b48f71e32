"""Whether several processes can share the batches of a run."""

from __future__ import annotations

from paretoda.data import DomainPair
from paretoda.data.segmentation import ScenePair
from paretoda.job.errors import SettingsError
from paretoda.job.segmentation.translating import translation_name
from paretoda.job.settings import Settings
from paretoda.processes import Processes

_ALONE = ("accumulate", "checkpoint_activations", "compile")
"""They run layers at times when these do not know that the batch is spread."""


def check_shares(settings: Settings, pair: DomainPair | ScenePair, guided: bool, processes: Processes) -> None:
    """Raise unless every process gets at least one sample of each part of a batch."""
    size, several = pair.settings.batch_size, processes.size
    for name in _ALONE if several > 1 else ():
        value = getattr(settings, name)
        if value is True or value > 1:
            option = name.replace("_", "-")
            raise SettingsError(f"--{option} is for one process: leave it out, or start without torchrun")
    if size < several:
        raise SettingsError(
            f"a batch of {size} samples cannot be shared by {several} processes: give a larger --batch-size or start "
            "fewer processes"
        )
    if guided and pair.guide_size < several:
        raise SettingsError(
            f"the {pair.guide_size} held-out target samples of a batch cannot be shared by {several} processes: give a "
            "larger --held-out or start fewer processes"
        )
    if settings.task == "segmentation" and translation_name(settings) != "none":
        raise SettingsError(
            "a translation takes its partners from the whole batch and runs in one process only: take --translation "
            "none, or start without torchrun"
        )
