"""Tables as CSV: every text comes back, and none begins as a formula."""

import csv
import io

from hypothesis import example, given
from hypothesis import strategies as st

from paretoda.io.csv_cells import csv_text, unescape_cell

texts = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=20)


@given(st.lists(st.lists(texts, min_size=2, max_size=2), max_size=5))
@example([["=cmd|' /C calc'!A0", "'=x"], ["''+1 2", "-1"], ["a\nb", 'say "hi", you'], ["\r", "\t=1"], ["@x", "+49 1"]])
def test_every_text_comes_back_and_no_cell_is_a_formula(rows: list[list[str]]) -> None:
    text = csv_text(rows)
    read = list(csv.reader(io.StringIO(text, newline="")))
    assert [[unescape_cell(cell) for cell in row] for row in read] == rows
    for row in read:
        for cell in row:
            assert not cell.startswith(("=", "@", "\t", "\r"))
            assert not cell.startswith(("+", "-")) or float(cell) is not None


def test_numbers_and_ordinary_names_stay_as_they_are() -> None:
    assert csv_text([["name", -1.5, None], ["-3", "a b", "it's"]]) == "name,-1.5,\n-3,a b,it's\n"
