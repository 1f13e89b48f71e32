"""A run with self-training says how many pixels it taught and how many it ignored."""

import re

import pytest
from tasks.segmentation.conftest import QUICK

from paretoda import segment


@pytest.mark.parametrize(("options", "joined"), [((), True), (("alignment.lrent=0.25",), False)])
def test_the_share_of_ignored_pixels_is_said(streets, options, joined):
    source, target, _ = streets
    given = {**QUICK, "options": ["alignment.rounds=1", *options], "joined": joined}
    (said,) = (line for line in segment(source, target, method="cbst", **given).sentences if "ignored" in line)
    taught, ignored = map(float, re.findall(r"([\d.]+)%", said))
    assert taught + ignored == pytest.approx(100, abs=0.11)
    assert 5 < taught < 60, "a fifth of every class, before the largest ratio decides"


def test_a_run_that_ends_before_the_first_round_says_so_and_others_say_nothing(streets):
    source, target, _ = streets
    given = {**QUICK, "steps": 1, "select": "last"}
    said = segment(source, target, method="cbst", **given).sentences
    assert any("ended before the first round" in line for line in said)
    assert not any("round" in line for line in segment(source, target, method="minent", **given).sentences)
