"""The published benchmarks on disk: domains, classes, image counts, where people keep them, and a check of a copy."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache, partial
from pathlib import Path

from paretoda.core.options import hint, name_some, unknown
from paretoda.data.doctor.findings import Finding, attempt
from paretoda.data.open.decoding import ARCHIVES
from paretoda.data.open.files import FileSamples, find_unreadable
from paretoda.data.open.folders import find_images, list_visible_folders, open_labelled_folder
from paretoda.data.open.lists import open_list
from paretoda.data.samples import labels_from_names
from paretoda.errors import DataError
from paretoda.io.toml import read_toml

_HOMES = {
    "office31": ("office31", "office", "domainadaptationimages", "originalimages"),
    "office-home": ("officehome", "officehomedataset", "officehomedataset10072016"),
    "visda2017": ("visda2017", "visda", "visda17", "visdac"),
}
"""Suite -> usual names of its folder, in lower case and without punctuation."""
_LISTS = "image_list"
DomainProgress = Callable[[str, int, int], None]
"""Called with the name of a domain, the number of its files that have been examined, and their total."""


@dataclass(frozen=True)
class Facts:
    """What is known about a benchmark.

    Args:
        classes: Names of the class folders, the same in all domains.
        images: Domain -> number of images.
        per_class: Domain -> class -> number of images; only domains whose numbers are certain.
    """

    classes: tuple[str, ...]
    images: Mapping[str, int]
    per_class: Mapping[str, Mapping[str, int]]


@lru_cache
def read_facts() -> dict[str, Facts]:
    """Return suite -> its facts, from facts.toml beside this file."""
    return {
        suite: Facts(
            tuple(known["classes"]),
            known["images"],
            {domain: dict(zip(known["classes"], counts, strict=True)) for domain, counts in known["per_class"].items()},
        )
        for suite, known in read_toml(Path(__file__).with_name("facts.toml")).items()
    }


def find_facts(suite: str) -> Facts:
    """Return the facts of a suite; raise DataError if none are known."""
    facts = read_facts()
    if suite not in facts:
        raise DataError(f"{unknown('benchmark with known numbers', suite, facts)} Or give --source and --target")
    return facts[suite]


@dataclass(frozen=True)
class Place:
    """The place of a domain.

    Args:
        path: The folder with its classes, or a list of its images.
        layout: The layout in words.
    """

    path: Path
    layout: str

    def samples(self) -> FileSamples:
        """Open the images; their classes are named by their folders, even if a list numbers them."""
        return open_labelled_folder(self.path) if self.path.is_dir() else _open_named_list(self.path)


def find_home(suite: str, folder: Path) -> Path:
    """Return the folder of the domains: the given one, or one inside it with a usual name of the suite."""
    if not folder.is_dir():
        raise DataError(f"{folder} is not a folder; give the one that has the images of {suite}")
    found = _list_homes(suite, folder)
    if not found:
        raise DataError(
            f"{folder} has no domain of {suite} ({', '.join(find_facts(suite).images)}); {_give_advice(folder)}"
        )
    if len(found) > 1:
        raise DataError(f"{suite} is in {found[0]} and in {found[1]}; give the folder of one of them")
    return found[0]


def find_place(suite: str, domain: str, home: Path) -> Place:
    """Return the place of a domain.

    Args:
        suite: Name of the suite.
        domain: Name of the domain in facts.toml; its folder may be spelled otherwise (RealWorld, real_world).
        home: The folder with all domains.

    Raises:
        DataError: If the domain is missing, or if two layouts are mixed.
    """
    folders, lists = _list_folders(domain, home), _list_files(domain, home)
    for found in (folders, lists):
        if len(found) > 1:
            raise DataError(f"two layouts are mixed: {domain} is in {found[0]} and in {found[1]}; remove one of them")
        if found:
            return _open_folder(found[0]) if found is folders else Place(found[0], "a list")
    raise DataError(
        f"{home} has no domain {domain!r} of {suite}, neither its folder nor a list {domain.replace(' ', '_')}.txt; "
        "unpack it there"
    )


def _list_homes(suite: str, folder: Path) -> list[Path]:
    """Return the folders with domains: the given one, or one with a usual name at most two levels below it."""
    places, level = [folder], [folder]
    for _ in range(2):
        level = [sub for place in level for sub in list_visible_folders(place) if _simplify(sub.name) in _HOMES[suite]]
        places += level
    domains = find_facts(suite).images
    return [
        place for place in places if any(_list_folders(name, place) or _list_files(name, place) for name in domains)
    ]


def _list_folders(domain: str, home: Path) -> list[Path]:
    return [sub for sub in list_visible_folders(home) if _simplify(sub.name) == _simplify(domain)]


def _list_files(domain: str, home: Path) -> list[Path]:
    """Return the lists of a domain, such as amazon.txt or amazon_list.txt, in the folder or in its image_list."""
    names = (_simplify(domain), f"{_simplify(domain)}list")
    places = [place for place in (home / _LISTS, home) if place.is_dir()]
    files = [file for place in places for file in sorted(place.iterdir()) if file.suffix == ".txt" and file.is_file()]
    return [file for file in files if _simplify(file.stem) in names]


def _open_folder(folder: Path) -> Place:
    """Return the place of a folder; the official Office-31 has the classes below `images`, other copies do not."""
    below = folder / "images"
    if not below.is_dir():
        return Place(folder, f"{folder.name}/CLASS")
    if beside := [sub.name for sub in list_visible_folders(folder) if sub != below and find_images(sub)[0]]:
        raise DataError(
            f"two layouts are mixed in {folder}: images is there beside {name_some(beside)}; keep the classes in "
            "one place"
        )
    return Place(below, f"{folder.name}/images/CLASS")


def _give_advice(folder: Path) -> str:
    """Return what to give instead of a folder without domains, as far as its content suggests."""
    names = [entry.name for entry in sorted(folder.iterdir()) if not entry.name.startswith(".")]
    for other in read_facts():
        if _list_homes(other, folder):
            return f"it looks like {other}: give --suite {other}, or another folder"
        if len({*find_facts(other).classes} & {*names}) > 1:
            return "it has classes, so it looks like one domain: give the folder that has them all"
    if archives := [name for name in names if name.lower().endswith(ARCHIVES)]:
        return f"unpack {name_some(archives)} first"
    return f"it has {name_some(names)}; give the folder that has the domains" if names else "it is empty"


def _open_named_list(file: Path) -> FileSamples:
    """Open a list with the names of the folders as classes, which must correspond to its labels one to one."""
    samples = open_list(file, labelled=True)
    assert samples.labels is not None
    if not samples.paths[0].exists():
        raise DataError(f"{file}: {samples.paths.name(0)} is neither beside it nor one folder above; correct its paths")
    names = [path.parent.name for path in samples.paths]
    labels = [samples.labels.classes[value] for value in samples.labels.values]
    pairs = sorted(set(zip(labels, names, strict=True)))
    for kind, place in (("label", 0), ("folder", 1)):
        common, times = Counter(pair[place] for pair in pairs).most_common(1)[0]
        if times > 1:
            two = " and ".join([pair[1 - place] for pair in pairs if pair[place] == common][:2])
            raise DataError(f"{file}: the {kind} {common} stands for {two}; give each class one folder and one label")
    return replace(samples, labels=labels_from_names(names))


def _simplify(name: str) -> str:
    return re.sub(r"[^a-z0-9]", "", name.lower())


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
        names = name_some(samples.names(list(bad)))
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
        said.append(f"{domain} has no images of {name_some(missing)}; unpack the archive again, or rename the folder.")
    if strange:
        near = hint(strange[0], missing) if missing else "move it away."
        said.append(f"{domain} has {name_some(strange)}, which the benchmark does not have; {near}")
    return said


def _check_counts(domain: str, counts: Mapping[str, int], facts: Facts) -> list[str]:
    """Compare the counts of the classes that exist; missing classes are reported elsewhere."""
    known = facts.per_class.get(domain, {})
    wrong = [name for name in known if name in counts and counts[name] != known[name]]
    total, wanted = sum(counts.values()), facts.images[domain]
    if not wrong and (total == wanted or set(counts) != set(facts.classes)):
        return []
    which = name_some([f"{name} {counts[name]} instead of {known[name]}" for name in wrong])
    where = f" ({which})" if wrong else ""
    return [f"{domain} has {total} images instead of {wanted}{where}; unpack the archive again, and nothing beside it."]


def _check_layouts(places: Mapping[str, Place]) -> list[Finding]:
    forms = {domain: place.path.is_file() for domain, place in places.items()}
    if len(set(forms.values())) < 2:
        return []
    text = (
        f"{name_some([name for name in forms if forms[name]])} come from lists and "
        f"{name_some([name for name in forms if not forms[name]])} from folders; make sure that they are of one "
        "release."
    )
    return [Finding("warning", "both", text)]
