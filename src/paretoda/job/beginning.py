"""How a run begins: new or resumed, with which settings, from which data, into which directory."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from paretoda.job.directory import RunDirectory, RunError
from paretoda.job.memory import check_machine
from paretoda.job.settings import Settings, SettingsError, make_settings, source_only
from paretoda.job.tasks import Task


@dataclass(frozen=True, eq=False)
class Beginning:
    """What is known before the data are opened.

    Args:
        settings: of the run.
        source: labelled data.
        target: None: the source is alone.
        directory: None: nothing is written.
        resume: whether the run goes on.
    """

    settings: Settings
    source: Any
    target: Any
    directory: RunDirectory | None
    resume: bool

    @property
    def going_on(self) -> bool:
        """Whether there is a checkpoint to go on from."""
        return self.resume and self.directory is not None and self.directory.checkpoint.exists()

    def write(self) -> None:
        """Make the directory of a new run."""
        if self.directory is not None and not self.resume:
            given = {"source": self.source} if self.target is None else {"source": self.source, "target": self.target}
            self.directory.begin(self.settings, {domain: _path(what) for domain, what in given.items()})


def begin(
    task: Task, inputs: tuple[Any, Any], out: str | Path | None, how: tuple[bool, bool], settings: Mapping[str, Any]
) -> Beginning:
    """Check what can be checked before anything is read.

    Args:
        task: of the function that was called; settings of another are an error.
        inputs: source and target, None where they are not given.
        out: the run's directory.
        how: whether to resume, and whether to overwrite.
        settings: by name.
    """
    (source, target), (resume, overwrite) = inputs, how
    directory = RunDirectory(Path(out)) if out is not None else None
    if resume:
        if directory is None:
            raise RunError("resume needs the directory of the run: give out")
        if settings:
            raise SettingsError(f"a resumed run keeps its settings; leave out {', '.join(settings)}")
        chosen, known = directory.read_config()
        if directory.model.exists():
            raise RunError(f"the run in {directory.path} is finished; use it, or begin anew with --overwrite")
        source = known.get("source") if source is None else source
        target = known.get("target") if target is None else target
    else:
        chosen = make_settings({"task": task, **settings})
        if directory is not None:
            directory.check_free(overwrite=overwrite)
    if chosen.task != task:
        right = {"classification": "paretoda.adapt", "segmentation": "paretoda.segment"}[chosen.task]
        raise SettingsError(f"this is a run of {chosen.task}: call {right}")
    if source is None or (target is None and (chosen.method, chosen.target_loss) != ("source-only", "none")):
        raise SettingsError("give a source and a target; only the method 'source-only' needs no target")
    if target is None:
        chosen = source_only(chosen)
    check_machine(chosen)
    return Beginning(chosen, source, target, directory, resume)


def _path(what: Any) -> str:
    return str(Path(what).expanduser().resolve()) if isinstance(what, (str, Path)) else type(what).__name__
