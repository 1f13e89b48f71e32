"""Inner products over many tensors are exact to float64."""

import numpy as np
import pytest
import torch

from paretoda.gradients import gram


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16, torch.float16])
def test_it_is_the_float64_product_of_the_stacked_rows(dtype):
    torch.manual_seed(0)
    shapes = [(3, 70_001), (5,), (), (2, 3, 4)]
    rows = [[torch.randn(shape).to(dtype) for shape in shapes] for _ in range(4)]
    rates = [0.5, 1.0, 2.0, 0.0]
    flat = np.stack(
        [
            np.concatenate([np.sqrt(r) * t.double().numpy().ravel() for t, r in zip(row, rates, strict=True)])
            for row in rows
        ]
    )
    assert gram(rows, rates).numpy() == pytest.approx(flat @ flat.T, rel=1e-12, abs=1e-9)


def test_missing_tensors_count_as_zero_and_stay_in_their_place():
    a, b = torch.tensor([1.0, 2.0]), torch.tensor([[3.0]])
    result = gram([[a, None], [None, b], [a, b], [None, None]], [1.0, 1.0])
    assert result.tolist() == [[5, 0, 5, 0], [0, 9, 9, 0], [5, 9, 14, 0], [0, 0, 0, 0]]


def test_expanded_and_strided_tensors_are_read_right():
    ones = torch.ones(1).expand(6).reshape(2, 3)
    strided = torch.arange(12.0).reshape(3, 4)[:, ::2].T
    assert gram([[ones], [strided]], [1.0])[0, 1] == strided.sum()


def test_float32_squares_that_would_overflow_do_not():
    row = [torch.full((10,), 1e30)]
    assert gram([row], [1.0]).item() == pytest.approx(1e61, rel=1e-6)
