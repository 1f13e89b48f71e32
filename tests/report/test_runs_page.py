"""The page of several runs shows what differs, and says where labels were used."""

from dataclasses import replace

from report.test_page import EVIL, facts, tags

from paretoda.report.confusion import Confusion
from paretoda.report.facts import Pictures
from paretoda.report.page import render_runs_page


def test_what_differs_is_in_the_table_and_what_does_not_is_below() -> None:
    plain = facts()
    other = replace(plain, settings={**plain.settings, "scheme": "mgda-like"}, inputs={"target": "/d/t"}, history=[])
    page = render_runs_page({"one": plain, EVIL: other}, title="two")
    head, _, below = page.partition("Settings that all runs share")
    assert "mgda-like" in head
    assert "mgda-like" not in below
    assert "<th>scheme</th>" in head
    assert "<th>seed</th>" not in head
    assert "<td>/d/t</td>" in head
    assert "<script" not in page
    assert "oracle" not in page.partition("<body>")[2].lower()
    assert sum(tag == "svg" for tag, _ in tags(page)) == 2


def test_oracle_numbers_are_called_so() -> None:
    told = Confusion("target (oracle)", ("a", "b"), ((3, 1), (0, 4)), oracle=True)
    page = render_runs_page(
        {"one": replace(facts(), pictures=Pictures(confusions=[told])), "two": facts()}, title="two"
    )
    assert "oracle accuracy, target, %" in page
    assert "87.5" in page
    assert "never for training or choosing" in page
