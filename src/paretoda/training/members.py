"""Members: several networks that are trained side by side on the same data and predict together.

Every member has its own seed, and with it its own initial weights, batches and dropout; the held-out samples are
common to all, so that no member was trained on what calibrates or validates their mean. Member i takes exactly the
steps of a run with its seed and this split, but for objectives that all refresh by their mean prediction
(`Objective.common`). The members take turns, because on one core there is nothing to gain from
batched matrix products: their arithmetic is the same, and it is most of a step (docs/decisions/0014).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from functools import cache
from typing import Any

import numpy as np
import torch
from torch import nn

from paretoda.core.problem import StatefulScheme
from paretoda.data.pair import Pair
from paretoda.evaluation.predictions import evaluation_mode
from paretoda.gradients import Report
from paretoda.models.ensemble import MeanHead
from paretoda.training.optimisers import OptimiserGroup
from paretoda.training.seeding import seed_everything
from paretoda.training.snapshot import move_batch
from paretoda.training.step import Step
from paretoda.types import Batch, Model, Objective, Snapshot


@dataclass(eq=False)
class Members(Step):
    """A step that is one step of every member; `join_steps` makes it.

    Its model predicts the mean; its objectives and its guide are those of the first member.

    Args:
        steps: Steps of the members.
        pairs: Data of the members, in the same order.
        seeds: Seeds of the members.
    """

    steps: tuple[Step, ...] = ()
    pairs: tuple[Pair, ...] = ()
    seeds: tuple[int, ...] = ()
    _number: int = 0

    @property
    def members(self) -> tuple[Step, ...]:
        """The steps of the members."""
        return self.steps

    @property
    def parts(self) -> list[Objective]:
        """All objectives and guides."""
        return [part for step in self.steps for part in step.parts]

    @property
    def wants_guide(self) -> bool:
        """Whether the next step of the first member reads the guide."""
        return self.steps[0].wants_guide

    def modules(self) -> nn.ModuleDict:
        """Return all networks, for saving."""
        return nn.ModuleDict({f"member-{i}": step.modules() for i, step in enumerate(self.steps)})

    def predicting_modules(self) -> nn.ModuleDict:
        """Return the networks that a prediction needs."""
        return nn.ModuleDict({f"member-{i}": step.predicting_modules() for i, step in enumerate(self.steps)})

    def advance(self, progress: float) -> None:
        """Set every schedule to this share of the training, 0..1."""
        for step in self.steps:
            step.advance(progress)  # their weights of label sets are common, by what all predict

    def seed(self, seed: int, number: int) -> None:  # noqa: ARG002 - every member has its own seed
        """Note the number of the next step; each member is seeded before its own."""
        self._number = number

    def refresh(self, take: Callable[[], Snapshot], *, due: bool) -> None:
        """Refresh the parts of every member: common ones once for all, the others by its own view of the snapshot."""

        @cache
        def view(index: int) -> Snapshot:
            return member_snapshot(take(), index, self.steps[index].model)

        if self.weights is not None and self.weights.needs_refresh(due=due):
            self.weights.refresh(take())
        for same in zip(*(step.parts for step in self.steps), strict=True):
            first, *others = same
            if not first.common:
                for index, part in enumerate(same):
                    if part.needs_refresh(due=due):
                        part.refresh(view(index))
            elif first.needs_refresh(due=due):
                first.refresh(take())
                for other in others:
                    other.load_state_dict(first.state_dict())

    def __call__(self, batch: Batch) -> Report:
        """Take one step of every member.

        Args:
            batch: Batch of the first member; the others read their own.

        Returns:
            The means of the members' losses, weights and cosines.
        """
        reports: list[Report] = []
        for step, pair, seed in zip(self.steps, self.pairs, self.seeds, strict=True):
            own = batch
            if reports:
                own = move_batch(pair.batch(self._number, guide=step.wants_guide), self.device)
            seed_everything(seed, "step", self._number)
            reports.append(step(own))
        return mean_report(reports)


class MemberSchemes:
    """The states of the members' schemes, for a checkpoint.

    Args:
        steps: Steps of the members.
    """

    def __init__(self, steps: Sequence[Step]) -> None:
        self._schemes = [step.scheme for step in steps]
        self.guided = getattr(steps[0].scheme, "guided", True)

    def __call__(self, problem: Any, /) -> Any:  # noqa: ARG002
        """Refuse: every member has a scheme of its own."""
        raise TypeError("the members of an ensemble have one scheme each")

    def state_dict(self) -> dict[str, object]:
        """Return the state of every scheme that has one."""
        states = [scheme.state_dict() if isinstance(scheme, StatefulScheme) else {} for scheme in self._schemes]
        return {"members": states}

    def load_state_dict(self, state: dict[str, object]) -> None:
        """Restore the states that `state_dict` returned."""
        states: Any = state["members"]
        for scheme, own in zip(self._schemes, states, strict=True):
            if isinstance(scheme, StatefulScheme):
                scheme.load_state_dict(own)


def join_steps(steps: Sequence[Step], pairs: Sequence[Pair], seeds: Sequence[int], model: Model) -> Members:
    """Return one step of several members.

    Args:
        steps: Steps of the members.
        pairs: Data of the members.
        seeds: Seeds of the members.
        model: Model that predicts with all of them, made of their own networks.
    """
    for step in steps:
        step.weights = steps[0].weights
    shared = {field.name: getattr(steps[0], field.name) for field in fields(Step) if field.init}
    own: dict[str, Any] = {
        "model": model,
        "scheme": MemberSchemes(steps),
        "optimiser": OptimiserGroup(*(step.optimiser for step in steps)),
    }
    return Members(**{**shared, **own}, steps=tuple(steps), pairs=tuple(pairs), seeds=tuple(seeds))


def member_snapshot(snapshot: Snapshot, index: int, model: Model) -> Snapshot:
    """Return what one member makes of the whole sets.

    Args:
        snapshot: Snapshot of the model of all members.
        index: Position of the member.
        model: Model of the member.
    """
    head = snapshot.model.head
    assert isinstance(head, MeanHead)

    def view(domain: Any) -> Any:
        features = domain.features.chunk(len(head.members), dim=1)[index]
        return replace(domain, features=features, logits=model.head(features.to(device)).cpu())

    device = next(model.parameters()).device
    with evaluation_mode(model), torch.no_grad():
        parts = {
            name: view(getattr(snapshot, name)) for name in ("source", "held_out_source", "target", "held_out_target")
        }
    return replace(snapshot, **parts, model=model)


def mean_report(reports: Sequence[Report]) -> Report:
    """Return the mean of the members' reports, with the rule that most of them followed.

    Examples:
        >>> from paretoda.core.problem import Move
        >>> one, other = (Report(("source",), np.array([loss]), np.ones(1), Move.FIXED) for loss in (1.0, 3.0))
        >>> mean_report([one, other]).losses
        array([2.])
    """

    def mean(name: str) -> Any:
        values = [getattr(report, name) for report in reports]
        return None if any(value is None for value in values) else np.mean(values, axis=0)

    guide_loss = mean("guide_loss")
    return Report(
        names=reports[0].names,
        losses=mean("losses"),
        alpha=mean("alpha"),
        move=Counter(report.move for report in reports).most_common(1)[0][0],
        cosines=mean("cosines"),
        guide_loss=None if guide_loss is None else float(guide_loss),
        guide_cosines=mean("guide_cosines"),
        finite=all(report.finite for report in reports),
        units=mean("units"),
    )
