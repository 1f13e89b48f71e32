"""The model card: what a hub reads of it, its warning, and names that are only text."""

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from paretoda.report.card import CardFacts, escape_markdown, render_model_card
from paretoda.report.facts import RunFacts
from paretoda.run.settings import Settings

markdown = pytest.importorskip("markdown", reason="Markdown comes with the extra docs")
yaml = pytest.importorskip("yaml", reason="YAML comes with the extra docs")

EVIL = "<script>alert(1)</script> | [x](javascript:alert(1)) ![](http://evil) `rm` **b** _i_ \x1b[31m\u202e\n---\n# no"


def facts(**changes):
    given = {
        "title": "ParetoDA run r",
        "settings": Settings().model_dump(),
        "environment": {"paretoda": "1", "torch": "2", "platform": "secret"},
        "history": [],
        "chosen": 30,
        "scores": {"im": 1.5, "dev": float("nan"), "entropy": None},
        "sentences": ["Beware."],
        "predictions": [("a", "b", 0.5)],
        "inputs": {"source": "/home/me/secret/photos.npz", "target": "in memory"},
    }
    return RunFacts(**{**given, **changes})


def head(text):
    return yaml.safe_load(re.match(r"---\n(.*?)\n---\n", text, re.DOTALL)[1])


def body(text):
    return markdown.markdown(text.split("---\n", 2)[2], extensions=["tables", "fenced_code"])


def test_the_hub_finds_library_task_and_tags():
    found = head(render_model_card(facts(), CardFacts(["cat", "dog"], "image-classification")))
    assert found["library_name"] == "paretoda"
    assert found["pipeline_tag"] == "image-classification"
    assert {"domain-adaptation", "dann", "paretoda"} <= set(found["tags"])
    assert "license" not in found


def test_scores_come_with_their_warning_and_paths_without_their_folders():
    text = render_model_card(facts(), CardFacts(["cat", "dog"], "tabular-classification", 1.25))
    assert "These scores are no accuracy" in text
    assert "| im | 1.5000 |" in text
    assert text.count("not finite") == 2
    assert "photos.npz" in text
    assert "secret" not in text
    assert "temperature 1.25" in text
    assert "Scores" not in render_model_card(facts(scores={}), CardFacts(["cat", "dog"], "tabular-classification"))


def test_many_classes_are_counted_and_not_all_listed():
    text = render_model_card(facts(), CardFacts([f"c{k}" for k in range(1000)], "image-classification"))
    assert "1000 classes" in text
    assert "and 800 more" in text
    assert "c999" not in text


def test_names_that_want_to_be_more_stay_text():
    changes = {"title": EVIL, "sentences": [EVIL], "inputs": {"source": EVIL, "target": EVIL}}
    page = body(render_model_card(facts(**changes), CardFacts([EVIL, "b"], "image-classification")))
    assert not re.search(r"<(script|img|a)\b", page)
    assert page.count("<em>") == 1, "our own"
    assert "\x1b" not in page
    assert "\u202e" not in page
    assert page.count("<h1>") == 1
    assert len(re.findall(r"<strong>", page)) == 1, "the warning alone"


@settings(max_examples=40, deadline=None)
@given(st.text(max_size=40))
def test_any_text_is_one_line_that_can_be_written(text):
    found = escape_markdown(text)
    assert "\n" not in found
    found.encode("utf-8")
    plain = markdown.markdown(f"x {found}")
    assert plain.startswith("<p>x")
    assert not re.search(r"<(?!/?p>)", plain)


@pytest.mark.parametrize("name", ["- a", "1. a", "www.evil.org", "+ a", "# a", "> a", "12) a"])
def test_no_name_begins_a_list_or_a_link(name):
    assert body(f"---\n---\n- {escape_markdown(name)}").count("<") == 4 or name.startswith("www")
    assert escape_markdown("www.evil.org") == "www\\.evil.org"
