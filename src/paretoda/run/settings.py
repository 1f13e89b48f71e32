"""The settings of a run: the same names in Python, on the command line and in config.toml.

A setting is declared once, as a field of `Settings`. The options of the command line, the parameters of the estimators
and the table in the documentation are made from the field, or a test compares them with it. Importing this module
imports no torch; checking settings does. `paretoda.tasks.settings.make_settings` adds what only a task knows: names,
defaults and contradictions.
"""

from __future__ import annotations

import types
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Union, get_args, get_origin

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from paretoda.core.options import unknown
from paretoda.errors import SettingsError
from paretoda.io.limits import LONGEST_SIDE
from paretoda.run.compatibility import CIRCUMSTANCES, refusal, unsuited
from paretoda.run.part_options import check_parts, read_options

_CLASSIFICATION, _SEGMENTATION, _REGRESSION = "classification", "segmentation", "regression"
_SAMPLES = (_CLASSIFICATION, _REGRESSION)
"""The tasks that predict one thing for each sample."""
_MANY, _WIDE = 10**9, 10**6
"""Upper bounds of step counts and of widths, above everything that time and memory allow."""
AUTOMATIC = "auto"
"""Name of the target loss that depends on the data (`Settings.for_data`)."""
_OPTIONS = {"from_run": "--from"}
"""Setting -> its option on the command line, where that is not its name; `from` is a keyword in Python."""
_WHOLE_METHODS = ("mdan",)
"""Methods that contain the loss of the source (`Objective.is_whole_method`)."""
LABELS = "labels"
"""Name of the objective, of the guide and of the rule of selection that read the target's few labels."""


def _setting(  # noqa: PLR0913  (a row of the table below)
    default: Any,
    description: str,
    *,
    ge: float | None = None,
    gt: float | None = None,
    le: float | None = None,
    lt: float | None = None,
    often: bool = False,
    task: str | tuple[str, ...] = (),
    arrays: bool = True,
) -> Any:
    """Declare a setting.

    Args:
        default: Default value.
        description: What the setting does, in a few words.
        ge: Lowest value.
        gt: Bound that the value exceeds.
        le: Highest value.
        lt: Bound that the value stays below.
        often: Whether it is shown first, under "Settings"; the others are shown under "Fine tuning".
        task: The only task, or tasks, that read it; none if all tasks read it.
        arrays: Whether it makes sense for arrays of features, so that the classifier among the estimators has it; only
            where classification reads it.
    """
    tasks = (task,) if isinstance(task, str) else task
    marks: dict[str, Any] = {
        "often": often,
        "tasks": tasks,
        "arrays": arrays and _CLASSIFICATION in (tasks or _SAMPLES),
    }
    return Field(default, description=description, ge=ge, gt=gt, le=le, lt=lt, json_schema_extra=marks)


