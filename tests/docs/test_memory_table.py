"""docs/memory.md prints the table of combinations that the code refuses by."""

from pathlib import Path

from paretoda.run.compatibility import REFUSED, markdown_table

PAGE = Path(__file__).parents[2] / "docs" / "memory.md"


def test_the_documented_table_is_the_codes():
    assert "\n".join(markdown_table()) in PAGE.read_text(encoding="utf-8")


def test_every_refusal_is_explained():
    text = " ".join(PAGE.read_text(encoding="utf-8").split())
    for names in REFUSED:
        assert all(name.removeprefix("scheme ").split(" 16")[0] in text for name in names)
