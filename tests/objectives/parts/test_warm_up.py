import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paretoda.objectives.parts.discriminator import warm_up


@given(st.floats(0, 1))
def test_it_is_the_curve_of_the_paper(progress):
    assert warm_up(progress) == pytest.approx(2 / (1 + math.exp(-10 * progress)) - 1, abs=1e-15)


@pytest.mark.parametrize(
    ("step", "strength"), [(0, 0), (1000, 0.462117), (2000, 0.76159), (5000, 0.98661), (10000, 0.99991)]
)
def test_the_values_of_the_specification(step, strength):
    assert warm_up(step / 10000) == pytest.approx(strength, abs=6e-6)


@pytest.mark.parametrize("progress", [-0.1, 1.1, math.nan])
def test_a_share_outside_of_the_training_is_refused(progress):
    with pytest.raises(ValueError, match="share of the training"):
        warm_up(progress)
