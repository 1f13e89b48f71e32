"""One training step: encode both domains, weigh the objectives by their gradients, update all parameters once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from functools import cache
from typing import Literal

import torch
from torch import Tensor, nn

from paretoda.core.problem import Scheme, reads_guide
from paretoda.distributed.collectives import SINGLE_PROCESS, Processes
from paretoda.distributed.layers import check_layers
from paretoda.errors import SettingsError
from paretoda.gradients import Report, backward
from paretoda.gradients.fsdp import Sharding, is_sharded
from paretoda.models.batchnorm import frozen_statistics
from paretoda.objectives.parts.label_sets import LabelSetWeights
from paretoda.schemes.linear import Linear
from paretoda.training.forward import (
    Encoding,
    Pass,
    average_statistics,
    encode_guide,
    gather_domain_rows,
    join_labelled,
    make_batch_split,
)
from paretoda.training.optimisers import SCHEDULES, move_parameters, set_learning_rates
from paretoda.training.seeding import seed_everything
from paretoda.training.strategy import BatchView, Strategy
from paretoda.training.teacher import Teacher
from paretoda.types import Batch, LabelledTarget, Model, Objective, Snapshot, Source, Target, TaughtTarget


@dataclass(eq=False)
class Step:
    """Everything that one training step needs; calling it with a batch takes the step.

    Args:
        model: Encoder, which all objectives share, and head.
        objectives: Objectives by name, in order: "source", "alignment", "target"; the first is the source's loss.
        scheme: Scheme that chooses the weights, or a strategy that fills the gradients in its own way.
        optimiser: Optimiser of the model's and the objectives' own parameters.
        guide: Objective on held-out target data, for schemes that read one.
        bn: "joint": source and target in one batch; "per-domain": own statistics for each.
        head_losses: Names of the objectives that reach the head; None: see `paretoda.backward`.
        voting: Whose gradients are weighed: "all" shared parameters or the "last" layer's.
        precision: "32", "bf16" or "16" (with a gradient scaler).
        schedule: Schedule of the learning rate, a name in `SCHEDULES`.
        decay: Strength of the decay of the learning rate.
        clip: Largest norm of the encoder's and head's gradient; None means no limit.
        processes: Processes that each call the step with their own samples; `docs/processes.md` says what is equal.
        sync_bn: Whether the encoder's BatchNorm layers then use the statistics of all processes together.
        accumulate: Number of micro-batches in which a batch passes through the encoder.
        teacher: Average of the model, for objectives that follow one; it follows every step.
        weights: Weights of samples and classes where the label sets of the domains differ; None: they are the same.

    Raises:
        ValueError: The parts do not fit together; the message says what to change.

    Examples:
        >>> from paretoda.objectives import Coral, CrossEntropy
        >>> from paretoda.schemes import MGDA
        >>> model = Model(nn.Linear(3, 4), nn.Linear(4, 2))
        >>> objectives = {"source": CrossEntropy(4, 2), "alignment": Coral(4, 2)}
        >>> step = Step(model, objectives, MGDA(), torch.optim.SGD(model.parameters(), lr=0.1))
        >>> index = torch.arange(6)
        >>> report = step(Batch(torch.randn(6, 3), index % 2, torch.randn(6, 3), None, index, index, None))
        >>> len(report.losses)
        2
    """

    model: Model
    objectives: dict[str, Objective]
    scheme: Scheme | Strategy
    optimiser: torch.optim.Optimizer
    guide: Objective | None = None
    bn: Literal["joint", "per-domain"] = "joint"
    head_losses: Sequence[str] | None = None
    voting: Literal["all", "last"] = "all"
    precision: Literal["32", "bf16", "16"] = "32"
    schedule: str = "inverse"
    decay: float = 10.0
    clip: float | None = None
    processes: Processes = SINGLE_PROCESS
    sync_bn: bool = True
    accumulate: int = 1
    teacher: Teacher | None = None
    weights: LabelSetWeights | None = None
    scaler: torch.amp.GradScaler | None = field(default=None, init=False)

    def __post_init__(self) -> None:
        if reads_guide(self.scheme) and self.guide is None:
            raise ValueError("this scheme follows a guide: give the step one")
        if self.precision == "16":
            self.scaler = torch.amp.GradScaler(self.device.type)
        if isinstance(self.scheme, Strategy):
            self.scheme.check(self)
        _check_teacher(self)
        _check_distributed(self)

    @property
    def device(self) -> torch.device:
        """Device of the model."""
        return next(self.model.parameters()).device

    @property
    def parts(self) -> list[Objective]:
        """All objectives, with the guide last."""
        return [*self.objectives.values(), *([] if self.guide is None else [self.guide])]

    @property
    def wants_guide(self) -> bool:
        """Whether the next step reads the guide; False where its scheme has none, or reuses its weights."""
        return self.guide is not None and reads_guide(self.scheme) and bool(getattr(self.scheme, "refreshes", True))

    def modules(self) -> nn.ModuleDict:
        """Return all networks of the step, for saving and for moving to a device."""
        parts: dict[str, nn.Module] = {"model": self.model, **{f"objective-{k}": v for k, v in self.objectives.items()}}
        if self.guide is not None:
            parts["guide"] = self.guide
        if self.teacher is not None:
            parts["teacher"] = self.teacher
        if self.weights is not None:
            parts["weights"] = self.weights
        return nn.ModuleDict(parts)

    @property
    def members(self) -> tuple[Step, ...]:
        """The steps of the networks that predict together: this one alone."""
        return (self,)

    def predicting_modules(self) -> nn.ModuleDict:
        """Return the networks that a prediction needs: the model and, for refined predictions, the target loss."""
        return nn.ModuleDict({k: m for k, m in self.modules().items() if k in ("model", "objective-target")})

    def refresh(self, take: Callable[[], Snapshot], *, due: bool) -> None:
        """Refresh the parts that process whole sets.

        Args:
            take: Returns a snapshot of the present model; it is called only where a part needs it.
            due: Whether all are due; otherwise only those that ask for it themselves.
        """
        snapshot = cache(take)
        if self.weights is not None and self.weights.needs_refresh(due=due):
            self.weights.refresh(snapshot())
        for part in self.parts:
            if part.needs_refresh(due=due):
                part.refresh(snapshot())

    def seed(self, seed: int, number: int) -> None:
        """Seed what the step draws by its number, so that a resumed run draws the same."""
        seed_everything(seed, "step", number)

    def advance(self, progress: float) -> None:
        """Set every schedule to this share of the training, 0..1."""
        for objective in self.parts:
            objective.advance(progress)
        if self.weights is not None:
            self.weights.advance(progress)
        set_learning_rates(self.optimiser, SCHEDULES[self.schedule](progress, self.decay))

    def __call__(self, batch: Batch) -> Report:
        """Take one step on a batch.

        Args:
            batch: Batch of this process, on the model's device.

        Returns:
            Losses, weights, the rule that chose them, and what is known of the gradients.
        """
        self.model.train()
        self.optimiser.zero_grad(set_to_none=True)
        scheme = self.scheme
        report = scheme.fill(self, batch) if isinstance(scheme, Strategy) else self.weigh(self.view(batch), scheme)
        move_parameters(self.optimiser, report, self.model.parameters(), self.clip, self.scaler)
        self._repeat_encoder_updates(batch, report)
        if not self.sync_bn:
            average_statistics(self.model.encoder, self.processes)
        if self.teacher is not None:
            self.teacher.follow(self.model)
        return report

    def view(self, batch: Batch) -> BatchView:
        """Encode both domains and compute all losses, including the guide's where this step reads it."""
        with self.autocast():
            source, target, labelled, features = self._encode(batch)
            taught = self._teach(batch, features)
            losses = {
                name: objective(source, taught.get(name, labelled if objective.reads_labels else target))
                for name, objective in self.objectives.items()
            }
            guide_loss = None
            if self.guide is not None and self.wants_guide:
                ahead, guide_pass = encode_guide(self, batch)
                ahead = ahead if self.weights is None else self.weights.weigh_guide(ahead)
                guide_loss = self.guide(source, ahead)
                features.append(guide_pass)
            private = self._private_losses(source, target)
        if self.precision != "32":
            losses = {name: loss.float() for name, loss in losses.items()}
        return BatchView(source, target, losses, features, guide_loss, private)

    def loss(self, name: str, batch: Batch) -> Tensor:
        """Encode the batch and return the loss of one objective."""
        source, target, labelled, _ = self._encode(batch)
        objective = self.objectives[name]
        found: Tensor = objective(source, labelled if objective.reads_labels else target)
        return found

    def weigh(self, view: BatchView, scheme: Scheme) -> Report:
        """Fill every `.grad` with the gradient that the scheme chooses for these losses."""
        return backward(
            view.losses,
            shared=self.model.encoder,
            scheme=scheme,
            guide=view.guide,
            features=view.features,
            heads=self.model.head,
            head_losses=self.head_losses,
            private=view.private,
            voting=self.voting,
            metric=self.optimiser,
            scaler=self.scaler,
            processes=self.processes,
            offsets={name: objective.offset for name, objective in self.objectives.items()},
        )

    def autocast(self) -> AbstractContextManager[None]:
        """Return the context that sets the precision of the forward passes."""
        dtype = torch.float16 if self.precision == "16" else torch.bfloat16
        context: AbstractContextManager[None] = torch.autocast(
            self.device.type, dtype=dtype, enabled=self.precision != "32"
        )
        return context

    def domains(self, batch: Batch) -> tuple[Source, Target]:
        """Encode the batch; with several processes the result is the joint batch, except for the inputs."""
        source, target, *_ = self._encode(batch)
        return source, target

    def _encode(self, batch: Batch) -> tuple[Source, Target, LabelledTarget | None, list[Pass]]:
        """Return both domains, the labelled target samples, and the encoder's passes that made their features."""
        shares = make_batch_split(self, len(batch.source), len(batch.target))
        source, target, passes = self.encoding.domains(join_labelled(batch), shares)
        labels, source_index, target_index = gather_domain_rows(
            shares, (batch.labels, 0), (batch.source_index, 0), (batch.target_index, 1)
        )
        domain = None if batch.domain is None else gather_domain_rows(shares, (batch.domain, 0))[0]
        head, more = self.model.head, self.model.extra_logits
        labelled = None
        if batch.labelled is not None and batch.target_labels is not None:
            target, few = target[: len(batch.target)], target[len(batch.target) :]
            index = torch.arange(len(few), device=few.device)
            labelled = LabelledTarget(few, head(few), index, batch.labelled, head, labels=batch.target_labels)
        ours = Source(
            source, head(source), source_index, batch.source, head, more(source), labels=labels, domain=domain
        )
        theirs = Target(target, head(target), target_index, batch.target, head, more(target))
        if self.weights is not None:
            ours, theirs = self.weights.weigh(ours, theirs)
        return ours, theirs, labelled, passes

    def _teach(self, batch: Batch, features: list[Pass]) -> dict[str, TaughtTarget]:
        """Return what each objective that follows the teacher learns from; their passes are added to `features`."""
        if self.teacher is None:
            return {}
        probabilities, found, head = self.teacher(batch.target), {}, self.model.head
        for name, objective in self.objectives.items():
            if objective.follows_teacher:
                inputs, labels, weights = objective.lesson(batch, probabilities)
                rows, made = self.encoding.changed(inputs)
                features.append(made)
                found[name] = TaughtTarget(
                    rows, head(rows), batch.target_index, inputs, head, labels=labels, weights=weights
                )
        return found

    @property
    def encoding(self) -> Encoding:
        """How the encoder is run."""
        return Encoding(self.model.encoder, self.bn, self.voting == "last", self.accumulate)

    def _private_losses(self, source: Source, target: Target) -> list[tuple[Tensor, nn.Module]]:
        pairs = [(objective.private_loss(source, target), objective) for objective in self.objectives.values()]
        return [(loss, objective) for loss, objective in pairs if loss is not None]

    def _repeat_encoder_updates(self, batch: Batch, first: Report) -> None:
        """Update the encoder again for objectives that want it more than once per step, in the units of the step.

        BatchNorm's running statistics are not changed by it.
        """
        units = {} if first.units is None else dict(zip(first.names, first.units.tolist(), strict=True))
        for name, objective in self.objectives.items():
            for _ in range(objective.encoder_updates - 1):
                with self.autocast(), frozen_statistics(self.model.encoder):
                    source, target, _, passes = self._encode(batch)
                    loss = objective(source, target)
                self.optimiser.zero_grad(set_to_none=True)
                losses = {name: loss.float() if self.precision != "32" else loss}
                report = backward(
                    losses,
                    shared=self.model.encoder,
                    scheme=Linear((units.get(name, 1.0),)),
                    features=passes,
                    scaler=self.scaler,
                    processes=self.processes,
                )
                move_parameters(self.optimiser, report, self.model.parameters(), self.clip, self.scaler)


