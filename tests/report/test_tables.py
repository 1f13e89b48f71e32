"""Tables show every number once, rounded as printed, and hide no failure."""

import csv
import io
from statistics import stdev
from typing import Any

import pytest

from paretoda.report.tables import TableStyle, format_lines, make_notes, make_table, to_csv, to_latex, to_markdown


def row(name: str, task: str, seed: int, value: float | None, **more: Any) -> dict[str, Any]:
    result = {"error": "it broke"} if value is None else {"accuracy": {"chosen": value, "last": value / 2}}
    return {"suite": "s", "task": task, "name": name, "seed": seed, "settings": {"lr": 1}, **result, **more}


ROWS = [
    row("base", "A", 0, 0.50),
    row("base", "A", 1, 0.60),
    row("base", "B", 0, 0.095),
    row("base", "B", 1, 0.105),
    row("new", "A", 0, 0.62),
    row("new", "A", 1, 0.62),
    row("new", "B", 0, 0.0998),
    row("new", "B", 1, None),
    row("cheat", "A", 0, 0.99),
]


def test_cells_are_means_and_sample_deviations() -> None:
    table = make_table(ROWS)
    first, second, total = table.cells("base")
    assert (table.columns, table.rows) == (("A", "B"), ("base", "new", "cheat"))
    assert first == pytest.approx((0.55, stdev([0.5, 0.6]), 2))
    assert second == pytest.approx((0.1, stdev([0.095, 0.105]), 2))
    assert total == pytest.approx((0.325, stdev([0.2975, 0.3525]), 2))
    assert table.cells("new")[-1] == (pytest.approx((0.62 + 0.0998) / 2), None, 1)  # one seed has both tasks
    assert table.cells("cheat")[1:] == [None, None]
    assert make_table(ROWS, kind="last").cells("base")[0] == pytest.approx((0.275, stdev([0.25, 0.3]), 2))


def test_the_best_is_bold_with_ties_at_the_shown_decimal_and_never_an_oracle_or_a_reference() -> None:
    look = TableStyle(oracle=frozenset({"cheat"}), references={"paper": {"A": 0.9, "B": 0.9}, "other": {"A": 0.9}})
    shown = {line.name: line.cells for line in format_lines(make_table(ROWS), look)}
    assert shown["base"] == [("55.0 ± 7.1", False), ("10.0 ± 0.7", True), ("32.5 ± 3.9", False)]
    assert shown["new"] == [("62.0 ± 0.0", True), ("10.0", True), ("36.0", True)]
    assert shown["cheat (oracle)"] == [("99.0", False), ("", False), ("", False)]
    assert shown["paper"] == [("90.0", False), ("90.0", False), ("90.0", False)]
    assert shown["other"] == [("90.0", False), ("", False), ("", False)]


def test_a_published_deviation_stands_beside_its_number_and_the_average_has_none() -> None:
    numbers = {"paper": {"A": 0.955, "B": 0.987}, "other": {"A": 0.9, "B": 0.8}}
    look = TableStyle(references=numbers, reference_stds={"paper": {"A": 0.001}})
    shown = {line.name: [text for text, _ in line.cells] for line in format_lines(make_table(ROWS), look)}
    assert shown["paper"] == ["95.5 ± 0.1", "98.7", "97.1"]
    assert shown["other"] == ["90.0", "80.0", "85.0"]
    assert "| paper | 95.5 ± 0.1 | 98.7 |" in to_markdown(make_table(ROWS), look)
    said = "Published rows have ± where their source prints it"
    assert said in " ".join(make_notes(make_table(ROWS), look))
    assert said not in " ".join(make_notes(make_table(ROWS), TableStyle(references=numbers)))


def test_nine_is_less_than_ten() -> None:
    shown = format_lines(make_table([row("a", "A", 0, 0.095), row("b", "A", 0, 0.62)]))
    assert [line.cells[0][1] for line in shown] == [False, True]


