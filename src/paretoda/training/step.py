"""One training step: encode both domains, weigh the objectives by their gradients, move everything once."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Literal

import torch
from torch import Tensor, nn

from paretoda.core.problem import Scheme, reads_guide
from paretoda.distributed.collectives import SINGLE_PROCESS, Processes
from paretoda.distributed.layers import check_layers
from paretoda.gradients import Report, backward
from paretoda.gradients.fsdp import Sharding, is_sharded
from paretoda.models.batchnorm import frozen_statistics
from paretoda.schemes.linear import Linear
from paretoda.training.forward import (
    Encoding,
    Pass,
    average_statistics,
    encode_guide,
    gather_domain_rows,
    make_batch_split,
)
from paretoda.training.optimisers import SCHEDULES, move_parameters, set_learning_rates
from paretoda.training.strategy import BatchView, Strategy
from paretoda.types import Batch, Model, Objective, Source, Target


@dataclass(eq=False)
class Step:
    """Everything that one step needs; calling it with a batch takes the step.

    Args:
        model: encoder (shared by all objectives) and head.
        objectives: by name, in order: "source", "alignment", "target"; the first is the source's loss.
        scheme: chooses the weights; a strategy fills the gradients in its own way.
        optimiser: moves the model's and the objectives' own parameters.
        guide: the objective on held-out target data, for schemes that read one.
        bn: "joint": source and target in one batch; "per-domain": own statistics for each.
        head_losses: names of the objectives that reach the head; None: see `paretoda.backward`.
        voting: "all" shared parameters or the "last" layer's.
        precision: "32", "bf16" or "16" (with a gradient scaler).
        schedule: of the learning rate, a name in `SCHEDULES`.
        decay: how far it falls.
        clip: largest norm of the encoder's and head's gradient; None: no limit.
        processes: several, each of which calls the step with its own samples; `docs/processes.md` says what is equal.
        sync_bn: whether the encoder's BatchNorm layers then use the statistics of all processes together.
        accumulate: micro-batches that a batch goes through the encoder in.
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
    scaler: torch.amp.GradScaler | None = field(default=None, init=False)

    def __post_init__(self) -> None:
        if reads_guide(self.scheme) and self.guide is None:
            raise ValueError("this scheme follows a guide: give the step one")
        if self.precision == "16":
            self.scaler = torch.amp.GradScaler(self.device.type)
        if isinstance(self.scheme, Strategy):
            self.scheme.check(self)
        _check_distributed(self)

    @property
    def device(self) -> torch.device:
        """Where the model is."""
        return next(self.model.parameters()).device

    @property
    def parts(self) -> list[Objective]:
        """All objectives, the guide's last."""
        return [*self.objectives.values(), *([] if self.guide is None else [self.guide])]

    @property
    def wants_guide(self) -> bool:
        """Whether the coming step reads the guide: not where its scheme has none, or holds its weights."""
        return self.guide is not None and reads_guide(self.scheme) and bool(getattr(self.scheme, "refreshes", True))

    def modules(self) -> nn.ModuleDict:
        """All networks of the step, for saving and for moving to a device."""
        parts: dict[str, nn.Module] = {"model": self.model, **{f"objective-{k}": v for k, v in self.objectives.items()}}
        if self.guide is not None:
            parts["guide"] = self.guide
        return nn.ModuleDict(parts)

    def advance(self, progress: float) -> None:
        """Set every schedule to this share of the training."""
        for objective in self.parts:
            objective.advance(progress)
        set_learning_rates(self.optimiser, SCHEDULES[self.schedule](progress, self.decay))

    def __call__(self, batch: Batch) -> Report:
        """Take one step on the batch."""
        self.model.train()
        self.optimiser.zero_grad(set_to_none=True)
        scheme = self.scheme
        report = scheme.fill(self, batch) if isinstance(scheme, Strategy) else self.weigh(self.look(batch), scheme)
        move_parameters(self.optimiser, report, self.model.parameters(), self.clip, self.scaler)
        self._lower_again(batch)
        if not self.sync_bn:
            average_statistics(self.model.encoder, self.processes)
        return report

    def look(self, batch: Batch) -> BatchView:
        """Both domains, all losses, and the guide's where this step wants it."""
        with self.autocast():
            source, target, features = self._seen(batch)
            losses = {name: objective(source, target) for name, objective in self.objectives.items()}
            guide_loss = None
            if self.guide is not None and self.wants_guide:
                ahead, pass_ = encode_guide(self, batch)
                guide_loss = self.guide(source, ahead)
                features.append(pass_)
            private = self._private(source, target)
        if self.precision != "32":
            losses = {name: loss.float() for name, loss in losses.items()}
        return BatchView(source, target, losses, features, guide_loss, private)

    def weigh(self, look: BatchView, scheme: Scheme) -> Report:
        """Fill every `.grad` with what the scheme makes of one look."""
        return backward(
            look.losses,
            shared=self.model.encoder,
            scheme=scheme,
            guide=look.guide,
            features=look.features,
            heads=self.model.head,
            head_losses=self.head_losses,
            private=look.private,
            voting=self.voting,
            metric=self.optimiser,
            scaler=self.scaler,
            processes=self.processes,
        )

    def autocast(self) -> AbstractContextManager[None]:
        """The precision of the forward passes."""
        dtype = torch.float16 if self.precision == "16" else torch.bfloat16
        context: AbstractContextManager[None] = torch.autocast(
            self.device.type, dtype=dtype, enabled=self.precision != "32"
        )
        return context

    def domains(self, batch: Batch) -> tuple[Source, Target]:
        """The batch as the network sees it now; with several processes the joint batch, but for the inputs."""
        source, target, _ = self._seen(batch)
        return source, target

    def _seen(self, batch: Batch) -> tuple[Source, Target, list[Pass]]:
        """Both domains, and the encoder's passes that made their features."""
        shares = make_batch_split(self, len(batch.source), len(batch.target))
        source, target, passes = self.encoding.domains(batch, shares)
        labels, source_index, target_index = gather_domain_rows(
            shares, (batch.labels, 0), (batch.source_index, 0), (batch.target_index, 1)
        )
        head, more = self.model.head, self.model.extra_logits
        return (
            Source(source, head(source), source_index, batch.source, head, more(source), labels=labels),
            Target(target, head(target), target_index, batch.target, head, more(target)),
            passes,
        )

    @property
    def encoding(self) -> Encoding:
        """How the encoder is run."""
        return Encoding(self.model.encoder, self.bn, self.voting == "last", self.accumulate)

    def _private(self, source: Source, target: Target) -> list[tuple[Tensor, nn.Module]]:
        pairs = [(objective.private_loss(source, target), objective) for objective in self.objectives.values()]
        return [(loss, objective) for loss, objective in pairs if loss is not None]

    def _lower_again(self, batch: Batch) -> None:
        """The encoder alone lowers those objectives that want it more than once; BatchNorm remembers nothing of it."""
        for name, objective in self.objectives.items():
            for _ in range(objective.encoder_updates - 1):
                with self.autocast(), frozen_statistics(self.model.encoder):
                    source, target, passes = self._seen(batch)
                    loss = objective(source, target)
                self.optimiser.zero_grad(set_to_none=True)
                losses = {name: loss.float() if self.precision != "32" else loss}
                report = backward(
                    losses,
                    shared=self.model.encoder,
                    scheme=Linear(),
                    features=passes,
                    scaler=self.scaler,
                    processes=self.processes,
                )
                move_parameters(self.optimiser, report, self.model.parameters(), self.clip, self.scaler)


def _check_distributed(step: Step) -> None:
    """Raise a ValueError that says what to do where this step cannot be taken by its processes; prepare FSDP."""
    several = step.processes.size > 1
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
            part.set_gradient_divide_factor(1.0)  # its own choice is the mean; our losses are of the joint batch
            part.set_force_sum_reduction_for_comms(True)  # gloo has no other
            part.set_reshard_after_forward(True)  # or the optimiser's parameters are not those of the module
