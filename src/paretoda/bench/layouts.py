"""The published benchmarks on disk: their domains, classes and image counts, and where people keep them."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path

from paretoda.core.options import unknown
from paretoda.data.labels import labels_from_names, shorten_names
from paretoda.data.open.files import FileSamples
from paretoda.data.open.folders import find_images, list_visible_folders, open_labelled_folder
from paretoda.data.open.lists import open_list
from paretoda.errors import DataError
from paretoda.io.toml import read_toml


@dataclass(frozen=True)
class Facts:
    """Of one benchmark.

    Args:
        classes: names of the folders of all domains.
        images: domain -> how many.
        per_class: domain -> class -> how many; only domains whose numbers are certain.
    """

    classes: tuple[str, ...]
    images: Mapping[str, int]
    per_class: Mapping[str, Mapping[str, int]]


@lru_cache
def known_facts() -> dict[str, Facts]:
    """Suite -> its facts, from facts.toml beside this file."""
    return {
        suite: Facts(
            tuple(known["classes"]),
            known["images"],
            {domain: dict(zip(known["classes"], counts, strict=True)) for domain, counts in known["per_class"].items()},
        )
        for suite, known in read_toml(Path(__file__).with_name("facts.toml")).items()
    }


def facts_of(suite: str) -> Facts:
    """The facts of that suite."""
    facts = known_facts()
    if suite not in facts:
        raise DataError(f"{unknown('benchmark with known numbers', suite, facts)} Or give --source and --target")
    return facts[suite]


_HOMES = {
    "office31": ("office31", "office", "domainadaptationimages", "originalimages"),
    "office-home": ("officehome", "officehomedataset", "officehomedataset10072016"),
    "visda2017": ("visda2017", "visda", "visda17", "visdac"),
}
"""Suite -> what its folder is called, in small letters and without signs."""
_LISTS = "image_list"
_ARCHIVES = (".zip", ".tar", ".tgz", ".gz")


@dataclass(frozen=True)
class Place:
    """Where a domain is.

    Args:
        path: the folder with its classes, or a list of its images.
        layout: in words.
    """

    path: Path
    layout: str

    def samples(self) -> FileSamples:
        """The images with the names of their classes, which are their folders' also where a list numbers them."""
        return open_labelled_folder(self.path) if self.path.is_dir() else _named(self.path)


def home_of(suite: str, folder: Path) -> Path:
    """The folder that has the domains: the one that is given, or one in it with a name that people give the suite."""
    if not folder.is_dir():
        raise DataError(f"{folder} is no folder; give the one that has the images of {suite}")
    found = _homes(suite, folder)
    if not found:
        raise DataError(f"{folder} has no domain of {suite} ({', '.join(facts_of(suite).images)}); {_advice(folder)}")
    if len(found) > 1:
        raise DataError(f"{suite} is in {found[0]} and in {found[1]}; give the folder of one of them")
    return found[0]


def place_of(suite: str, domain: str, home: Path) -> Place:
    """Where the domain is; an error where it is missing, or where two layouts are mixed so that nobody can know.

    Args:
        suite: its name.
        domain: as facts.toml has it; its folder may be spelled otherwise (RealWorld, real_world).
        home: the folder with all domains.
    """
    folders, lists = _folders(domain, home), _lists(domain, home)
    for found in (folders, lists):
        if len(found) > 1:
            raise DataError(f"two layouts are mixed: {domain} is in {found[0]} and in {found[1]}; remove one of them")
        if found:
            return _folder(found[0]) if found is folders else Place(found[0], "a list")
    raise DataError(
        f"{home} has no domain {domain!r} of {suite}, neither its folder nor a list {domain.replace(' ', '_')}.txt; "
        "unpack it there"
    )


def _homes(suite: str, folder: Path) -> list[Path]:
    """The folder itself, those in it with a known name, and those in these: archives are nested twice at most."""
    places, level = [folder], [folder]
    for _ in range(2):
        level = [sub for place in level for sub in list_visible_folders(place) if _plain(sub.name) in _HOMES[suite]]
        places += level
    domains = facts_of(suite).images
    return [place for place in places if any(_folders(name, place) or _lists(name, place) for name in domains)]


def _folders(domain: str, home: Path) -> list[Path]:
    return [sub for sub in list_visible_folders(home) if _plain(sub.name) == _plain(domain)]


def _lists(domain: str, home: Path) -> list[Path]:
    """amazon.txt or amazon_list.txt, in the folder or in its image_list."""
    names = (_plain(domain), f"{_plain(domain)}list")
    places = [place for place in (home / _LISTS, home) if place.is_dir()]
    files = [file for place in places for file in sorted(place.iterdir()) if file.suffix == ".txt" and file.is_file()]
    return [file for file in files if _plain(file.stem) in names]


def _folder(folder: Path) -> Place:
    """The official Office-31 has the classes below `images`, others left that folder out."""
    below = folder / "images"
    if not below.is_dir():
        return Place(folder, f"{folder.name}/CLASS")
    if beside := [sub.name for sub in list_visible_folders(folder) if sub != below and find_images(sub)[0]]:
        raise DataError(
            f"two layouts are mixed in {folder}: images is there beside {shorten_names(beside)}; "
            "keep the classes in one place"
        )
    return Place(below, f"{folder.name}/images/CLASS")


def _advice(folder: Path) -> str:
    """What to give instead of a folder without domains, as far as its content tells."""
    names = [entry.name for entry in sorted(folder.iterdir()) if not entry.name.startswith(".")]
    for other in known_facts():
        if _homes(other, folder):
            return f"it looks like {other}: give --suite {other}, or another folder"
        if len({*facts_of(other).classes} & {*names}) > 1:
            return "it has classes, so it looks like one domain: give the folder that has them all"
    if archives := [name for name in names if name.endswith(_ARCHIVES)]:
        return f"unpack {shorten_names(archives)} first"
    return f"it has {shorten_names(names)}; give the folder that has the domains" if names else "it is empty"


def _named(file: Path) -> FileSamples:
    """A list's images under the names of their folders, which must be its labels under other names."""
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


def _plain(name: str) -> str:
    return re.sub(r"[^a-z0-9]", "", name.lower())