def test_failures_are_counted_and_a_later_row_replaces_an_earlier() -> None:
    assert make_table(ROWS).failed == {"new": 1}
    assert "Failed runs, which are missing: 1 (new: 1)." in make_notes(make_table(ROWS))
    again = make_table([*ROWS, row("new", "B", 1, 0.2)])
    assert again.failed == {}
    assert again.values["new", "B"] == {0: 0.0998, 1: 0.2}
    assert make_table([row("a", "A", 0, float("nan"))]).failed == {"a": 1}


def test_two_settings_of_one_run_are_not_chosen_between_silently() -> None:
    with pytest.raises(ValueError, match="different settings"):
        make_table([row("a", "A", 0, 0.1), row("a", "A", 0, 0.9, settings={"lr": 2})])


def test_per_cents_are_refused_and_so_is_an_unknown_base() -> None:
    with pytest.raises(ValueError, match="fractions"):
        make_table([row("a", "A", 0, 62.0)])
    with pytest.raises(ValueError, match="no row is called 'x'"):
        format_lines(make_table(ROWS), TableStyle(base="x"))


def test_suites_with_the_same_task_keep_their_columns_apart() -> None:
    table = make_table([row("a", "A", 0, 0.1), row("a", "A", 0, 0.2, suite="t")])
    assert table.columns == ("s: A", "t: A")


def test_marks_say_better_worse_and_when_nothing_can_be_said() -> None:
    gains = {"base": 0.5, "up": 0.6, "down": 0.4}
    rows = [row(name, f"T{t}", 0, gain) for name, gain in gains.items() for t in range(8)]
    look = TableStyle(base="base")
    assert [line.cells[-1][0] for line in format_lines(make_table(rows), look)] == ["50.0", "60.0†", "40.0‡"]
    assert "cannot" not in make_notes(make_table(rows), look)[1]
    few = make_table([r for r in rows if r["task"] in ("T0", "T1", "T2")])
    assert [line.cells[-1][0] for line in format_lines(few, look)] == ["50.0", "60.0", "40.0"]
    assert "so few tasks for 2 comparisons cannot reach it" in make_notes(few, look)[1]


def test_other_measures_are_read_by_their_key() -> None:
    table = make_table([row("a", "A", 0, 0.1, mean_class_accuracy={"chosen": 0.3})], measure="mean_class_accuracy")
    assert table.values == {("a", "A"): {0: 0.3}}
    assert "mean class accuracy (oracle)" in table.caption


def test_markdown_is_a_table_whatever_the_names_are() -> None:
    text = to_markdown(make_table([row("a|b*\n<i>", "A_1", 0, 0.5)]), TableStyle(references={"paper": {}}))
    assert text.splitlines()[:5] == [
        "|  | A\\_1 | average |",
        "| --- | ---: | ---: |",
        "| a\\|b\\* \\<i\\> | **50.0** | **50.0** |",
        "| *published* |  |  |",
        "| paper |  |  |",
    ]


def test_latex_escapes_every_special_letter() -> None:
    text = to_latex(make_table([row(r"50% & \x_{1}^~#$", "A", 0, 0.5), row("b", "A", 0, 0.1), row("b", "A", 1, 0.3)]))
    assert r"50\% \& \textbackslash{}x\_\{1\}\textasciicircum{}\textasciitilde{}\#\$ & \textbf{50.0}" in text
    assert r"b & 20.0 $\pm$ 14.1 & 20.0 $\pm$ 14.1 \\" in text
    assert text.index(r"\toprule") < text.index(r"\midrule") < text.index(r"\bottomrule")


def test_csv_has_every_cell_unrounded() -> None:
    read = list(csv.DictReader(io.StringIO(to_csv(make_table([*ROWS, row('q"u,o', "A", 0, 1 / 3)])))))
    assert [line["name"] for line in read] == ["base", "new", "cheat", 'q"u,o']
    assert float(read[3]["A mean"]) == 1 / 3
    assert (read[3]["A std"], read[3]["A n"], read[3]["B mean"], read[3]["B n"]) == ("", "1", "", "0")
    assert (read[1]["failed"], read[0]["average n"]) == ("1", "2")