class Settings(BaseModel):
    """The settings of a run. The defaults are what we recommend; no setting comes from anywhere else."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False, defer_build=True)

    task: str = _setting(
        _CLASSIFICATION,
        "classification of images or feature vectors, segmentation: a class for every pixel, or regression: a number",
        often=True,
        arrays=False,
    )
    method: str = _setting("dann", "alignment of the domains (`paretoda list methods`)", often=True)
    target_loss: str = _setting(
        "auto+propagation",
        "losses on the unlabelled target (`paretoda list target-losses`); auto: mcc for features, tcm for images",
        often=True,
    )
    scheme: str = _setting("paretoda", "how the losses are weighted (`paretoda list schemes`)", often=True)
    guide: str = _setting(
        "agreement", "loss on held-out target data that guides the weights (`paretoda list guides`)", often=True
    )
    from_run: str | None = _setting(
        None,
        "a finished run whose model is adapted to the target without its source, which then is not given",
        often=True,
    )
    label_sets: Literal["closed", "partial", "open"] = _setting(
        "closed",
        "classes of the target: those of the source, some of them (partial), or others besides (open)",
        often=True,
        task=_CLASSIFICATION,
    )
    label_loss: bool | None = _setting(
        None,
        "train on the labelled target samples (target_labels); yes, unless the guide is 'labels', if not given",
    )
    loss_weights: tuple[float, ...] = _setting((), "fixed weights for the scheme 'linear': source, alignment, target")
    joined: bool = _setting(False, "train the whole method, source loss and alignment, as one objective")
    head_losses: tuple[str, ...] | None = _setting(None, "objectives that reach the classifier's head")
    options: tuple[str, ...] = _setting(
        (), "options of the parts: alignment.hidden=256, target.width=64, propagation.k=5, scheme.lean=2"
    )
    voting: Literal["all", "last"] | None = _setting(
        None, "shared parameters whose gradients are compared; the last layer for 'paretoda', all for others"
    )
    every: int | None = _setting(
        None, "steps between two updates of the weights; 5 for 'paretoda', 1 for others", ge=1, le=_MANY
    )
    teacher_decay: float = _setting(
        0.99,
        "share of the averaged teacher that a step keeps, for losses that follow one",
        ge=0,
        lt=1,
        task=(_CLASSIFICATION, _SEGMENTATION),
    )
    average: float | None = _setting(
        None,
        "share of the past when inner products are averaged over steps; 0.95 for 'paretoda', 0 for others",
        ge=0,
        lt=1,
    )
    calibrate: bool | None = _setting(
        None,
        "measure every loss in a unit of its own, so that a factor on it changes nothing; off if not given",
    )
    backbone: str = _setting("auto", "network (`paretoda list backbones`)", often=True, arrays=False)
    backbone_weights: str | None = _setting(
        None,
        "weights of the backbone: a file, a folder, a name at the hub, 'default' (published) or 'none' (random)",
        often=True,
        arrays=False,
    )
    frozen: bool = _setting(
        False,
        "compute the backbone's features once and train only the rest",
        often=True,
        task=_SAMPLES,
        arrays=False,
    )
    bottleneck: int = _setting(256, "width of the features", ge=2, le=_WIDE, task=_SAMPLES)
    dropout: float | None = _setting(
        None,
        "dropout of the features in training; 0.5 on feature data and 0 on images if not given",
        ge=0,
        lt=1,
        task=_SAMPLES,
    )
    steps: int = _setting(500, "training steps", ge=1, le=_MANY, often=True)
    batch_size: int = _setting(64, "samples of each domain in a step", ge=1, le=_WIDE, often=True)
    lr: float | None = _setting(
        None,
        "learning rate of new layers (a pretrained backbone's: a tenth); 0.1 on features, 0.01 on images",
        gt=0,
        often=True,
    )
    momentum: float = _setting(0.9, "momentum of SGD", ge=0, lt=1)
    weight_decay: float = _setting(1e-3, "weight decay of the optimiser", ge=0)
    schedule: Literal["inverse", "constant", "poly"] = _setting("inverse", "how the learning rate falls")
    decay: float = _setting(
        10.0, "fall of the schedule 'inverse': the rate ends at (1 + decay)^-0.75", ge=0, task=_SAMPLES
    )
    source_loss: Literal["mse", "huber"] = _setting(
        "mse",
        "regression: loss on the source's values; 'huber' counts errors above one deviation linearly",
        task=_REGRESSION,
    )
    label_smoothing: float = _setting(0.0, "smoothing of the source's labels", ge=0, lt=1, task=_CLASSIFICATION)
    clip: float | None = _setting(None, "largest norm of the gradient", gt=0)
    bn: Literal["joint", "per-domain"] = _setting("joint", "BatchNorm statistics of both domains or of each")
    sync_bn: bool = _setting(True, "with several processes: share BatchNorm statistics among all of them", arrays=False)
    scaling: Literal["per-domain", "joint", "source", "none"] = _setting(
        "per-domain", "z-scores of features", task=_SAMPLES
    )
    sources: Literal["separate", "pooled"] = _setting(
        "separate",
        "several sources: losses, batches and scaling of each, or all of them as one source",
        often=True,
        task=_CLASSIFICATION,
    )
    components: int | None = _setting(
        None,
        "principal components of features that the network reads; 0: all; 128, at least 12 per class, if not given",
        ge=0,
        le=_WIDE,
        task=_SAMPLES,
    )
    held_out: float = _setting(0.1, "share of each domain that is held out", gt=0, lt=0.5)
    image_size: int | None = _setting(
        None, "side of the images that the network sees", ge=8, le=LONGEST_SIDE, task=_SAMPLES, arrays=False
    )
    size: str | None = _setting(
        None,
        "segmentation: WIDTHxHEIGHT of the images; the target's own, 1024 at most, if not given",
        task=_SEGMENTATION,
    )
    source_size: str | None = _setting(
        None, "segmentation: size of the source's images, if it differs", task=_SEGMENTATION
    )
    source_table: str | None = _setting(
        None,
        "segmentation: table of the source's labels (`paretoda list tables`), its layout's if not given",
        task=_SEGMENTATION,
    )
    translation: Literal["auto", "none", "fda", "reinhard", "histogram", "cyclegan"] = _setting(
        "auto",
        "segmentation: gives source images the style of the target; 'auto': what the method asks for",
        task=_SEGMENTATION,
    )
    teachers: tuple[str, ...] = _setting(
        (),
        "segmentation: finished runs whose mean prediction labels the target first, for the method fda",
        task=_SEGMENTATION,
    )
    optimiser: Literal["sgd", "adam"] | None = _setting(
        None, "segmentation: optimiser of the network; sgd for DeepLab, else adam if not given", task=_SEGMENTATION
    )
    class_weights: Literal["none", "root"] = _setting(
        "root",
        "segmentation: weights of the source's classes; 'root': one over the root of their frequency",
        task=_SEGMENTATION,
    )
    levels: int = _setting(
        1, "segmentation: outputs of the network, 2 with an auxiliary one", ge=1, le=2, task=_SEGMENTATION
    )
    norm: Literal["train", "affine-frozen", "frozen", "group"] | None = _setting(
        None, "segmentation: normalisation; affine-frozen for DeepLab, else train if not given", task=_SEGMENTATION
    )
    convention: Literal["torchvision", "caffe", "efficientnet"] | None = _setting(
        None,
        "segmentation: pixel normalisation convention; that of the backbone's own weights if not given",
        task=_SEGMENTATION,
    )
    augment: Literal["none", "flip", "light", "standard", "strong"] | None = _setting(
        None, "random changes of training images", arrays=False
    )
    crops: int = _setting(
        1, "crops of an image that its prediction is averaged over: 1 or 10", task=_CLASSIFICATION, arrays=False
    )
    class_balanced: bool = _setting(False, "draw the source's classes equally often", task=_CLASSIFICATION)
    skip_bad: bool = _setting(False, "leave out images that cannot be read, with a warning", arrays=False)
    workers: int | None = _setting(
        None, "threads that read images ahead; all cores but one, 8 at most, if not given", ge=0, le=256, arrays=False
    )
    threads: int | None = _setting(
        None, "threads of the computation; 1 for features, the free cores for images, if not given", ge=1, le=1024
    )
    index_cache: bool = _setting(True, "keep the list of a large folder's files for the next run", arrays=False)
    select: str = _setting(
        "ensemble", "which checkpoint is kept: 'ensemble', a validator, several as in ensv+im, or 'last'"
    )
    evaluate_every: int | None = _setting(
        None, "steps between candidates; a tenth of the steps if not given", ge=1, le=_MANY
    )
    refresh_every: int = _setting(50, "steps between passes over the whole sets", ge=1, le=_MANY)
    reference: bool | None = _setting(None, "also train source-only, to warn of negative transfer")
    seed: int = _setting(0, "the same seed gives the same weights", ge=0, lt=2**63, often=True)
    split_seed: int | None = _setting(
        None, "seed of the choice of held-out samples; --seed if not given", ge=0, lt=2**63
    )
    members: int = _setting(
        1,
        "networks on feature data that predict together, with seeds from --seed on",
        ge=1,
        le=1000,
        often=True,
        task=_CLASSIFICATION,
    )
    device: str = _setting("auto", "'auto', 'cpu', 'cuda', 'cuda:1', 'mps'", often=True)
    precision: Literal["32", "bf16", "16"] = _setting("32", "precision of the forward and backward passes", often=True)
    deterministic: bool = _setting(
        False, "use only algorithms that give the same bits each time, even if they are slower"
    )
    skip_nonfinite: int = _setting(
        0, "steps with a NaN or infinite loss that are skipped before the run stops", ge=0, le=_MANY
    )
    accumulate: int = _setting(
        1, "micro-batches of a batch, if its activations do not fit in memory", ge=1, le=_MANY, arrays=False
    )
    checkpoint_activations: bool = _setting(
        False, "compute activations again in backward passes instead of keeping them", arrays=False
    )
    compile: bool = _setting(False, "let torch.compile make the encoder faster, after some minutes", arrays=False)
    channels_last: bool | None = _setting(
        None, "keep images and kernels with their channels last in memory; on a CPU, if not given", arrays=False
    )
    checkpoint_every: int = _setting(50, "steps between checkpoints", ge=1, le=_MANY, arrays=False)
    track: Literal["none", "tensorboard"] = _setting(
        "none", "also write the course of the run into RUN/tensorboard", arrays=False
    )

    @field_validator("size", "source_size")
    @classmethod
    def _check_size(cls, value: str | None) -> str | None:
        parse_size(value)
        return value

    @field_validator("from_run", mode="before")
    @classmethod
    def _write_path_as_text(cls, value: Any) -> Any:
        place = getattr(value, "directory", value)  # of a `Run`
        if place is None and value is not None:
            raise ValueError("this run was not written to a directory; give --out when you train it")
        return str(place) if isinstance(place, Path) else place

    @field_validator("teachers", mode="before")
    @classmethod
    def _write_paths_as_text(cls, value: Any) -> Any:
        several = isinstance(value, (list, tuple))
        return [str(run) if isinstance(run, Path) else run for run in value] if several else value

    @field_validator("crops")
    @classmethod
    def _check_crops(cls, value: int) -> int:
        if value not in (1, 10):
            raise ValueError(f"crops are 1, the middle, or 10, corners and middle and their mirror images; not {value}")
        return value

    def check(self, own_parts: Sequence[str] = (), smallest_batch: int = 2) -> None:
        """Raise ValueError for settings that contradict each other, whatever the task.

        Args:
            own_parts: Parts of the task, besides the usual ones, that take options.
            smallest_batch: Samples of a domain that a batch needs at least.
        """
        self._check_task()
        if self.loss_weights and self.scheme != "linear":
            raise ValueError(f"loss_weights are for the scheme 'linear', not for {self.scheme!r}")
        if self.loss_weights and len(self.loss_weights) != len(self.losses):
            raise ValueError(
                f"loss_weights has {len(self.loss_weights)} numbers for the losses {', '.join(self.losses)}"
            )
        targets = dict.fromkeys(["target", *self.target_losses])
        labels = [LABELS] if self.label_loss else []
        check_parts(self.options, ["alignment", *targets, *labels, "guide", "scheme", *own_parts])
        for name in self.head_losses or ():
            if name not in self.losses:
                raise ValueError(f"head_losses names {name!r}, but the losses are {', '.join(self.losses)}")
        if (reason := unsuited(self.scheme, self.method)) is not None:
            raise ValueError(reason)
        self._check_strategy()
        self._check_memory(smallest_batch)
        if self.skip_nonfinite and self.precision == "16":
            raise ValueError("with --precision 16 the gradient scaler skips such steps; leave out --skip-nonfinite")

    def _check_task(self) -> None:
        """Refuse settings of another task, which would have no effect."""
        others = [SETTINGS[name] for name in SETTINGS if name in settings_of_others(self.task)]
        given = [setting for setting in others if getattr(self, setting.name) != setting.default]
        if given:
            tasks = given[0].tasks
            options = ", ".join(setting.option for setting in given if setting.tasks == tasks)
            raise ValueError(f"{options}: only for --task {' or '.join(tasks)}")

    def _check_strategy(self) -> None:
        """Refuse settings of the comparison of gradients where a strategy compares none."""
        changed = {
            "voting": self.voting == "last",
            "every": (self.every or 1) > 1,
            "average": bool(self.average),
            "calibrate": bool(self.calibrate),
        }
        given = [f"--{name}" for name, differs in changed.items() if differs]
        if self.members > 1 and self.scheme == "hypernetwork":
            raise ValueError("the scheme 'hypernetwork' trains one network for all preferences; leave out --members")
        if given and _is_strategy(self.scheme):
            raise ValueError(f"the scheme {self.scheme!r} compares no gradients; leave out {', '.join(given)}")

    def _check_memory(self, smallest: int) -> None:
        """Refuse settings of memory and speed that do not combine, and micro-batches that would be too small."""
        from paretoda.models.backbones import is_external  # noqa: PLC0415  (imports torch)

        if self.checkpoint_activations and is_external(self.backbone):
            raise ValueError(f"the blocks of {self.backbone} are not known; leave out --checkpoint-activations")
        if (reason := refusal(self.circumstances)) is not None:
            raise ValueError(reason)
        if self.batch_size < smallest:
            raise ValueError("--batch-size 1 is for --task segmentation; BatchNorm needs at least 2 samples")
        if self.accumulate > 1 and self.batch_size < smallest * self.accumulate:
            raise ValueError(
                f"--accumulate {self.accumulate} leaves micro-batches of less than {smallest} of {self.batch_size} "
                f"samples; take {self.batch_size // smallest} at most"
            )

    @property
    def circumstances(self) -> set[str]:
        """The names in `paretoda.run.compatibility` that hold for the run, apart from those that depend on its data."""
        holds = {
            "accumulate": self.accumulate > 1,
            "checkpoint-activations": self.checkpoint_activations,
            "compile": self.compile,
            "channels-last": bool(self.channels_last),
            f"precision {self.precision}": self.precision != "32",
            "frozen": self.frozen,
            f"task {self.task}": f"task {self.task}" in CIRCUMSTANCES,
        }
        named = self.scheme == "linear" or _is_strategy(self.scheme)
        scheme = f"scheme {self.scheme}" if named else f"any other scheme, voting {self.votes}"
        return {name for name, true in holds.items() if true} | {scheme}

    @property
    def votes(self) -> Literal["all", "last"]:
        """Shared parameters whose gradients are compared."""
        return self.voting or ("last" if self.scheme == "paretoda" else "all")

    @property
    def held_steps(self) -> int:
        """Number of steps that the weights are held for."""
        return self.every or (5 if self.scheme == "paretoda" else 1)

    @property
    def part_options(self) -> dict[str, dict[str, Any]]:
        """Part -> its options by name: "target" is the first loss on the target, the others go by their own names."""
        return read_options(self.options)

    @property
    def losses(self) -> tuple[str, ...]:
        """Names of the objectives; with several sources, the source's and the alignment's stand for those of each."""
        source = () if self.from_run is not None else ("source",)
        alignment = () if self.method in ("source-only", *_WHOLE_METHODS) or self.joined else ("alignment",)
        return (*source, *alignment, *self.target_losses, *([LABELS] if self.label_loss else []))

    @property
    def reads_labels(self) -> bool:
        """Whether the run reads labelled target samples: to train on them, as the guide, or to choose the model."""
        return bool(self.label_loss) or self.guide == LABELS or self.selects_by_labels

    @property
    def selects_by_labels(self) -> bool:
        """Whether labelled target samples that are held out have a say in the choice of the model."""
        return LABELS in self.select.split("+")

    @property
    def target_losses(self) -> dict[str, str]:
        """Names of the objectives on the target -> their losses: the first is "target", the others keep their names."""
        return name_target_losses(self.target_loss)

    def for_data(self, kind: str) -> Settings:
        """Return the settings with the target loss that "auto" means for such data: MCC for features, TCM for images.

        Args:
            kind: Kind of the data that the network reads.

        Examples:
            >>> Settings().for_data("features").target_loss
            'mcc+propagation'
        """
        chosen = "mcc" if kind == "features" or self.label_sets != "closed" else "tcm"
        given = self.target_loss.split("+")
        names = [chosen if name == AUTOMATIC else name for name in given]
        if AUTOMATIC in given and self.label_sets == "open":
            names.append("novelty")
        return self.model_copy(update={"target_loss": "+".join(names)})

    @property
    def guide_part(self) -> str:
        """Name of the objective that the guide may share networks with: the one with the same loss, or "target"."""
        return next((part for part, loss in self.target_losses.items() if loss == self.guide), "target")

    @property
    def candidate_every(self) -> int:
        """Steps between candidates for the final model."""
        return self.evaluate_every or max(1, self.steps // 10)


@dataclass(frozen=True)
class Setting:
    """One setting, as the command line, the estimators and the documentation show it.

    Args:
        name: Name of the field of `Settings`.
        kind: Type of its value, without None.
        default: Default value.
        description: What the setting does, in a few words.
        often: Whether it is shown first.
        tasks: The tasks that read it; empty if all tasks read it.
        arrays: Whether the classifier among the estimators has it.
    """

    name: str
    kind: Any
    default: Any
    description: str
    often: bool
    tasks: tuple[str, ...]
    arrays: bool

    @property
    def option(self) -> str:
        """The option of the command line."""
        return _OPTIONS.get(self.name, f"--{self.name.replace('_', '-')}")


def _describe_settings() -> dict[str, Setting]:
    found = {}
    for name, field in Settings.model_fields.items():
        kind = field.annotation
        if get_origin(kind) in (Union, types.UnionType):
            (kind,) = (part for part in get_args(kind) if part is not types.NoneType)
        assert isinstance(field.json_schema_extra, dict)  # see `_setting`
        marks: dict[str, Any] = field.json_schema_extra
        found[name] = Setting(name, kind, field.default, field.description or "", **marks)
    return found


SETTINGS: Mapping[str, Setting] = _describe_settings()
"""Name -> setting, in the order of the fields."""

TASK_SETTINGS: Mapping[str, tuple[str, ...]] = {
    task: tuple(name for name, setting in SETTINGS.items() if task in setting.tasks)
    for task in (_CLASSIFICATION, _SEGMENTATION, _REGRESSION)
}
"""Task -> the settings that it reads and not every other task does."""


def parse_settings(values: Mapping[str, Any]) -> Settings:
    """Read settings, field by field; whether they fit each other and the task is checked elsewhere.

    Args:
        values: Settings by name.

    Raises:
        SettingsError: A setting is unknown or has a wrong value.
    """
    for key in values:
        if key not in SETTINGS:
            raise SettingsError(unknown("setting", key, SETTINGS))
    try:
        return Settings.model_validate(dict(values))
    except ValidationError as error:
        first = error.errors()[0]
        name = ".".join(str(part) for part in first["loc"])
        reason = str(first["msg"]).removeprefix("Value error, ")
        whole = first["type"] == "value_error"  # one of our own messages, which names the setting
        raise SettingsError(reason if whole else f"{name}: {reason}") from error


def settings_of_others(task: str) -> set[str]:
    """Return the settings that only other tasks read."""
    return {name for name, setting in SETTINGS.items() if setting.tasks and task not in setting.tasks}


def name_target_losses(composed: str) -> dict[str, str]:
    """Return the names of the objectives on the target -> their losses: the first is "target", the others keep theirs.

    Examples:
        >>> name_target_losses("dacs+mic"), name_target_losses("none")
        ({'target': 'dacs', 'mic': 'mic'}, {})
    """
    first, *others = composed.split("+")
    return {} if first == "none" else {"target": first, **{name: name for name in others}}


def parse_size(size: str | None) -> tuple[int, int] | None:
    """Return width and height of a size such as "160x120"; None for None.

    Raises:
        ValueError: The text is no size, or a side is too short or too long.
    """
    if size is None:
        return None
    width, _, height = size.partition("x")
    whole = all(side.isdecimal() and len(side) < 6 for side in (width, height))
    if not (whole and min(int(width), int(height)) >= 8 and max(int(width), int(height)) <= LONGEST_SIDE):
        raise ValueError(f"a size is WIDTHxHEIGHT, such as 160x120, with sides of 8 to {LONGEST_SIDE}; not {size!r}")
    return int(width), int(height)


def _is_strategy(scheme: str) -> bool:
    """Return whether a scheme is a training strategy, which has its own step and compares no gradients."""
    from paretoda.training.strategies import STRATEGIES  # noqa: PLC0415  (imports torch)

    return scheme in STRATEGIES


def source_only(settings: Settings) -> Settings:
    """Return the same settings without adaptation and without selection: the reference of an adapted model."""
    losses = {"method": "source-only", "target_loss": "none", "loss_weights": (), "head_losses": None}
    losses |= {"label_sets": "closed", "label_loss": None, "guide": SETTINGS["guide"].default}
    kept = {"options": tuple(option for option in settings.options if option.startswith("source."))}
    plain = {"members": 1, "scheme": "linear", "select": "last", "translation": "auto", "teachers": ()}
    automatic = dict.fromkeys(("voting", "every", "average", "calibrate"))
    return settings.model_copy(update=losses | kept | plain | automatic)
