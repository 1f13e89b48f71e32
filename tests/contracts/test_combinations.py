"""Every method, target loss, scheme or strategy and kind of BatchNorm combines for two steps, or is refused.

The fast test takes a covering set: every pair of two names is in one of its combinations. The slow ones take all.
"""

import re
from functools import cache
from itertools import combinations, product

import numpy as np
import pytest
import torch

from paretoda.errors import SettingsError
from paretoda.run.build import build_step
from paretoda.run.compatibility import UNSUITED
from paretoda.schemes import SCHEMES
from paretoda.tasks import TASKS, find_task
from paretoda.tasks.settings import make_settings
from paretoda.training.loop import fit
from paretoda.training.snapshot import take_snapshot
from paretoda.training.strategies import STRATEGIES

torch.set_num_threads(1)

CPU = torch.device("cpu")
ALL_SCHEMES = [*SCHEMES, *STRATEGIES]
STATISTICS = ("joint", "per-domain")
TINY = {
    "classification": {"batch_size": 12, "bottleneck": 6, "members": 1},
    "segmentation": {"batch_size": 2, "translation": "none"},
    "regression": {"batch_size": 12, "bottleneck": 6},
}
ONE_LOSS = "metaalign pairs .* but the losses are|choose a method or a target loss as well"
"""Strategies of several losses, where there is none beside the source's."""
NO_TEACHER = "^losses that follow a teacher need a scheme"
"""Strategies, which take more than one look at a batch."""
REFUSED = {
    "classification": re.compile(f"{ONE_LOSS}|{NO_TEACHER}|take --scheme linear, mgda or paretoda$"),
    "segmentation": re.compile(r"take --scheme linear, mgda or paretoda$|for --task classification, not for"),
    "regression": re.compile(r"take --scheme linear, mgda or paretoda$|for --task classification, not for"),
}
"""The only refusals."""


def classified():
    rng = np.random.default_rng(0)
    labels = np.arange(60) % 3
    source = 3 * np.eye(6)[labels] + rng.normal(size=(60, 6))
    return (source, labels), source + 0.5


def segmented():
    rng = np.random.default_rng(0)
    images = rng.integers(0, 256, (20, 16, 16, 3), dtype=np.uint8)
    return (images, rng.integers(0, 3, (20, 16, 16), dtype=np.uint8), ["a", "b", "c"]), images[::-1].copy()


def valued():
    (source, labels), target = classified()
    return (source, source[:, 0] + labels), target


DATA = {"classification": classified, "segmentation": segmented, "regression": valued}
FOR_OPEN_SETS = "novelty"
"""A target loss that needs `label_sets="open"`, see tests/run/test_label_sets.py."""
FACTORS = {
    name: (
        ALL_SCHEMES,
        list(find_task(name).tables.methods),
        [loss for loss in find_task(name).tables.target_losses if loss != FOR_OPEN_SETS],
        STATISTICS,
    )
    for name in TASKS
}
"""Task -> the names of schemes, methods, target losses and kinds of BatchNorm."""


def covering(task):
    """Combinations of which every pair of names is part: each scheme with each method, the others in turn."""
    schemes, methods, losses, statistics = FACTORS[task]
    for (i, scheme), (j, method) in product(enumerate(schemes), enumerate(methods)):
        rounds, place = divmod(i + j, len(losses))
        yield scheme, method, losses[place], statistics[rounds % 2]


@cache
def opened(task):
    """The data of the task, which no combination changes."""
    return find_task(task).open(make_settings({"task": task, **TINY[task]}), *DATA[task](), CPU).pair


def run(task, scheme, method, loss, bn):
    """Take two steps; return what the combination is refused with, None if it is not."""
    given = {"scheme": scheme, "method": method, "target_loss": loss, "bn": bn, "steps": 2}
    try:
        step = build_step(find_task(task), make_settings({"task": task, **TINY[task], **given}), opened(task), CPU)
    except SettingsError as error:
        return str(error)

    def prepare(number):
        step.seed(0, number)
        step.refresh(lambda: take_snapshot(opened(task), step.model, CPU), due=number == 0)

    reports = fit(step, lambda n: opened(task).batch(n, guide=step.wants_guide), steps=2, before=prepare)
    assert all(np.isfinite([*report.losses, *report.alpha]).all() for report in reports), given
    assert all(parameter.isfinite().all() for parameter in step.model.parameters()), given
    return None


def check(task, cases):
    """Run the cases; every refusal is a known one."""
    found = {case: run(task, *case) for case in cases}
    unknown = {case: sentence for case, sentence in found.items() if sentence and not REFUSED[task].search(sentence)}
    assert not unknown
    return sum(sentence is None for sentence in found.values())


@pytest.mark.parametrize("task", TASKS)
def test_every_pair_of_names_is_covered(task):
    cases = list(covering(task))
    for one, other in combinations(range(4), 2):
        wanted = set(product(FACTORS[task][one], FACTORS[task][other]))
        assert {(case[one], case[other]) for case in cases} == wanted


@pytest.mark.parametrize("scheme", ALL_SCHEMES)
@pytest.mark.parametrize("task", TASKS)
def test_every_pair_runs_or_is_refused(task, scheme):
    taken = check(task, [case for case in covering(task) if case[0] == scheme])
    assert taken > 0 or (task != "classification" and scheme in STRATEGIES)


@pytest.mark.parametrize(("scheme", "method"), UNSUITED)
def test_only_what_the_table_names_is_unsuited(scheme, method):
    assert run("classification", scheme, method, "none", "joint").startswith(f"the scheme {scheme!r}")


@pytest.mark.slow
@pytest.mark.parametrize("scheme", ALL_SCHEMES)
@pytest.mark.parametrize("task", TASKS)
def test_every_combination_runs_or_is_refused(task, scheme):
    check(task, list(product([scheme], *FACTORS[task][1:])))
