"""The module of docs/lightning.md: short, and Lightning's step is `paretoda.backward`'s."""

import copy
import inspect
import re
from pathlib import Path

import pytest
import torch
from torch.nn.functional import cross_entropy
from torch.utils.data import DataLoader, TensorDataset

import paretoda
from paretoda.objectives.alignment.coral import coral
from paretoda.objectives.target.information import missing_information
from paretoda.schemes import Averaged, ParetoDA

PAGE = Path(__file__).parents[2] / "docs" / "lightning.md"
pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore:.*LeafSpec.*deprecated:FutureWarning")]


@pytest.fixture
def code():
    pytest.importorskip("lightning")
    return re.search(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)[1]


def test_the_module_has_forty_lines_at_most(code):
    module = code[code.index("class Adaptation") : code.index("torch.manual_seed")]
    assert len(module.strip().splitlines()) <= 40


def test_a_step_in_lightning_is_a_step_of_our_own(code):
    made = {}
    exec(code[: code.index("torch.manual_seed")], made)
    torch.manual_seed(0)
    x, y = torch.randn(24, 5), torch.arange(8) % 3
    model = made["Adaptation"](5, 3)
    own = copy.deepcopy(model)
    parts = {"source": (x[:8], y), "target": (x[8:16],), "held_out": (x[16:],)}
    loaders = {name: DataLoader(TensorDataset(*rows), 8) for name, rows in parts.items()}
    quiet = inspect.cleandoc(re.search(r"^quiet = .*$", code, re.MULTILINE)[0])
    exec(quiet, made)
    made["lightning"].Trainer(max_steps=2, accelerator="cpu", **made["quiet"]).fit(model, loaders)

    optimiser = torch.optim.SGD(own.parameters(), lr=0.02, momentum=0.9)
    scheme = Averaged(ParetoDA(prior=(1.0, 0.3, 0.3)))
    for _ in range(2):
        source, target, held_out = own.encoder(x).split(8)
        optimiser.zero_grad()
        paretoda.backward(
            [cross_entropy(own.head(source), y), coral(source, target), information(own, target)],
            shared=own.encoder,
            heads=own.head,
            guide=information(own, held_out),
            scheme=scheme,
        )
        optimiser.step()
    torch.testing.assert_close(list(model.parameters()), list(own.parameters()), rtol=1e-4, atol=1e-6)


def information(model, features):
    return missing_information(model.head(features).log_softmax(1))
