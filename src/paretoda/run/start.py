"""How a run starts: new or resumed, with which settings, from which data, into which directory."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
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
from paretoda.run.presets import PRESET
from paretoda.run.settings import LABELS, Settings, source_only
from paretoda.run.tracking import check_tracker
from paretoda.training.checkpoint import has_checkpoint
from paretoda.training.seeding import deterministic_algorithms

_CHANGEABLE = ("skip_nonfinite", "track")
"""Settings that may change when a run is resumed, because they cannot affect the steps already taken."""


MakeSettings = Callable[[Mapping[str, Any]], Settings]


@dataclass(frozen=True, eq=False, kw_only=True)
class RunRequest:
    """What the user asks for.

    Args:
        source: Labelled data; None when a run is resumed with its own data.
        target: Unlabelled data; None for the source alone.
        target_labels: Labelled data of the target; None without any.
        out: Directory for the run's files; None: nothing is written.
        resume: Continue the run in `out`.
        overwrite: Replace a run in `out`.
        settings: Settings by name, not yet checked.
    """

    source: Any
    target: Any
    out: Path | None
    resume: bool
    overwrite: bool
    settings: Mapping[str, Any]
    target_labels: Any = None


@dataclass(frozen=True, eq=False)
class StartedRun:
    """What is known before the data are opened.

    Args:
        settings: Settings of the run.
        source: Labelled data.
        target: Unlabelled data; None: the source is alone.
        target_labels: Labelled data of the target; None without any.
        directory: Directory of the run; None: nothing is written.
        request: What the user asked for.
        resources: Releases the lock of the directory when the run ends.
        locked: Whether this process holds the lock of the directory already.
    """

    settings: Settings
    source: Any
    target: Any
    target_labels: Any
    directory: RunDirectory | None
    request: RunRequest
    resources: ExitStack
    locked: bool

    @property
    def resumes(self) -> bool:
        """Whether there is a checkpoint to continue from."""
        return self.request.resume and self.directory is not None and has_checkpoint(self.directory.checkpoint)

    def create_directory(self) -> None:
        """Create and lock the directory of a new run.

        Raises:
            RunError: Another run has taken the directory since this one started.
        """
        if self.directory is None or self.request.resume:
            return
        if not self.locked:
            self.directory.path.mkdir(parents=True, exist_ok=True)
            self.resources.enter_context(_remove_if_empty(self.directory.path))
            self.resources.enter_context(lock_directory(self.directory.path, "a run"))
            self.directory.check_free(overwrite=self.request.overwrite)
        given = {"source": self.source, "target": self.target, "target_labels": self.target_labels}
        self.directory.begin(self.settings, _describe_inputs(given))


@contextmanager
def start_run(request: RunRequest, make_settings: MakeSettings, *, first: bool = True) -> Iterator[StartedRun]:
    """Check what can be checked before anything is read; inside, no other run works in the directory.

    Args:
        request: What the user asks for.
        make_settings: Checks settings and completes them with defaults.
        first: Whether this is the first of several processes; the others change nothing in the directory.
    """
    directory = RunDirectory(request.out) if request.out is not None else None
    with ExitStack() as resources:
        locked = directory is not None and first and directory.path.is_dir()
        if directory is not None and locked:
            resources.enter_context(lock_directory(directory.path, "a run"))
            if request.resume and directory.config.exists():
                directory.tidy()  # also after a run that was killed when all but its tidying was done
        settings, source, target, labels = _check_request(request, make_settings, directory)
        run = StartedRun(settings, source, target, labels, directory, request, resources, locked)
        if directory is not None and request.resume and first and request.settings:
            directory.write_config(run.settings, directory.read_config()[1])
        with use_deterministic_algorithms(run.settings):
            yield run


def _check_request(
    request: RunRequest, make_settings: MakeSettings, directory: RunDirectory | None
) -> tuple[Settings, Any, Any, Any]:
    """Return settings, source, target and labelled target samples of a new or resumed run."""
    source, target, labels = request.source, request.target, request.target_labels
    if isinstance(source, list) and len(source) < 2:
        source = source[0] if source else None
    if request.resume:
        if directory is None:
            raise RunError("resume needs the directory of the run: give out")
        settings, given = _read_resumed(directory, request.settings, make_settings)
        source = _find_data(given, "source") if source is None else source
        target = _find_data(given, "target") if target is None else target
        labels = _find_data(given, "target_labels") if labels is None else labels
    else:
        settings = make_settings(_choose_label_loss(request.settings, labels))
        if directory is not None:
            directory.check_free(overwrite=request.overwrite)
    if settings.from_run is not None:
        _check_without_source(source, target)
    elif source is None or (target is None and (settings.method, settings.target_loss) != ("source-only", "none")):
        raise SettingsError("give a source and a target; only the method 'source-only' needs no target")
    if labels is None and settings.reads_labels:
        raise SettingsError("the loss, guide and selection 'labels' need labelled target samples; give --target-labels")
    if target is None and settings.label_sets != "closed":
        raise SettingsError(f"--label-sets {settings.label_sets} is about a target; give one, or leave it out")
    if target is None and labels is not None:
        raise SettingsError("--target-labels belong to a target; give the target as well")
    if target is None:
        settings = source_only(settings)
    check_machine(settings)
    check_tracker(settings, directory)
    if not request.resume:  # the user names the network now; a config.toml may be untrusted
        consent(settings.backbone)
        settings = resolve_backbone(settings)
        settings = _name_whole_paths(settings)
    return settings, source, target, labels


def _check_without_source(source: Any, target: Any) -> None:
    """Refuse a source beside the run that takes its place, and that run without a target."""
    if source is not None:
        raise SettingsError("the run of --from stands in the source's place; leave out --source")
    if target is None:
        raise SettingsError("--from adapts a run to a target; give --target")


def _choose_label_loss(given: Mapping[str, Any], labels: Any) -> Mapping[str, Any]:
    """Return the settings with an answer to whether labelled target samples train, where there are some."""
    if labels is None or given.get("label_loss") is not None:
        return given
    return {**given, "label_loss": given.get("guide") != LABELS}


def _read_resumed(
    directory: RunDirectory, changes: Mapping[str, Any], make_settings: MakeSettings
) -> tuple[Settings, dict[str, str | list[str]]]:
    """Return settings and inputs of the run that is resumed; settings may be given again if they are the same."""
    settings, given = directory.read_config()
    wanted = _repeat_settings(settings, changes, make_settings)
    differing = [name for name in type(settings).model_fields if getattr(wanted, name) != getattr(settings, name)]
    if fixed := [name for name in differing if name not in _CHANGEABLE]:
        values = ", ".join(f"{name} ({getattr(settings, name)}, not {getattr(wanted, name)})" for name in fixed)
        raise SettingsError(f"a resumed run keeps its settings; leave out {values}")
    if directory.model.exists():
        raise RunError(f"the run in {directory.path} is finished; use it, or start again with --overwrite")
    return make_settings({**settings.model_dump(), **{name: getattr(wanted, name) for name in differing}}), given


def _repeat_settings(settings: Settings, changes: Mapping[str, Any], make_settings: MakeSettings) -> Settings:
    """Return what the settings of a run would be with those that are given again.

    Args:
        settings: Settings of the run, with resolved names of backbone, weights and teachers.
        changes: Settings that the user gives; a preset must have all others beside it that the run was started with.
        make_settings: Makes and checks settings.
    """
    kept = {} if PRESET in changes else settings.model_dump()
    if "+" in str(changes.get("method", "")):
        kept.pop("target_loss", None)
    wanted = make_settings({**kept, **changes})
    if {"backbone", "backbone_weights", PRESET} & set(changes):
        wanted = resolve_backbone(wanted)
    return _name_whole_paths(wanted)


def _name_whole_paths(settings: Settings) -> Settings:
    """Return the settings with absolute paths of other runs."""
    start = None if settings.from_run is None else _describe(settings.from_run)
    return settings.model_copy(update={"teachers": tuple(map(_describe, settings.teachers)), "from_run": start})


def _find_data(given: Mapping[str, str | list[str]], domain: str) -> str | list[str] | None:
    """Return the path of a resumed run's data, or those of its several sources; None where it had none."""
    found = given.get(domain)
    places = found if isinstance(found, list) else [] if found is None else [found]
    if not all(Path(place).is_absolute() for place in places):
        raise SettingsError(f"the {domain} of this run was in memory; give source and target again")
    return found


@contextmanager
def use_deterministic_algorithms(settings: Settings) -> Iterator[None]:
    """Use deterministic algorithms if the settings ask for them, and say in one sentence where there is none."""
    with deterministic_algorithms(settings.deterministic):
        try:
            yield
        except RuntimeError as error:
            if not settings.deterministic or "deterministic" not in str(error).lower():
                raise
            reason = str(error).split(",")[0].split(". ")[0]
            raise SettingsError(f"{reason}; take --device cpu, or leave out --deterministic") from error


@contextmanager
def _remove_if_empty(folder: Path) -> Iterator[None]:
    try:
        yield
    finally:
        with suppress(OSError):
            folder.rmdir()


def _describe_inputs(given: Mapping[str, Any]) -> dict[str, str | list[str]]:
    """Return the places of the data that were given; those of several sources as a list."""
    return {
        name: [_describe(one) for one in data] if isinstance(data, list) else _describe(data)
        for name, data in given.items()
        if data is not None
    }


def _describe(data: Any) -> str:
    """Return the absolute path of data in files, or the type of data in memory."""
    return str(Path(data).expanduser().resolve()) if isinstance(data, (str, Path)) else type(data).__name__
