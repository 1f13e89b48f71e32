"""How a run starts: new or resumed, with which settings, from which data, into which directory."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from paretoda.errors import RunError, SettingsError
from paretoda.io.lock import lock_directory
from paretoda.models.backbones.user_module import consent
from paretoda.run.backbone_choice import resolve_backbone
from paretoda.run.build import check_machine
from paretoda.run.directory.directory import RunDirectory
from paretoda.run.names import Task
from paretoda.run.settings import Settings, make_settings, source_only
from paretoda.run.tracking import check_tracker
from paretoda.training.checkpoint import has_checkpoint
from paretoda.training.seeding import deterministic_algorithms


@contextmanager
def deterministic(settings: Settings) -> Iterator[None]:
    """Inside, torch keeps to what the settings ask for."""
    with deterministic_algorithms(settings.deterministic):
        try:
            yield
        except RuntimeError as error:
            if not settings.deterministic or "deterministic" not in str(error).lower():
                raise
            reason = str(error).split(",")[0].split(". ")[0]
            raise SettingsError(f"{reason}; take --device cpu, or leave out --deterministic") from error


_OPEN = ("skip_nonfinite", "track")
"""Settings that may change when a run is resumed: they decide nothing, or nothing before it would have stopped."""


@dataclass(frozen=True, eq=False)
class StartedRun:
    """What is known before the data are opened.

    Args:
        settings: of the run.
        source: labelled data.
        target: None: the source is alone.
        directory: None: nothing is written.
        resume: whether the run goes on.
        overwrite: whether an earlier run may be replaced.
        lock: of the directory, from the moment on that there is one.
    """

    settings: Settings
    source: Any
    target: Any
    directory: RunDirectory | None
    resume: bool
    overwrite: bool
    lock: ExitStack

    @property
    def going_on(self) -> bool:
        """Whether there is a checkpoint to go on from."""
        return self.resume and self.directory is not None and has_checkpoint(self.directory.checkpoint)

    def write(self) -> None:
        """Make the directory of a new run; nobody may have been quicker."""
        if self.directory is not None and not self.resume:
            if not self.directory.path.exists():
                self.directory.path.mkdir(parents=True)
                self.lock.enter_context(_removed_if_empty(self.directory.path))
                self.lock.enter_context(lock_directory(self.directory.path, "a run"))
                self.directory.check_free(overwrite=self.overwrite)
            given = {"source": self.source} if self.target is None else {"source": self.source, "target": self.target}
            self.directory.begin(self.settings, {domain: _path(what) for domain, what in given.items()})


@contextmanager
def start_run(
    task: Task,
    inputs: tuple[Any, Any],
    out: str | Path | None,
    how: tuple[bool, bool],
    settings: Mapping[str, Any],
    *,
    first: bool = True,
) -> Iterator[StartedRun]:
    """Check what can be checked before anything is read; inside, no other run works in the directory.

    Args:
        task: of the function that was called; settings of another are an error.
        inputs: source and target, None where they are not given.
        out: the run's directory.
        how: whether to resume, and whether to overwrite.
        settings: by name.
        first: of several processes; the others read the directory and change nothing in it.
    """
    directory = RunDirectory(Path(out)) if out is not None else None
    with ExitStack() as lock:
        if directory is not None and first and directory.path.is_dir():
            lock.enter_context(lock_directory(directory.path, "a run"))
            if how[0] and directory.config.exists():
                directory.tidy()  # also of a run that was killed when all but its tidying was done
        run = _begin(task, inputs, directory, (*how, lock), settings)
        if directory is not None and run.resume and first and settings:
            directory.write_config(run.settings, directory.read_config()[1])
        yield run


def _begin(
    task: Task,
    inputs: tuple[Any, Any],
    directory: RunDirectory | None,
    how: tuple[bool, bool, ExitStack],
    settings: Mapping[str, Any],
) -> StartedRun:
    (source, target), (resume, overwrite, lock) = inputs, how
    if resume:
        if directory is None:
            raise RunError("resume needs the directory of the run: give out")
        chosen, known = _going_on(directory, settings)
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
    check_tracker(chosen, directory)
    if not resume:  # the user names the network now; a directory's config.toml may be a stranger's
        consent(chosen.backbone)
        chosen = resolve_backbone(chosen).model_copy(update={"teachers": tuple(map(_path, chosen.teachers))})
    return StartedRun(chosen, source, target, directory, resume, overwrite, lock)


def _going_on(directory: RunDirectory, settings: Mapping[str, Any]) -> tuple[Settings, dict[str, str]]:
    """Settings and inputs of the run that is resumed."""
    if fixed := [name for name in settings if name not in _OPEN]:
        raise SettingsError(f"a resumed run keeps its settings; leave out {', '.join(fixed)}")
    chosen, known = directory.read_config()
    if directory.model.exists():
        raise RunError(f"the run in {directory.path} is finished; use it, or begin anew with --overwrite")
    if settings:
        chosen = make_settings({**chosen.model_dump(exclude_none=True), **settings})
    return chosen, known


@contextmanager
def _removed_if_empty(folder: Path) -> Iterator[None]:
    try:
        yield
    finally:
        with suppress(OSError):
            folder.rmdir()


def _path(what: Any) -> str:
    return str(Path(what).expanduser().resolve()) if isinstance(what, (str, Path)) else type(what).__name__
