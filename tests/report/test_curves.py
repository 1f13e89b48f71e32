"""Curves stay inside their frame, whatever the values."""

import re

from hypothesis import given
from hypothesis import strategies as st

from paretoda.report.curves import chart, thinned, ticks

numbers = st.floats(-1e12, 1e12, allow_nan=False)


@given(st.lists(numbers, min_size=1, max_size=20))
def test_ticks_are_round_rising_and_span_the_values(values: list[float]) -> None:
    marks = ticks(values)
    span = marks[-1] - marks[0]
    assert marks == sorted(set(marks))
    assert 2 <= len(marks) <= 12
    assert marks[0] <= min(values) + 1e-9 * span
    assert max(values) <= marks[-1] + 1e-9 * span


@given(st.lists(st.tuples(st.integers(1, 10_000), numbers), min_size=1, max_size=30))
def test_every_point_is_inside_the_picture(points: list[tuple[int, float]]) -> None:
    picture = str(chart({"a": points}, label="a", dots=True))
    for x, y in re.findall(r'cx="([^"]+)" cy="([^"]+)"', picture):
        assert 0 <= float(x) <= 640
        assert 0 <= float(y) <= 240


@given(st.integers(1, 2000))
def test_thinning_keeps_the_mean_and_the_limits(count: int) -> None:
    points = [(float(step), float(step % 7)) for step in range(1, count + 1)]
    thin = thinned(points, 100)
    assert len(thin) <= 100
    assert thin == points or len(points) > 100
    assert all(0 <= y <= 6 and 1 <= x <= count for x, y in thin)
