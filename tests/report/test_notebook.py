"""What a notebook shows of a run and of a step: all that matters, escaped, without script or network."""

from html.parser import HTMLParser

import numpy as np
import pytest
from report.test_hostile_names import EVIL

from paretoda.core.problem import Move
from paretoda.gradients import Report
from paretoda.report.notebook import CellFacts, draw_spark, render_run_cell
from paretoda.run.result import Run
from paretoda.tasks.settings import make_settings

ALLOWED = {"div", "p", "b", "br", "small", "table", "tr", "th", "td", "ul", "li", "svg", "polyline"}
ATTRIBUTES = {"style", "width", "height", "viewbox", "role", "points", "fill", "stroke", "stroke-width"}


class Tags(HTMLParser):
    """All tags, attributes and texts."""

    def __init__(self, page):
        super().__init__()
        self.tags, self.attributes, self.texts = set(), set(), []
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        self.tags.add(tag)
        self.attributes |= {name for name, _ in attrs}

    def handle_data(self, data):
        self.texts.append(data)


def line(step, names, value=1.0):
    return {"step": step, "losses": dict.fromkeys(names, value), "weights": dict.fromkeys(names, 2.0), "move": "guided"}


def result(**changed):
    names = ("source", "alignment")
    given = {
        "settings": make_settings({"method": "dann+im", "steps": 3}),
        "classes": ("ant", "bee"),
        "history": [line(step, names, 1 / step) for step in (1, 2, 3)],
        "scores": {"im": 0.5, "dev": -0.25},
        "candidates": [],
        "chosen": 2,
        "sentences": ("By im: step 2.", "Adaptation may have made the model worse."),
        "negative_transfer": "Adaptation may have made the model worse.",
    }
    models = dict.fromkeys(("model", "source_models", "last"))
    return Run(**(models | given | changed))


def test_a_run_shows_its_choice_scores_losses_and_warnings():
    page = result()._repr_html_()
    told = " ".join(Tags(page).texts)
    for wanted in (
        "dann+im, scheme paretoda",
        "step 2 of 3",
        "ant, bee",
        "0.5000",
        "-0.2500",
        "sure, diverse and wrong",
    ):
        assert wanted in told
    for wanted in ("alignment", "0.333", "By im: step 2."):
        assert wanted in told
    assert "<b>Adaptation may have made the model worse.</b>" in page
    assert page.count("<polyline") == 2


def test_its_plain_form_is_one_short_line():
    assert repr(result()) == ("<Run: dann+im, scheme paretoda; the model after step 2 of 3 was kept>")
    assert len(repr(result(classes=tuple(map(str, range(1000)))))) < 100


def test_there_is_no_minus_zero():
    history = [line(1, ("source",), -0.0), line(2, ("source",), -1e-9)]
    told = Tags(result(history=history, scores={"dev": -1e-6})._repr_html_()).texts
    assert "0" in told
    assert "0.0000" in told
    assert "-1e-09" in told
    assert not {"-0", "-0.0000"} & set(told)


def test_many_classes_are_cut_short():
    told = result(classes=tuple(f"class {number}" for number in range(100)))._repr_html_()
    assert "100 classes" in told
    assert "class 50" not in told


@pytest.mark.parametrize("missing", [{"scores": {}}, {"history": []}, {"sentences": ()}])
def test_what_is_not_there_is_left_out(missing):
    assert Tags(result(**missing)._repr_html_()).tags <= ALLOWED


@pytest.mark.parametrize("name", EVIL)
def test_hostile_names_are_text(name):
    facts = CellFacts(name, name, [line(1, EVIL), line(2, EVIL)], dict.fromkeys(EVIL, 0.1), EVIL, name)
    report = Report(EVIL, np.ones(8), np.ones(8) / 8, Move.GUIDED, np.eye(8), 0.5, np.ones(8))
    for page in (render_run_cell(facts), report._repr_html_()):
        found = Tags(page)
        assert found.tags <= ALLOWED
        assert found.attributes <= ATTRIBUTES
        assert name in found.texts
    evil_classes = result(classes=(name,))._repr_html_()
    assert Tags(evil_classes).tags <= ALLOWED
    assert name in " ".join(Tags(evil_classes).texts)


def test_a_spark_stays_inside_and_leaves_out_what_is_not_finite():
    points = [(step, value) for step, value in enumerate([1.0, float("nan"), 3.0, float("inf"), 2.0])]
    drawn = str(draw_spark(points))
    inside = drawn.partition('points="')[2].partition('"')[0]
    places = [tuple(map(float, place.split(","))) for place in inside.split()]
    assert places == [(0.0, 22.0), (70.0, 2.0), (140.0, 12.0)]
    assert str(draw_spark([(1, float("nan"))])) == ""


def test_a_report_shows_losses_weights_and_cosines():
    report = Report(
        ("a", "b"), np.array([0.5, 2.0]), np.array([0.25, 0.75]), Move.DESCENT, np.array([[1, -0.5], [-0.5, 1]])
    )
    told = Tags(report._repr_html_()).texts
    assert told == [
        "loss",
        "value",
        "weight",
        "cos a",
        "cos b",
        *["a", "0.5", "0.5", "1.00", "-0.50", "b", "2", "1.5", "-0.50", "1.00"],
        "descent",
    ]
    plain = Report(("a",), np.ones(1), np.ones(1), Move.FIXED, guide_loss=0.25, finite=False)
    assert Tags(plain._repr_html_()).texts[-1] == "fixed; guide 0.25; not finite, left to the gradient scaler"
