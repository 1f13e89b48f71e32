"""Curves stay inside their frame, whatever the values."""

import re
from importlib.resources import files
from math import isnan, nan

from hypothesis import given
from hypothesis import strategies as st

from paretoda.report.charts import (
    COLOURS,
    HEIGHT,
    WIDTH,
    draw_chart,
    frame_edges,
    round_ticks,
    smooth_points,
    thin_points,
    value_limits,
)

numbers = st.floats(-1e12, 1e12, allow_nan=False)


@given(st.lists(numbers, min_size=1, max_size=20))
def test_ticks_are_round_rising_and_span_the_values(values: list[float]) -> None:
    marks = round_ticks(values)
    span = marks[-1] - marks[0]
    assert marks == sorted(set(marks))
    assert 2 <= len(marks) <= 12
    assert marks[0] <= min(values) + 1e-9 * span
    assert max(values) <= marks[-1] + 1e-9 * span


@given(st.lists(st.tuples(st.integers(1, 10_000), numbers), min_size=1, max_size=30))
def test_every_point_is_inside_the_picture(points: list[tuple[int, float]]) -> None:
    picture = str(draw_chart({"a": points}, label="a", dots=True))
    for x, y in re.findall(r'cx="([^"]+)" cy="([^"]+)"', picture):
        assert 0 <= float(x) <= WIDTH
        assert 0 <= float(y) <= HEIGHT


@given(st.integers(1, 2000))
def test_thinning_keeps_the_mean_and_the_limits(count: int) -> None:
    points = [(float(step), float(step % 7)) for step in range(1, count + 1)]
    thin = thin_points(points, 100)
    assert len(thin) <= 100
    assert thin == points or len(points) > 100
    assert all(0 <= y <= 6 and 1 <= x <= count for x, y in thin)


@given(st.lists(numbers, min_size=1, max_size=30))
def test_the_frame_holds_its_limits_and_has_marks(values: list[float]) -> None:
    low, high = value_limits(values)
    bottom, top, marks = frame_edges(low, high)
    assert bottom <= low <= high <= top
    assert bottom < top
    assert marks
    assert all(bottom <= mark <= top for mark in marks)


def test_an_outlier_stands_at_the_edge_and_is_told() -> None:
    plain = [(float(step), float(step % 5)) for step in range(1, 101)]
    assert "beyond the frame" not in draw_chart({"a": plain}, label="a")
    assert value_limits([y for _, y in plain]) == (0, 4)
    picture = draw_chart({"a": [*plain, (101.0, 1e6)]}, label="a")
    assert "1 of 101 values lie beyond the frame" in picture
    assert "the farthest is 1e+06" in picture


def test_the_running_median_ignores_a_spike_and_keeps_gaps() -> None:
    points = [(float(step), 1.0) for step in range(100)]
    points[50], points[70] = (50.0, 1e9), (70.0, nan)
    smooth = smooth_points(points)
    assert [x for x, _ in smooth] == [x for x, _ in points]
    assert isnan(smooth[70][1])
    assert {y for x, y in smooth if x != 70} == {1.0}


def test_the_style_sheet_has_every_colour_in_light_and_dark() -> None:
    style = (files("paretoda.report") / "templates" / "style.css").read_text(encoding="utf-8")
    for place in range(COLOURS):
        assert len(re.findall(rf"--c{place}:#", style)) == 2
        assert f".c{place}{{stroke" in style
    assert f"--c{COLOURS}:" not in style