def _check_teacher(step: Step) -> None:
    """Raise a `SettingsError` where objectives follow a teacher and there is none, or the step cannot have one."""
    following = [name for name, objective in step.objectives.items() if objective.follows_teacher]
    if following and step.teacher is None:
        raise SettingsError(f"the loss {following[0]!r} follows a teacher: give the step one")
    if following and isinstance(step.scheme, Strategy):
        raise SettingsError("losses that follow a teacher need a scheme that weighs gradients: take --scheme paretoda")
    if following and step.accumulate > 1:
        raise SettingsError("losses that follow a teacher need the whole batch at once: leave out --accumulate")


def _check_distributed(step: Step) -> None:
    """Raise a `ValueError` where the processes cannot take this step; prepare sharded encoders (FSDP)."""
    several = step.processes.size > 1
    if several and step.teacher is not None:
        raise ValueError("losses that follow a teacher train in one process only: start it without torchrun")
    if several and isinstance(step.scheme, Strategy) and not getattr(step.scheme, "spreads", False):
        name = type(step.scheme).__name__.lower()
        raise ValueError(f"the scheme {name!r} trains in one process only: start it without torchrun")
    if several and step.accumulate > 1:
        raise ValueError("micro-batches are for one process: leave out accumulate, or start it without torchrun")
    if several:
        check_layers(step.model.encoder)
    if step.clip is not None and is_sharded(step.model.parameters()):
        raise ValueError("the gradient of a sharded encoder (FSDP) cannot be clipped here: leave out clip")
    for part in step.model.encoder.modules():
        if isinstance(part, Sharding):
            part.set_gradient_divide_factor(1.0)  # the default is the mean, but our losses are those of the joint batch
            part.set_force_sum_reduction_for_comms(True)  # gloo supports nothing else
            part.set_reshard_after_forward(True)  # otherwise the optimiser's parameters are not those of the module
