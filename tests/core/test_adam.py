import numpy as np
import pytest

from paretoda.core.adam import Adam


def test_the_first_step_has_the_length_of_the_rate():
    assert Adam.start(1.0, 3).step(np.array([5.0, -0.01, 0.0]), rate=0.1).values == pytest.approx([0.9, 1.1, 1.0])


@pytest.mark.parametrize("decay", [0.0, 0.1])
def test_it_takes_the_steps_of_torch(decay):
    torch = pytest.importorskip("torch")
    slopes = np.random.default_rng(0).normal(size=(20, 3))
    values = torch.nn.Parameter(torch.full((3,), 0.5, dtype=torch.float64))
    reference = torch.optim.Adam([values], lr=0.03, weight_decay=decay)
    ours = Adam.start(0.5, 3)
    for slope in slopes:
        values.grad = torch.tensor(slope)
        reference.step()
        ours = ours.step(slope, 0.03, decay)
    assert ours.values == pytest.approx(values.detach().numpy(), rel=1e-9)
