"""Steps that one or several processes take: small networks in float64, and the processes that take them."""

from __future__ import annotations

import os
import socket
from contextlib import contextmanager
from dataclasses import dataclass

import torch
from torch import distributed as dist
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard

from paretoda.distributed.collectives import SINGLE_PROCESS, current_processes
from paretoda.objectives import CrossEntropy, make_alignment, make_guide, make_target_loss
from paretoda.schemes import MGDA, Linear, ParetoPaper
from paretoda.training.step import Step
from paretoda.types import Batch, Model

SCHEMES = {"guided": ParetoPaper, "mgda": MGDA, "linear": Linear}


@dataclass(frozen=True)
class Case:
    """One way to train."""

    alignment: str = "dann"
    target: str = "tcm"
    scheme: str = "guided"
    voting: str = "all"
    bn: str = "joint"
    encoder: str = "norm"
    rows: tuple[int, int, int] = (12, 12, 12)
    sync_bn: bool = True
    sharded: bool = False
    steps: int = 3


ENCODERS = {
    "norm": lambda: nn.Sequential(
        nn.Linear(5, 9), nn.BatchNorm1d(9), nn.Tanh(), nn.Sequential(nn.Linear(9, 6), nn.BatchNorm1d(6))
    ),
    "plain": lambda: nn.Sequential(nn.Linear(5, 9), nn.Tanh(), nn.Linear(9, 6)),
    "dropout": lambda: nn.Sequential(
        nn.Linear(5, 9), nn.BatchNorm1d(9, momentum=None), nn.Tanh(), nn.Dropout(0.4), nn.Linear(9, 6)
    ),
    "images": lambda: nn.Sequential(
        nn.Unflatten(1, (1, 5)), nn.Conv1d(1, 4, 2), nn.BatchNorm1d(4), nn.Dropout1d(0.3), nn.Tanh(), nn.Flatten(),
        nn.Linear(16, 6),
    ),
    "body and last": lambda: nn.Sequential(
        nn.Sequential(nn.Linear(5, 9), nn.BatchNorm1d(9), nn.Tanh(), nn.Dropout(0.3)), nn.Linear(9, 6)
    ),
}  # fmt: skip

CASES = {
    "dann": Case(),
    "cdan, uneven": Case("cdan", rows=(7, 7, 7)),
    "mdd": Case("mdd", "mcc"),
    "dan, uneven": Case("dan", "im", rows=(7, 8, 5)),
    "mcd lowers twice": Case("mcd", encoder="plain"),
    "last": Case(voting="last"),
    "last, cdan, per domain, uneven": Case("cdan", voting="last", bn="per-domain", rows=(7, 7, 5)),
    "last, mdd": Case("mdd", voting="last", encoder="dropout"),
    "per domain": Case(bn="per-domain"),
    "dropout": Case(encoder="dropout", rows=(7, 9, 8)),
    "dropout per domain": Case(encoder="dropout", bn="per-domain", rows=(7, 7, 7)),
    "channels dropped": Case(encoder="images", rows=(7, 7, 7)),
    "no guide": Case(scheme="mgda", encoder="plain"),
    "one pass": Case(scheme="linear"),
    "unsynchronised": Case(sync_bn=False),
    "one pass, no norm": Case("mdd", scheme="linear", encoder="plain", rows=(7, 7, 7)),
    "sharded": Case(voting="last", encoder="body and last", rows=(7, 7, 5), sharded=True),
    "sharded, per domain": Case("mcd", voting="last", bn="per-domain", encoder="body and last", sharded=True),
    "sharded, one pass": Case(scheme="linear", voting="last", encoder="body and last", sharded=True),
}


def make_step(case: Case, processes=SINGLE_PROCESS) -> Step:
    torch.manual_seed(0)
    model = Model(ENCODERS[case.encoder](), nn.Linear(6, 3)).double()
    if case.sharded and processes.size > 1:
        fully_shard(model.encoder[0], mesh=init_device_mesh("cpu", (processes.size,)))
    shape = {"features": 6, "classes": 3}
    objectives = {
        "source": CrossEntropy(**shape),
        "alignment": make_alignment(case.alignment, **shape),
        "target": make_target_loss(case.target, **shape),
    }
    guide_name = "tcm" if case.target == "tcm" else "im"
    guide = make_guide(guide_name, **shape, target_loss=objectives["target"]) if case.scheme == "guided" else None
    for objective in objectives.values():
        objective.double()
    own = [p for objective in objectives.values() for p in objective.parameters()]
    groups = [{"params": list(part.parameters()), "lr": 0.05} for part in model.encoder if list(part.parameters())]
    groups.append({"params": [*model.head.parameters(), *own]})
    return Step(
        model,
        objectives,
        SCHEMES[case.scheme](),
        torch.optim.SGD(groups, lr=0.1, momentum=0.9),
        guide=guide if guide is None else guide.double(),
        bn=case.bn,
        voting=case.voting,
        processes=processes,
        sync_bn=case.sync_bn,
    )


def joint_batch(case: Case, index: int, processes=SINGLE_PROCESS) -> Batch:
    """The process's share of a batch."""
    generator = torch.Generator().manual_seed(index)
    source, target, guide = (torch.randn(n, 5, generator=generator).double() + i for i, n in enumerate(case.rows))
    own, other, held = (processes.share(n) for n in case.rows)
    places = [torch.arange(n) for n in case.rows]
    return Batch(
        source[own], (places[0] % 3)[own], target[other], guide[held], places[0][own], places[1][other], places[2][held]
    )


def taken(step: Step, case: Case, processes=SINGLE_PROCESS) -> dict[str, torch.Tensor]:
    """All numbers after some steps."""
    reports = []
    for index in range(case.steps):
        torch.manual_seed(100 + index)
        step.advance(index / case.steps)
        report = step(joint_batch(case, index, processes))
        reports.append(torch.tensor([*report.losses, *report.alpha, report.guide_loss or 0.0]))
    state = step.modules().state_dict()
    whole = {key: value.full_tensor() if hasattr(value, "full_tensor") else value for key, value in state.items()}
    return {"reports": torch.stack(reports), **whole}


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


@contextmanager
def group(rank: int, size: int, port: int):
    torch.set_num_threads(1)
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
    dist.init_process_group("gloo", rank=rank, world_size=size)
    yield current_processes()
    dist.barrier()
    dist.destroy_process_group()


def refusals(processes) -> dict[str, str]:
    """What several processes are told that they cannot do."""
    exact = Case(encoder="body and last", sharded=True)
    plain = make_step(Case(encoder="plain"), processes)
    found = {"exact": _refused(lambda: taken(make_step(exact, processes), exact, processes))}
    torch.manual_seed(processes.rank)
    found["chance"] = _refused(lambda: plain(joint_batch(Case(), 0, processes)))
    return found


def _refused(work) -> str:
    try:
        work()
    except ValueError as error:
        return str(error)
    return "nothing"


def take_all(rank: int, size: int, port: int, folder: str) -> None:
    """Every case, in one process of several."""
    found = {}
    with group(rank, size, port) as processes:
        for name, case in CASES.items():
            print(f"rank {rank}: {name}", flush=True)
            found[name] = taken(make_step(case, processes), case, processes)
        found["refusals"] = refusals(processes)
    torch.save(found, f"{folder}/{rank}.pt")
