"""Everything that a run can be told, in one place: the same names in Python, on the command line and in config.toml.

Long, because it is one table together with what its rows say of each other.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

from paretoda.core.options import unknown
from paretoda.data.segmentation.label_tables import find_table
from paretoda.data.settings import LONGEST
from paretoda.errors import SettingsError
from paretoda.models.backbones import is_external
from paretoda.run.compatibility import refusal
from paretoda.run.names import Task, check_names, check_task, parse_size, with_task_defaults
from paretoda.run.part_options import read_options
from paretoda.run.presets import PRESET, expand_preset
from paretoda.training.strategies import STRATEGIES

__all__ = ["Settings", "SettingsError", "make_settings", "source_only"]


_MANY, _WIDE = 10**9, 10**6  # more steps than anybody waits for, more numbers in a row than any memory has


class Settings(BaseModel):
    """The settings of a run. Defaults are what we recommend; nothing depends on anything outside of them."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)

    task: Task = Field("classification", description="of images or feature vectors, or segmentation: of pixels")
    method: str = Field("dann", description="alignment of the domains (`paretoda list methods`)")
    target_loss: str = Field(
        "tcm+propagation", description="losses on the unlabelled target (`paretoda list target-losses`)"
    )
    scheme: str = Field("paretoda", description="how the losses are weighted (`paretoda list schemes`)")
    guide: str = Field("agreement", description="loss on held-out target data that guides (`paretoda list guides`)")
    loss_weights: tuple[float, ...] = Field(
        (), description="fixed weights for scheme 'linear': source, alignment, target"
    )
    joined: bool = Field(False, description="the method whole, source loss and alignment, is one objective")
    head_losses: tuple[str, ...] | None = Field(None, description="objectives that reach the classifier's head")
    options: tuple[str, ...] = Field(
        (),
        description="of the parts themselves: alignment.hidden=256, target.width=64, propagation.k=5, scheme.lean=2",
    )
    voting: Literal["all", "last"] = Field("all", description="shared parameters whose gradients are compared")
    every: int = Field(1, ge=1, le=_MANY, description="refresh the weights every so many steps")
    average: float | None = Field(
        None,
        ge=0,
        lt=1,
        description="share of the past when inner products are averaged over steps; 0.95 for 'paretoda', 0 for others",
    )
    backbone: str = Field("auto", description="network (`paretoda list backbones`)")
    backbone_weights: str | None = Field(
        None,
        description="the backbone's: a file, folder or name at the hub, 'default': the published ones, 'none': random",
    )
    frozen: bool = Field(False, description="compute the backbone's features once and train only the rest")
    bottleneck: int = Field(256, ge=2, le=_WIDE, description="width of the features")
    dropout: float | None = Field(
        None, ge=0, lt=1, description="of the features, in training; 0.5 on feature data and 0 on images if not given"
    )
    steps: int = Field(500, ge=1, le=_MANY, description="training steps")
    batch_size: int = Field(64, ge=1, le=_WIDE, description="samples of each domain in a step")
    lr: float | None = Field(
        None,
        gt=0,
        description="learning rate of new layers (a pretrained backbone's: a tenth); 0.1 on features, 0.01 on images",
    )
    momentum: float = Field(0.9, ge=0, lt=1, description="of SGD")
    weight_decay: float = Field(1e-3, ge=0, description="of SGD")
    schedule: Literal["inverse", "constant", "poly"] = Field("inverse", description="how the learning rate falls")
    decay: float = Field(10.0, ge=0, description="fall of the schedule 'inverse': the rate ends at (1 + decay)^-0.75")
    label_smoothing: float = Field(0.0, ge=0, lt=1, description="of the source's labels")
    clip: float | None = Field(None, gt=0, description="largest norm of the gradient")
    bn: Literal["joint", "per-domain"] = Field("joint", description="BatchNorm statistics of both domains or of each")
    sync_bn: bool = Field(True, description="with several processes: BatchNorm statistics of all of them together")
    scaling: Literal["per-domain", "joint", "source", "none"] = Field("per-domain", description="z-scores of features")
    held_out: float = Field(0.1, gt=0, lt=0.5, description="share of each domain that is held out")
    image_size: int | None = Field(None, ge=8, le=LONGEST, description="side of the images that the network sees")
    size: str | None = Field(
        None, description="segmentation: WIDTHxHEIGHT of the images; the target's own, 1024 at most, if not given"
    )
    source_size: str | None = Field(None, description="segmentation: of the source's images, where it differs")
    source_table: str | None = Field(
        None,
        description="segmentation: table of the source's labels (`paretoda list tables`), its layout's if not given",
    )
    translation: Literal["auto", "none", "fda", "reinhard", "histogram", "cyclegan"] = Field(
        "auto", description="segmentation: gives source images the target's looks; 'auto': what the method asks for"
    )
    teachers: tuple[str, ...] = Field(
        (), description="segmentation: finished runs whose mean prediction labels the target first, for the method fda"
    )
    optimiser: Literal["sgd", "adam"] | None = Field(
        None, description="segmentation: of the network; sgd for DeepLab, else adam if not given"
    )
    class_weights: Literal["none", "root"] = Field(
        "root", description="segmentation: of the source's classes; 'root': one over the root of their frequency"
    )
    levels: int = Field(1, ge=1, le=2, description="segmentation: outputs of the network, 2 with an auxiliary one")
    norm: Literal["train", "affine-frozen", "frozen", "group"] | None = Field(
        None, description="segmentation: normalisation; affine-frozen for DeepLab, else train if not given"
    )
    convention: Literal["torchvision", "caffe", "efficientnet"] | None = Field(
        None, description="segmentation: what numbers pixels are; those of the backbone's own weights if not given"
    )
    augment: Literal["none", "flip", "light", "standard", "strong"] | None = Field(
        None, description="random changes of training images"
    )
    crops: int = Field(1, description="crops of an image that its prediction is averaged over: 1 or 10")
    class_balanced: bool = Field(False, description="draw the source's classes equally often")
    skip_bad: bool = Field(False, description="leave out images that cannot be read, with a warning")
    workers: int | None = Field(
        None, ge=0, le=256, description="threads that read images ahead; the cores but one, 8 at most, if not given"
    )
    index_cache: bool = Field(True, description="keep the list of a large folder's files for the next run")
    select: str = Field("ensemble", description="which checkpoint is kept: 'ensemble', a validator, or 'last'")
    evaluate_every: int | None = Field(
        None, ge=1, le=_MANY, description="steps between candidates; a tenth of the steps if not given"
    )
    refresh_every: int = Field(50, ge=1, le=_MANY, description="steps between looks at the whole sets")
    reference: bool | None = Field(None, description="also train source-only, to warn of negative transfer")
    seed: int = Field(0, ge=0, lt=2**63, description="the same seed gives the same weights")
    device: str = Field("auto", description="'auto', 'cpu', 'cuda', 'cuda:1', 'mps'")
    precision: Literal["32", "bf16", "16"] = Field("32", description="of the forward and backward passes")
    deterministic: bool = Field(False, description="only algorithms that give the same bits each time, if slower")
    skip_nonfinite: int = Field(
        0, ge=0, le=_MANY, description="steps with a NaN or infinite loss that are left out before the run stops"
    )
    accumulate: int = Field(
        1, ge=1, le=_MANY, description="micro-batches of a batch, where its activations do not fit in memory"
    )
    checkpoint_activations: bool = Field(
        False, description="compute activations once more in backward passes instead of keeping them"
    )
    compile: bool = Field(False, description="let torch.compile make the encoder faster, after some minutes")
    channels_last: bool = Field(False, description="keep images and kernels with their channels last in memory")
    checkpoint_every: int = Field(50, ge=1, le=_MANY, description="steps between checkpoints")
    track: Literal["none", "tensorboard"] = Field(
        "none", description="also write the course of the run into RUN/tensorboard"
    )

    @field_validator("size", "source_size")
    @classmethod
    def _sensible(cls, value: str | None) -> str | None:
        parse_size(value)
        return value

    @field_validator("source_table")
    @classmethod
    def _known_table(cls, value: str | None) -> str | None:
        if value is not None:
            find_table(value)
        return value

    @field_validator("teachers", mode="before")
    @classmethod
    def _as_texts(cls, value: Any) -> Any:
        several = isinstance(value, (list, tuple))
        return [str(run) if isinstance(run, Path) else run for run in value] if several else value

    @field_validator("crops")
    @classmethod
    def _known_crops(cls, value: int) -> int:
        if value not in (1, 10):
            raise ValueError(f"crops are 1, the middle, or 10, corners and middle and their mirror images; not {value}")
        return value

    @model_validator(mode="after")
    def _consistent(self) -> Settings:
        check_names(self.task, self._names)
        check_task(self.task, [k for k, field in type(self).model_fields.items() if getattr(self, k) != field.default])
        if self.teachers and self.method != "fda":
            raise ValueError(f"teachers are for the method 'fda', not for {self.method!r}; leave out --teachers")
        if self.loss_weights and self.scheme != "linear":
            raise ValueError(f"loss_weights are for the scheme 'linear', not for {self.scheme!r}")
        if self.loss_weights and len(self.loss_weights) != len(self.losses):
            raise ValueError(
                f"loss_weights has {len(self.loss_weights)} numbers for the losses {', '.join(self.losses)}"
            )
        read_options(self.options, self.parts)
        for name in self.head_losses or ():
            if name not in self.losses:
                raise ValueError(f"head_losses names {name!r}, but the losses are {', '.join(self.losses)}")
        self._check_strategy()
        self._check_memory()
        if self.skip_nonfinite and self.precision == "16":
            raise ValueError(
                "with --precision 16 the gradient scaler leaves out such steps; leave out --skip-nonfinite"
            )
        return self

    @property
    def _names(self) -> dict[str, str]:
        return {
            "method": self.method,
            "target loss": self.target_loss,
            "scheme": self.scheme,
            "guide": self.guide,
            "backbone": self.backbone,
            "rule of selection": self.select,
        }

    def _check_strategy(self) -> None:
        """A strategy compares no gradients, so what is said about the comparison would go unheard."""
        given = {"voting": self.voting == "last", "every": self.every > 1, "average": bool(self.average)}
        unheard = [f"--{name}" for name, written in given.items() if written]
        if self.scheme in STRATEGIES and unheard:
            raise ValueError(f"the scheme {self.scheme!r} compares no gradients; leave out {', '.join(unheard)}")

    def _check_memory(self) -> None:
        """What does not combine, and micro-batches that would have nothing in them."""
        if self.checkpoint_activations and is_external(self.backbone):
            raise ValueError(f"the blocks of {self.backbone} are not known; leave out --checkpoint-activations")
        if (reason := refusal(self.circumstances)) is not None:
            raise ValueError(reason)
        least = 1 if self.task == "segmentation" else 2
        if self.batch_size < least:
            raise ValueError("--batch-size 1 is for --task segmentation; BatchNorm needs at least 2 samples")
        if self.accumulate > 1 and self.batch_size < least * self.accumulate:
            raise ValueError(
                f"--accumulate {self.accumulate} leaves micro-batches of less than {least} of {self.batch_size} "
                f"samples; take {self.batch_size // least} at most"
            )

    @property
    def circumstances(self) -> set[str]:
        """The names in `paretoda.run.compatibility` that are true of the run, as far as its data do not matter."""
        ways = {
            "accumulate": self.accumulate > 1,
            "checkpoint-activations": self.checkpoint_activations,
            "compile": self.compile,
            "channels-last": self.channels_last,
            f"precision {self.precision}": self.precision != "32",
            "frozen": self.frozen,
            "segmentation": self.task == "segmentation",
        }
        own = self.scheme == "linear" or self.scheme in STRATEGIES
        scheme = f"scheme {self.scheme}" if own else f"any other scheme, voting {self.voting}"
        return {name for name, true in ways.items() if true} | {scheme}

    @property
    def parts(self) -> tuple[str, ...]:
        """What has options of its own: "target" is the first loss on the target, further ones have their own names."""
        own = ("alignment", *dict.fromkeys(["target", *self.target_losses]), "guide", "scheme")
        return ("source", *own, "translation") if self.task == "segmentation" else own

    @property
    def part_options(self) -> dict[str, dict[str, Any]]:
        """The options of each part by name."""
        return read_options(self.options, self.parts)

    @property
    def losses(self) -> tuple[str, ...]:
        """Names of the objectives."""
        alignment = () if self.method == "source-only" or self.joined else ("alignment",)
        return ("source", *alignment, *self.target_losses)

    @property
    def target_losses(self) -> dict[str, str]:
        """Names of the objectives on the target -> their losses: the first is "target", others have their own names."""
        first, *others = self.target_loss.split("+")
        return {} if first == "none" else {"target": first, **{name: name for name in others}}

    @property
    def candidate_every(self) -> int:
        """Steps between candidates for the final model."""
        return self.evaluate_every or max(1, self.steps // 10)


def make_settings(values: Mapping[str, Any]) -> Settings:
    """Checked settings; a `method` such as "dann+tcm" is split in two, a `preset` becomes what it stands for."""
    values = dict(values)
    for key in values:
        if key not in Settings.model_fields and key != PRESET:
            raise SettingsError(unknown("setting", key, [*Settings.model_fields, PRESET]))
    method = values.get("method")
    if isinstance(method, str) and "+" in method:
        alignment, _, loss = method.partition("+")
        if values.get("target_loss", loss) != loss:
            raise SettingsError(
                f"the method {method!r} and the target loss {values['target_loss']!r} contradict each other"
            )
        values |= {"method": alignment, "target_loss": loss}
    values = expand_preset(values)
    if values.get("method") == "source-only":  # the baseline, unless more is asked for
        values.setdefault("target_loss", "none")
        if values["target_loss"] == "none":
            values.setdefault("scheme", "linear")
    try:
        return Settings.model_validate(with_task_defaults(values))
    except ValidationError as error:
        first = error.errors()[0]
        name = ".".join(str(part) for part in first["loc"])
        reason = str(first["msg"]).removeprefix("Value error, ")
        ours = first["type"] == "value_error"
        raise SettingsError(reason if ours else f"{name}: {reason}") from error


def source_only(settings: Settings) -> Settings:
    """The same settings without adaptation and without a choice: what an adapted model is compared with."""
    losses = {"method": "source-only", "target_loss": "none", "loss_weights": (), "head_losses": None}
    kept = {"options": tuple(option for option in settings.options if option.startswith("source."))}
    plain = {"scheme": "linear", "every": 1, "average": None, "select": "last", "translation": "auto"}
    return settings.model_copy(update=losses | kept | plain | {"teachers": ()})
