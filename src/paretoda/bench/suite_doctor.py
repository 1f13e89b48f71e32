"""The doctor for benchmarks: whether a folder holds exactly the images that the published numbers refer to."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from paretoda.bench.layouts import Facts, Place, find_facts, find_home, find_place
from paretoda.core.options import hint
from paretoda.data.doctor.findings import Finding, attempt
from paretoda.data.labels import shorten_names
from paretoda.data.open.files import FileSamples, find_unreadable

DomainProgress = Callable[[str, int, int], None]
"""Called with the name of a domain, the number of its files that have been examined, and their total."""


@dataclass(frozen=True)
class SuiteReport:
    """What was found.

    Args:
        findings: Findings, errors first; with an error, numbers on this copy do not compare with published ones.
        places: Domain -> its place.
        images: Domain -> number of its images.
        expected: Domain -> number of images that it should have.
    """

    findings: tuple[Finding, ...]
    places: Mapping[str, Place] = field(default_factory=dict)
    images: Mapping[str, int] = field(default_factory=dict)
    expected: Mapping[str, int] = field(default_factory=dict)


def examine_suite(suite: str, folder: Path, progress: DomainProgress | None = None) -> SuiteReport:
    """Compare a copy of a benchmark with what is known about it.

    Args:
        suite: Name of the suite.
        folder: Folder with the domains, or with a folder that has the name of the benchmark.
        progress: Called while files are examined.

    Raises:
        DataError: If nothing is known about the suite.
    """
    facts = find_facts(suite)
    found: list[Finding] = []
    places: dict[str, Place] = {}
    images: dict[str, int] = {}
    home = attempt(partial(find_home, suite, folder), suite, found)
    for domain in () if home is None else facts.images:
        assert home is not None
        place = attempt(partial(find_place, suite, domain, home), domain, found)
        samples = None if place is None else attempt(place.samples, domain, found)
        if place is not None and samples is not None:
            places[domain], images[domain] = place, len(samples)
            found += _check_domain(domain, samples, facts, progress)
    found += _check_layouts(places)
    order = ("error", "warning", "info")
    return SuiteReport(
        tuple(sorted(found, key=lambda finding: order.index(finding.severity))), places, images, facts.images
    )


def _report(progress: DomainProgress, domain: str, _what: str, done: int, total: int) -> None:
    """Pass on the progress of a domain's files."""
    progress(domain, done, total)


def _check_domain(domain: str, samples: FileSamples, facts: Facts, progress: DomainProgress | None) -> list[Finding]:
    assert samples.labels is not None
    counts = Counter(samples.labels.classes[value] for value in samples.labels.values)
    errors = [*_check_classes(domain, counts, facts), *_check_counts(domain, counts, facts)]
    bad = find_unreadable(
        samples.paths,
        range(len(samples)),
        thorough=False,
        progress=None if progress is None else partial(_report, progress, domain),
    )
    if bad:
        names = shorten_names(samples.names(list(bad)))
        errors.append(f"{domain}: {len(bad)} of {len(samples)} image files cannot be read ({names}); copy them again.")
    notes = list(samples.notes)
    if domain not in facts.per_class:
        notes.append(f"How many images each class of {domain} has is not known here: only its total was compared.")
    return [Finding("error", domain, text) for text in errors] + [Finding("info", domain, text) for text in notes]


def _check_classes(domain: str, counts: Mapping[str, int], facts: Facts) -> list[str]:
    said = []
    missing = [name for name in facts.classes if name not in counts]
    strange = sorted(set(counts) - set(facts.classes))
    if missing:
        said.append(
            f"{domain} has no images of {shorten_names(missing)}; unpack the archive again, or rename the folder."
        )
    if strange:
        near = hint(strange[0], missing) if missing else "move it away."
        said.append(f"{domain} has {shorten_names(strange)}, which the benchmark has not; {near}")
    return said


def _check_counts(domain: str, counts: Mapping[str, int], facts: Facts) -> list[str]:
    """Compare the counts of the classes that exist; missing classes are reported elsewhere."""
    known = facts.per_class.get(domain, {})
    wrong = [name for name in known if name in counts and counts[name] != known[name]]
    total, wanted = sum(counts.values()), facts.images[domain]
    if not wrong and (total == wanted or set(counts) != set(facts.classes)):
        return []
    which = shorten_names([f"{name} {counts[name]} instead of {known[name]}" for name in wrong])
    where = f" ({which})" if wrong else ""
    return [f"{domain} has {total} images instead of {wanted}{where}; unpack the archive again, and nothing beside it."]


def _check_layouts(places: Mapping[str, Place]) -> list[Finding]:
    forms = {domain: place.path.is_file() for domain, place in places.items()}
    if len(set(forms.values())) < 2:
        return []
    text = (
        f"{shorten_names([name for name in forms if forms[name]])} come from lists and "
        f"{shorten_names([name for name in forms if not forms[name]])} from folders; make sure that they are of one "
        "release."
    )
    return [Finding("warning", "both", text)]
