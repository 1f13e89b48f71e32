"""Building the step of a run: what is the same for every task.

A task's own `build` makes the networks and objectives, and calls `make_scheme`, `with_prior` and `assemble_step`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal

import torch
from torch import Tensor, nn

from paretoda.core.options import with_options
from paretoda.core.problem import Scheme, find_role, reads_guide
from paretoda.data.pair import Pair
from paretoda.distributed.collectives import SINGLE_PROCESS, Processes
from paretoda.errors import SettingsError
from paretoda.models.batchnorm import batch_norms
from paretoda.models.memory import (
    NoCompilerError,
    check_compiler,
    checkpoint_activations,
    compile_encoder,
    put_channels_last,
)
from paretoda.objectives.parts.class_prior import LabelShift
from paretoda.objectives.parts.label_sets import LabelSetWeights
from paretoda.run.compatibility import FOR_ONE_SOURCE, refusal
from paretoda.run.settings import Settings
from paretoda.schemes import SCHEMES, Averaged, Calibrated, Every
from paretoda.training.members import join_steps
from paretoda.training.seeding import isolated_rng
from paretoda.training.step import Step
from paretoda.training.strategies import STRATEGIES
from paretoda.training.strategy import Strategy
from paretoda.training.teacher import Teacher
from paretoda.types import Model, Objective

if TYPE_CHECKING:
    from paretoda.run.task import Task

_SINGLE_PROCESS_SETTINGS = ("accumulate", "checkpoint_activations", "compile", "members")
"""They run layers at times when these do not know that the batch is split over processes."""
_DIVERSE_LOSSES = ("tcm", "im")
_TCM_GUIDE = (
    "the guide 'tcm' uses the discriminators of the target loss 'tcm': add it, as in --target-loss tcm+propagation, or "
    "take another --guide"
)
_SMALLEST_SHARE = 1e-3
"""Smallest share of a class in the prior of target losses."""
_PRIORS = ("source", "estimated", "uniform")
_NOTABLE_RATIO = 1.25
_MOST_NAMED = 3


def pick_device(name: str) -> torch.device:
    """Return the device of that name; "auto" takes a GPU where there is one.

    Raises:
        SettingsError: The device cannot be used on this machine.
    """
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        device = torch.device(name)
        torch.empty(1, device=device)
    except (RuntimeError, AssertionError, NotImplementedError) as error:
        raise SettingsError(f"the device {name!r} cannot be used here ({str(error).splitlines()[0]})") from error
    return device


def build_step(
    task: Task[Any, Any],
    settings: Settings,
    pair: Pair,
    device: torch.device,
    processes: Processes = SINGLE_PROCESS,
) -> Step:
    """Build the step of a run; its networks are drawn from the seed, whatever was drawn before.

    Args:
        task: Task of the run.
        settings: Settings of the run.
        pair: Source and target.
        device: Device of the networks.
        processes: Processes that share the batches.

    Raises:
        SettingsError: A part refuses its options, or several processes cannot share the batches.
    """
    settings = settings.for_data(pair.kind)
    check_kind(settings, pair.kind)
    check_sources(settings, pair.source_count)
    try:
        with isolated_rng(device):
            step = _build_members(task, settings, pair, device)
        if processes.size == 1:
            return step
        check_batch_split(settings, pair, step.guide is not None, processes)
        task.check_processes(settings)
        return replace(step, processes=processes, sync_bn=settings.sync_bn)
    except (ValueError, TypeError) as error:
        if settings.options:  # a value that a part refuses
            raise SettingsError(f"{', '.join(settings.options)}: {error}") from error
        if settings.scheme in STRATEGIES:  # losses that the strategy cannot be used with
            raise SettingsError(str(error)) from error
        raise


def _build_members(task: Task[Any, Any], settings: Settings, pair: Pair, device: torch.device) -> Step:
    """Build the step of every member, as for a run with its seed and this split, and join them."""
    if settings.members == 1:
        return task.build(settings, pair, device)
    seeds = [settings.seed + index for index in range(settings.members)]
    pairs = [replace(pair, settings=replace(pair.settings, seed=seed)) for seed in seeds]
    steps = [
        task.build(settings.model_copy(update={"seed": seed, "members": 1}), own, device)
        for seed, own in zip(seeds, pairs, strict=True)
    ]
    return join_steps(steps, pairs, seeds, task.join([step.model for step in steps]))


def assemble_step(
    settings: Settings,
    model: Model,
    objectives: dict[str, Objective],
    device: torch.device,
    *,
    make_optimiser: Callable[[], torch.optim.Optimizer],
    make_guide: Callable[[], Objective] | None = None,
    weights: LabelSetWeights | None = None,
) -> Step:
    """Assemble a step from its parts.

    Args:
        settings: Settings of the run.
        model: Network that is trained.
        objectives: Objectives by name.
        device: Device that all networks are moved to.
        make_optimiser: Makes the optimiser, once the networks are on the device.
        make_guide: Makes the guide, where the scheme reads one; None: the task has no guides.
        weights: Weights of samples and classes where the label sets of the domains differ.

    Raises:
        SettingsError: The scheme reads a guide, and the task has none or it needs a loss that the run does not have.
    """
    scheme = make_scheme(settings, tuple(objectives))
    if reads_guide(scheme) and make_guide is None:
        raise SettingsError(f"the scheme {settings.scheme!r} needs a guide, which this task does not have")
    if reads_guide(scheme) and settings.guide == "tcm" and "tcm" not in settings.target_losses.values():
        raise SettingsError(_TCM_GUIDE)
    guide = make_guide() if make_guide is not None and reads_guide(scheme) else None
    networks: list[nn.Module] = [model, *objectives.values()]
    networks += [part for part in (guide, weights) if part is not None]
    for network in networks:
        network.to(device)
    optimiser = make_optimiser()
    _prepare_network(settings, model, device)
    taught = any(objective.follows_teacher for objective in objectives.values())
    return Step(
        model=model,
        objectives=objectives,
        scheme=scheme,
        optimiser=optimiser,
        guide=guide,
        bn=settings.bn,
        head_losses=_expand_roles(settings.head_losses, objectives),
        voting=settings.votes,
        precision=settings.precision,
        schedule=settings.schedule,
        decay=settings.decay,
        clip=settings.clip,
        accumulate=settings.accumulate,
        teacher=Teacher(model, settings.teacher_decay) if taught else None,
        weights=weights,
    )


def _expand_roles(names: Sequence[str] | None, objectives: Iterable[str]) -> tuple[str, ...] | None:
    """Return the objectives that the names mean: with several sources, "source" means the losses of all of them."""
    return None if names is None else tuple(name for name in objectives if name in names or find_role(name) in names)


def make_scheme(settings: Settings, objectives: Sequence[str] = ()) -> Scheme | Strategy:
    """Make the scheme, averaged, calibrated and held as the settings say, or the strategy in its place.

    Args:
        settings: Settings of the run.
        objectives: Names of the objectives; without them they are `Settings.losses`.
    """
    options = settings.part_options["scheme"]
    if settings.scheme in STRATEGIES:
        return with_options(settings.scheme, STRATEGIES[settings.scheme], {}, options)
    if settings.loss_weights:
        weights = dict(zip(settings.losses, settings.loss_weights, strict=True))
        options["weights"] = tuple(weights[find_role(name)] for name in objectives or settings.losses)
    scheme: Scheme = with_options(settings.scheme, SCHEMES[settings.scheme], {}, options)
    default = 0.95 if settings.scheme == "paretoda" else 0.0
    average = default if settings.average is None else settings.average
    if average > 0:
        scheme = Averaged(scheme, average)
    if settings.calibrate:
        scheme = Calibrated(scheme)
    return Every(scheme, settings.held_steps) if settings.held_steps > 1 else scheme


def with_prior(
    name: str, options: dict[str, Any], source: Callable[[], Tensor], default: Literal["source", "estimated", "uniform"]
) -> dict[str, Any]:
    """Replace the word in the option `prior` of a target loss by numbers.

    "source": as frequent as in the source; "estimated": the same, corrected for the target during training; "uniform":
    equally frequent; or a number for each class.

    Args:
        name: Name of the loss.
        options: Options of the loss.
        source: Returns the class frequencies of the source, shape (K,).
        default: Prior where the options have none.

    Raises:
        SettingsError: The option is no known word.
    """
    prior = options.get("prior", default)
    if name not in _DIVERSE_LOSSES or not isinstance(prior, str):
        return options
    if prior not in _PRIORS:
        raise SettingsError(f"target.prior is {', '.join(_PRIORS)} or a number for each class; not {prior!r}")
    if prior == "uniform":
        return {**options, "prior": None}
    return {**options, "prior": source().clamp(min=_SMALLEST_SHARE).tolist(), "shift": prior == "estimated"}


def describe_label_shift(objectives: Iterable[Objective], classes: Sequence[str]) -> str | None:
    """Describe the estimated class frequencies of the target; None where no objective estimates them."""
    shifts = [module for objective in objectives for module in objective.modules() if isinstance(module, LabelShift)]
    if not shifts:
        return None
    ratios = dict(zip(classes, shifts[0].log_ratios.exp().tolist(), strict=True))
    largest = sorted(ratios, key=lambda name: -max(ratios[name], 1 / ratios[name]))[:_MOST_NAMED]
    parts = [
        f"{name} {ratios[name]:.1f} times" for name in largest if max(ratios[name], 1 / ratios[name]) >= _NOTABLE_RATIO
    ]
    if not parts:
        return "By its predictions the target has the classes about as often as the source."
    joined = " and ".join([", ".join(parts[:-1]), parts[-1]] if parts[1:] else parts)
    return f"By its predictions the target has {joined} as often as the source; the target loss asked for that."


def check_machine(settings: Settings) -> None:
    """Raise a SettingsError for what this machine cannot do, before any data are read."""
    if settings.compile:
        try:
            check_compiler()
        except NoCompilerError as error:
            raise SettingsError(str(error)) from error


def check_kind(settings: Settings, kind: str) -> None:
    """Raise a SettingsError for settings that make no sense for such data.

    Args:
        settings: Settings of the run.
        kind: Kind of the data that the network reads: "features", or images of some sort.
    """
    if kind != "features" and settings.members > 1:
        raise SettingsError(
            "--members is for feature data: take --frozen, or train runs with several seeds and give them to --with"
        )
    if kind == "features" and (reason := refusal({*settings.circumstances, "feature data"})) is not None:
        raise SettingsError(reason)


def check_sources(settings: Settings, count: int) -> None:
    """Raise a SettingsError for settings that are for a single source.

    Args:
        settings: Settings of the run.
        count: Number of sources that are domains of their own.
    """
    if count > 1 and (reason := FOR_ONE_SOURCE.get(settings.scheme)) is not None:
        raise SettingsError(f"the scheme {settings.scheme!r} {reason}; take another --scheme or --sources pooled")


def check_batch_split(settings: Settings, pair: Pair, guided: bool, processes: Processes) -> None:
    """Raise a SettingsError unless every process gets at least one sample of each part of a batch."""
    size, count = pair.settings.batch_size, processes.size
    for name in _SINGLE_PROCESS_SETTINGS if count > 1 else ():
        value = getattr(settings, name)
        if value is True or value > 1:
            option = name.replace("_", "-")
            raise SettingsError(f"--{option} is for one process: leave it out, or start without torchrun")
    if count > 1 and settings.reads_labels:
        raise SettingsError("--target-labels is for one process: leave it out, or start without torchrun")
    if size < count:
        raise SettingsError(
            f"a batch of {size} samples cannot be shared by {count} processes: give a larger --batch-size or start "
            "fewer processes"
        )
    if guided and pair.guide_size < count:
        raise SettingsError(
            f"the {pair.guide_size} held-out target samples of a batch cannot be shared by {count} processes: give a "
            "larger --held-out or start fewer processes"
        )


def describe_memory(settings: Settings, model: Model) -> Iterator[str]:
    """Yield sentences on effects of memory-saving settings that users may not expect."""
    normalises = any(layer.training for layer in batch_norms(model.encoder))
    if settings.accumulate > 1 and normalises:
        rows = settings.batch_size // settings.accumulate
        yield (
            f"BatchNorm normalises every micro-batch ({rows} samples of a domain) by itself: with it, --accumulate "
            f"{settings.accumulate} is not exactly the whole batch of {settings.batch_size}"
        )


def describe_skipped_steps(history: list[dict[str, Any]]) -> str | None:
    """Say how many steps the gradient scaler skipped; None where it skipped none."""
    count = sum(line["finite"] is False for line in history)
    if not count:
        return None
    return f"{count} of {len(history)} steps overflowed in half precision and were skipped; the scale was lowered"


def _prepare_network(settings: Settings, model: Model, device: torch.device) -> None:
    """Set the memory format of the network, checkpoint and compile its encoder, as the settings say."""
    if device.type == "cpu" if settings.channels_last is None else settings.channels_last:
        put_channels_last(model)
    if settings.checkpoint_activations:
        checkpoint_activations(model.encoder)
    if settings.compile:
        compile_encoder(model.encoder)
