"""Copies of the paper's benchmarks in the layouts that people have, every image the same few bytes."""

import io
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path

from PIL import Image

from paretoda.bench.layouts import find_facts

SPELLED = {"Real World": "Real_World"}
"""What the Transfer-Learning-Library calls a domain."""


@lru_cache
def pixel(kind: str = "JPEG") -> bytes:
    file = io.BytesIO()
    Image.new("RGB", (8, 8), (200, 30, 30)).save(file, kind)
    return file.getvalue()


def published(suite: str, domain: str) -> dict[str, int]:
    """Class -> images; any that add up where they are not known."""
    facts = find_facts(suite)
    if domain in facts.per_class:
        return dict(facts.per_class[domain])
    each, rest = divmod(facts.images[domain], len(facts.classes))
    return {name: each + (place < rest) for place, name in enumerate(facts.classes)}


def few(suite: str, domain: str, images: int = 2) -> dict[str, int]:
    return dict.fromkeys(published(suite, domain), images)


def write_classes(folder: Path, counts: Mapping[str, int], suffix: str = "jpg") -> None:
    for name, count in counts.items():
        (folder / name).mkdir(parents=True)
        for number in range(1, count + 1):
            (folder / name / f"frame_{number:04}.{suffix}").write_bytes(pixel("PNG" if suffix == "png" else "JPEG"))


def write_list(file: Path, images: Path, root: Path, names: list[str]) -> None:
    """Lines of `path label` for all images below a folder; labels are places in the names."""
    found = sorted(path for path in images.rglob("*") if path.is_file())
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("".join(f"{path.relative_to(root)} {names.index(path.parent.name)}\n" for path in found))


def official(suite: str, home: Path, counts: Mapping[str, Mapping[str, int]]) -> None:
    """amazon/images/CLASS/…; Real World/CLASS/… and a table; train/CLASS/… and image_list.txt in it."""
    for domain, classes in counts.items():
        write_classes(home / domain / "images" if suite == "office31" else home / domain, classes)
        if suite == "visda2017":
            write_list(home / domain / "image_list.txt", home / domain, home / domain, list(classes))
        if suite == "office-home":
            (home / "ImageInfo.csv").write_text("Image_Number,Class_Name\n")


def domainbed(suite: str, home: Path, counts: Mapping[str, Mapping[str, int]]) -> None:
    """office_home/Real World/CLASS/…: the domains with their classes and nothing between."""
    del suite
    for domain, classes in counts.items():
        write_classes(home / domain, classes)


def tll(suite: str, home: Path, counts: Mapping[str, Mapping[str, int]]) -> None:
    """Real_World/CLASS/… beside image_list/Real_World.txt, whose labels follow an order of their own."""
    for domain, classes in counts.items():
        folder = home / SPELLED.get(domain, domain)
        write_classes(folder / "images" if suite == "office31" else folder, classes)
        write_list(home / "image_list" / f"{folder.name}.txt", folder, home, list(classes)[::-1])


def lists_alone(suite: str, home: Path, counts: Mapping[str, Mapping[str, int]]) -> None:
    """Lists whose images are somewhere else below the same folder."""
    for domain, classes in counts.items():
        name = SPELLED.get(domain, domain)
        write_classes(home / "files" / f"{suite} {name}", classes)
        write_list(home / f"{name}_list.txt", home / "files" / f"{suite} {name}", home, list(classes)[::-1])


LAYOUTS = {"official": official, "DomainBed": domainbed, "TLL": tll, "lists": lists_alone}
