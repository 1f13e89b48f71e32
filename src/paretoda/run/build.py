"""The parts of a run that do not depend on its task: scheme, memory layout, class priors, the assembled step."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Literal

import torch
from torch import Tensor

from paretoda.core.options import with_options
from paretoda.core.problem import Scheme
from paretoda.data import DomainPair
from paretoda.data.segmentation import ScenePair
from paretoda.distributed.collectives import Processes
from paretoda.errors import SettingsError
from paretoda.models.activation_checkpointing import checkpoint_activations
from paretoda.models.batchnorm import batch_norms
from paretoda.models.compilation import NoCompilerError, check_compiler, compile_encoder
from paretoda.objectives.parts.class_prior import LabelShift
from paretoda.run.compatibility import refusal
from paretoda.run.settings import Settings
from paretoda.schemes import SCHEMES, Averaged, Every
from paretoda.tasks.segmentation.translation import translation_name
from paretoda.training.step import Step
from paretoda.training.strategies import STRATEGIES
from paretoda.training.strategy import Strategy
from paretoda.types import Model, Objective


def check_machine(settings: Settings) -> None:
    """Raise a SettingsError for what this machine cannot do, before any data are read."""
    if settings.compile:
        try:
            check_compiler()
        except NoCompilerError as error:
            raise SettingsError(str(error)) from error


def check_kind(settings: Settings, kind: str) -> None:
    """Raise a SettingsError for what makes no sense for such data.

    Args:
        settings: of the run.
        kind: of the pair that is trained on: "features", or images of some sort.
    """
    if kind == "features" and (reason := refusal({*settings.circumstances, "feature data"})) is not None:
        raise SettingsError(reason)


def prepare_network(settings: Settings, model: Model) -> None:
    """Lay the network out, checkpoint and compile its encoder, as far as the settings want it."""
    if settings.channels_last:
        layout: Any = {"memory_format": torch.channels_last}  # torch's types know .to() without it
        model.to(**layout)
    if settings.checkpoint_activations:
        checkpoint_activations(model.encoder)
    if settings.compile:
        compile_encoder(model.encoder)


def describe_memory(settings: Settings, model: Model) -> Iterator[str]:
    """What is other than one would expect."""
    normalised = any(layer.training for layer in batch_norms(model.encoder))
    if settings.accumulate > 1 and normalised:
        rows = settings.batch_size // settings.accumulate
        yield (
            f"BatchNorm normalises every micro-batch ({rows} samples of a domain) by itself: with it, --accumulate "
            f"{settings.accumulate} is not exactly the whole batch of {settings.batch_size}"
        )


def describe_skipped_steps(history: list[dict[str, object]]) -> str | None:
    """How many steps a gradient scaler left out; None where it left out none."""
    count = sum(line["finite"] is False for line in history)
    if not count:
        return None
    return f"{count} of {len(history)} steps overflowed in half precision and were skipped; the scale was lowered"


_ALONE = ("accumulate", "checkpoint_activations", "compile")
"""They run layers at times when these do not know that the batch is spread."""


def check_batch_split(settings: Settings, pair: DomainPair | ScenePair, guided: bool, processes: Processes) -> None:
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


def make_scheme(settings: Settings) -> Scheme | Strategy:
    """The scheme, averaged and held as the settings say, or the strategy in its place."""
    options = settings.part_options["scheme"]
    if settings.scheme in STRATEGIES:
        return with_options(settings.scheme, STRATEGIES[settings.scheme], {}, options)
    if settings.loss_weights:
        options["weights"] = settings.loss_weights
    scheme: Scheme = with_options(settings.scheme, SCHEMES[settings.scheme], {}, options)
    usual = 0.95 if settings.scheme == "paretoda" else 0.0
    average = usual if settings.average is None else settings.average
    if average > 0:
        scheme = Averaged(scheme, average)
    return Every(scheme, settings.every) if settings.every > 1 else scheme


_DIVERSE = ("tcm", "im")
_RAREST = 1e-3
"""Least share of a class in the prior of target losses."""
_WORDS = ("source", "estimated", "uniform")
_WORTH_SAYING = 1.25
_NAMED = 3


def with_prior(
    name: str, options: dict[str, Any], source: Callable[[], Tensor], usual: Literal["source", "estimated", "uniform"]
) -> dict[str, Any]:
    """The options of a target loss with the prior as numbers.

    "source": as frequent as in the source; "estimated": the same, moved to the target by what the training sees of it;
    "uniform": equally frequent; or a number for each class.

    Args:
        name: of the loss.
        options: of it.
        source: how frequent the classes are in the source, shape (K,).
        usual: where the options have none.
    """
    wanted = options.get("prior", usual)
    if name not in _DIVERSE or not isinstance(wanted, str):
        return options
    if wanted not in _WORDS:
        raise SettingsError(f"target.prior is {', '.join(_WORDS)} or a number for each class; not {wanted!r}")
    if wanted == "uniform":
        return {**options, "prior": None}
    return {**options, "prior": source().clamp(min=_RAREST).tolist(), "shift": wanted == "estimated"}


def shift_sentence(objectives: Iterable[Objective], classes: Sequence[str]) -> str | None:
    """What was found where frequencies were estimated, in plain words; None where they were not."""
    found = [module for objective in objectives for module in objective.modules() if isinstance(module, LabelShift)]
    if not found:
        return None
    ratios = dict(zip(classes, found[0].log_ratios.exp().tolist(), strict=True))
    far = sorted(ratios, key=lambda name: -max(ratios[name], 1 / ratios[name]))[:_NAMED]
    told = [f"{name} {ratios[name]:.1f} times" for name in far if max(ratios[name], 1 / ratios[name]) >= _WORTH_SAYING]
    if not told:
        return "By its predictions the target has the classes about as often as the source."
    listed = " and ".join([", ".join(told[:-1]), told[-1]] if told[1:] else told)
    return f"By its predictions the target has {listed} as often as the source; the target loss asked for that."


def assemble_step(
    settings: Settings,
    model: Model,
    objectives: dict[str, Objective],
    scheme: Scheme | Strategy,
    guide: Objective | None,
    optimiser: torch.optim.Optimizer,
) -> Step:
    """The step with these parts, already where they are to be trained."""
    prepare_network(settings, model)
    return Step(
        model=model,
        objectives=objectives,
        scheme=scheme,
        optimiser=optimiser,
        guide=guide,
        bn=settings.bn,
        head_losses=settings.head_losses,
        voting=settings.voting,
        precision=settings.precision,
        schedule=settings.schedule,
        decay=settings.decay,
        clip=settings.clip,
        accumulate=settings.accumulate,
    )
