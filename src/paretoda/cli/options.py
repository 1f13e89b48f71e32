"""One option for every setting: a table without imports, which a test compares with `Settings` field by field."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import typer

Json = Annotated[bool, typer.Option("--json", help="print one machine-readable last line on stdout")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="show errors only")]
Preset = Annotated[
    str | None,
    typer.Option(metavar="NAME", help="settings of the paper or of a code (`paretoda list presets`), below all others"),
]

List = tuple[str, ...]
"""Written with commas: `--loss-weights 1,0.5,0.1`."""
_COMMA = re.compile(r",(?![^\[\]]*\])")


def split(text: str | None) -> List:
    """The parts of a list that was written with commas."""
    return tuple(part.strip() for part in (text or "").split(",") if part.strip())


@dataclass(frozen=True)
class Setting:
    """An option of `adapt`.

    Args:
        name: of the field in `Settings`; the option has dashes.
        kind: what is written after it.
        default: what counts where neither the command line nor the config file says anything.
        help: the field's description.
        often: shown first.
    """

    name: str
    kind: Any
    default: Any
    help: str
    often: bool = False

    def parameter(self) -> inspect.Parameter:
        """The option as typer wants it; left out, it is None."""
        flag = f"--{self.name.replace('_', '-')}"
        shown = not (self.default is None or self.default is False or self.default == ())
        option = typer.Option(
            None,
            f"{flag}/--no-{flag[2:]}" if self.kind is bool else flag,
            help=self.help,
            show_default=str(self.default) if shown else False,
            metavar="A,B,…" if self.kind is List else None,
            rich_help_panel="Settings" if self.often else "Fine tuning",
        )
        kind = str if self.kind is List else self.kind
        return inspect.Parameter(self.name, inspect.Parameter.KEYWORD_ONLY, default=option, annotation=kind | None)


SETTINGS = (
    Setting(
        "task",
        Literal["classification", "segmentation"],
        "classification",
        "of images or feature vectors, or segmentation: of pixels",
        True,
    ),
    Setting("method", str, "dann", "alignment of the domains (`paretoda list methods`)", True),
    Setting(
        "target_loss", str, "tcm+propagation", "losses on the unlabelled target (`paretoda list target-losses`)", True
    ),
    Setting("scheme", str, "paretoda", "how the losses are weighted (`paretoda list schemes`)", True),
    Setting("guide", str, "agreement", "loss on held-out target data that guides (`paretoda list guides`)", True),
    Setting("loss_weights", List, (), "fixed weights for scheme 'linear': source, alignment, target"),
    Setting("joined", bool, False, "the method whole, source loss and alignment, is one objective"),
    Setting("head_losses", List, None, "objectives that reach the classifier's head"),
    Setting(
        "options",
        List,
        (),
        "of the parts themselves: alignment.hidden=256, target.width=64, propagation.k=5, scheme.lean=2",
    ),
    Setting("voting", Literal["all", "last"], "all", "shared parameters whose gradients are compared"),
    Setting("every", int, 1, "refresh the weights every so many steps"),
    Setting(
        "average",
        float,
        None,
        "share of the past when inner products are averaged over steps; 0.95 for 'paretoda', 0 for others",
    ),
    Setting("backbone", str, "auto", "network (`paretoda list backbones`)", True),
    Setting(
        "backbone_weights",
        str,
        None,
        "the backbone's: a file, folder or name at the hub, 'default': the published ones, 'none': random",
        True,
    ),
    Setting("frozen", bool, False, "compute the backbone's features once and train only the rest", True),
    Setting("bottleneck", int, 256, "width of the features"),
    Setting("dropout", float, None, "of the features, in training; 0.5 on feature data and 0 on images if not given"),
    Setting("steps", int, 500, "training steps", True),
    Setting("batch_size", int, 64, "samples of each domain in a step", True),
    Setting(
        "lr",
        float,
        None,
        "learning rate of new layers (a pretrained backbone's: a tenth); 0.1 on features, 0.01 on images",
        True,
    ),
    Setting("momentum", float, 0.9, "of SGD"),
    Setting("weight_decay", float, 1e-3, "of SGD"),
    Setting("schedule", Literal["inverse", "constant", "poly"], "inverse", "how the learning rate falls"),
    Setting("decay", float, 10.0, "fall of the schedule 'inverse': the rate ends at (1 + decay)^-0.75"),
    Setting("label_smoothing", float, 0.0, "of the source's labels"),
    Setting("clip", float, None, "largest norm of the gradient"),
    Setting("bn", Literal["joint", "per-domain"], "joint", "BatchNorm statistics of both domains or of each"),
    Setting("sync_bn", bool, True, "with several processes: BatchNorm statistics of all of them together"),
    Setting("scaling", Literal["per-domain", "joint", "source", "none"], "per-domain", "z-scores of features"),
    Setting("held_out", float, 0.1, "share of each domain that is held out"),
    Setting("image_size", int, None, "side of the images that the network sees"),
    Setting(
        "size", str, None, "segmentation: WIDTHxHEIGHT of the images; the target's own, 1024 at most, if not given"
    ),
    Setting("source_size", str, None, "segmentation: of the source's images, where it differs"),
    Setting(
        "source_table",
        str,
        None,
        "segmentation: table of the source's labels (`paretoda list tables`), its layout's if not given",
    ),
    Setting(
        "translation",
        Literal["auto", "none", "fda", "reinhard", "histogram", "cyclegan"],
        "auto",
        "segmentation: gives source images the target's looks; 'auto': what the method asks for",
    ),
    Setting(
        "teachers",
        List,
        (),
        "segmentation: finished runs whose mean prediction labels the target first, for the method fda",
    ),
    Setting(
        "optimiser",
        Literal["sgd", "adam"],
        None,
        "segmentation: of the network; sgd for DeepLab, else adam if not given",
    ),
    Setting(
        "class_weights",
        Literal["none", "root"],
        "root",
        "segmentation: of the source's classes; 'root': one over the root of their frequency",
    ),
    Setting("levels", int, 1, "segmentation: outputs of the network, 2 with an auxiliary one"),
    Setting(
        "norm",
        Literal["train", "affine-frozen", "frozen", "group"],
        None,
        "segmentation: normalisation; affine-frozen for DeepLab, else train if not given",
    ),
    Setting(
        "convention",
        Literal["torchvision", "caffe", "efficientnet"],
        None,
        "segmentation: what numbers pixels are; those of the backbone's own weights if not given",
    ),
    Setting(
        "augment",
        Literal["none", "flip", "light", "standard", "strong"],
        None,
        "random changes of training images",
    ),
    Setting("crops", int, 1, "crops of an image that its prediction is averaged over: 1 or 10"),
    Setting("class_balanced", bool, False, "draw the source's classes equally often"),
    Setting("skip_bad", bool, False, "leave out images that cannot be read, with a warning"),
    Setting("workers", int, None, "threads that read images ahead; the cores but one, 8 at most, if not given"),
    Setting("index_cache", bool, True, "keep the list of a large folder's files for the next run"),
    Setting("select", str, "ensemble", "which checkpoint is kept: 'ensemble', a validator, or 'last'"),
    Setting("evaluate_every", int, None, "steps between candidates; a tenth of the steps if not given"),
    Setting("refresh_every", int, 50, "steps between looks at the whole sets"),
    Setting("reference", bool, None, "also train source-only, to warn of negative transfer"),
    Setting("seed", int, 0, "the same seed gives the same weights", True),
    Setting("device", str, "auto", "'auto', 'cpu', 'cuda', 'cuda:1', 'mps'", True),
    Setting("precision", Literal["32", "bf16", "16"], "32", "of the forward and backward passes", True),
    Setting("deterministic", bool, False, "only algorithms that give the same bits each time, if slower"),
    Setting("skip_nonfinite", int, 0, "steps with a NaN or infinite loss that are left out before the run stops"),
    Setting("accumulate", int, 1, "micro-batches of a batch, where its activations do not fit in memory"),
    Setting(
        "checkpoint_activations",
        bool,
        False,
        "compute activations once more in backward passes instead of keeping them",
    ),
    Setting("compile", bool, False, "let torch.compile make the encoder faster, after some minutes"),
    Setting("channels_last", bool, False, "keep images and kernels with their channels last in memory"),
    Setting("checkpoint_every", int, 50, "steps between checkpoints"),
    Setting("track", Literal["none", "tensorboard"], "none", "also write the course of the run into RUN/tensorboard"),
)


def with_settings(leave_out: Sequence[str] = ()) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """A decorator: the command gets an option for every setting instead of its `**settings`.

    Args:
        leave_out: settings that the command decides itself.
    """

    def decorated(command: Callable[..., Any]) -> Callable[..., Any]:
        signature = inspect.signature(command, eval_str=True)
        own = [p for p in signature.parameters.values() if p.kind is not inspect.Parameter.VAR_KEYWORD]
        every = [*own, *(setting.parameter() for setting in SETTINGS if setting.name not in leave_out)]
        command.__signature__ = signature.replace(parameters=every)  # type: ignore[attr-defined]
        command.__annotations__ = {parameter.name: parameter.annotation for parameter in every}
        return command

    return decorated


def given_settings(values: Mapping[str, Any]) -> dict[str, Any]:
    """What was written on the command line: options that were left out are left out here, lists are split.

    Commas between square brackets belong to a value: `target.prior=[0.7,0.2,0.1]`.
    """
    lists = {setting.name for setting in SETTINGS if setting.kind is List}
    return {
        name: tuple(part.strip() for part in _COMMA.split(value) if part.strip()) if name in lists else value
        for name, value in values.items()
        if value is not None
    }
