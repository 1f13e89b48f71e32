"""Lines of jobs: in order, the last of each, under the jobs' names; what failed is missing."""

from dataclasses import dataclass

from paretoda.bench.jobs import collect_results, find_missing


@dataclass(frozen=True)
class Made:
    key: str
    name: str = "ö"
    steps: int = 1

    @property
    def line(self):
        return {"key": self.key, "name": self.name}


def row(key, **more):
    return {"key": key, "name": "ö", **more}


def test_of_a_run_that_was_made_twice_the_last_counts():
    rows = [row("a", error="died"), row("b", value=1), row("a", value=2)]
    assert collect_results(rows, [Made("b"), Made("a"), Made("c")]) == [row("b", value=1), row("a", value=2)]


def test_a_result_has_the_name_that_its_job_has_now():
    assert collect_results([row("a", value=1)], [Made("a", "new")]) == [{"key": "a", "name": "new", "value": 1}]


def test_what_failed_or_was_never_made_is_missing_and_each_once():
    rows = [row("a", value=1), row("b", value=1), row("b", error="died")]
    jobs = [Made("a"), Made("b"), Made("c"), Made("c", "the same")]
    assert find_missing(rows, jobs) == [Made("b"), Made("c")]
