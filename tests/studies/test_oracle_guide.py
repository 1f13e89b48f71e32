"""The ideal guide knows target labels, so no setting can name it."""

import pytest
import torch
from torch.nn import functional

from paretoda.errors import SettingsError
from paretoda.evaluation import oracle
from paretoda.evaluation.oracle import OracleGuide, OracleLabels
from paretoda.objectives import ALIGNMENTS, GUIDES, TARGET_LOSSES
from paretoda.tasks.settings import make_settings
from paretoda.types import Source, Target


@pytest.mark.parametrize("name", ["oracle", "Oracle", "oracle-guide", "OracleGuide"])
def test_no_setting_names_the_oracle(name: str) -> None:
    for field in ("guide", "target_loss", "method", "select"):
        with pytest.raises(SettingsError, match=r"unknown|no "):
            make_settings({field: name})


def test_no_table_holds_it() -> None:
    for table in (GUIDES, TARGET_LOSSES, ALIGNMENTS):
        assert not {OracleGuide, OracleLabels} & set(table.values())
    assert OracleGuide.__module__ == oracle.__name__


def test_it_is_the_cross_entropy_of_the_samples_that_the_index_names() -> None:
    labels = torch.tensor([2, 0, 1, 1])
    logits = torch.randn(2, 3, generator=torch.Generator().manual_seed(0))
    source = Source(torch.zeros(1, 2), torch.zeros(1, 3), torch.zeros(1, dtype=torch.long), labels=torch.tensor([0]))
    held = Target(torch.zeros(2, 2), logits, torch.tensor([3, 0]))
    guide = OracleGuide(labels)
    assert guide(source, held) == functional.cross_entropy(logits, torch.tensor([1, 2]))
    assert not guide.state_dict()


def test_the_control_learns_from_the_known_samples_alone() -> None:
    logits = torch.randn(3, 3, generator=torch.Generator().manual_seed(1), requires_grad=True)
    source = Source(torch.zeros(1, 2), torch.zeros(1, 3), torch.zeros(1, dtype=torch.long), labels=torch.tensor([0]))
    control = OracleLabels(torch.tensor([-1, 2, -1, 0]))
    batch = Target(torch.zeros(3, 2), logits, torch.tensor([0, 3, 1]))
    loss = control(source, batch)
    assert torch.allclose(loss, functional.cross_entropy(logits[1:], torch.tensor([0, 2])))
    (gradient,) = torch.autograd.grad(loss, logits)
    assert not gradient[0].any()
    assert control(source, Target(torch.zeros(1, 2), logits[:1], torch.tensor([2]))).item() == 0
