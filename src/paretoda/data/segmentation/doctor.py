"""The doctor for scenes: everything that is wrong or unusual about them, not only the first error."""

from __future__ import annotations

from collections import Counter
from functools import partial
from typing import Any, Literal

import numpy as np

from paretoda.core.options import name_some
from paretoda.data.doctor.findings import Finding, attempt, find_shared_samples, sort_findings
from paretoda.data.open.files import find_failures
from paretoda.data.segmentation.build_pair import check_counts
from paretoda.data.segmentation.opening import check_classes, check_scene, number_classes, open_scenes, open_unchecked
from paretoda.data.segmentation.pair import ScenePairSettings
from paretoda.data.segmentation.samples import ArrayScenes, FileScenes, SceneSamples
from paretoda.data.segmentation.target_labels import open_labelled_scenes
from paretoda.types import IGNORE, Progress

_RARE = 1e-3

Domain = Literal["source", "target"]


def examine_scenes(
    source: Any, target: Any, settings: ScenePairSettings | None = None, progress: Progress | None = None
) -> list[Finding]:
    """Return all findings about two domains of scenes, errors first. Target labels are never read.

    Without an error, `make_scene_pair` accepts the data.

    Args:
        source: Source, as for `make_scene_pair`.
        target: Target, as for `make_scene_pair`.
        settings: Settings of the pair, of which tables, splits, `skip_bad` and `least_target` are used.
        progress: Called while files are decoded.

    Returns:
        The findings: errors, then warnings, then information.
    """
    settings = settings or ScenePairSettings()
    found: list[Finding] = []
    table, split = settings.source_table, settings.source_split
    opened = attempt(partial(open_unchecked, source, labelled=True, table=table, split=split), "source", found)
    ours = opened and _examine_content("source", opened, settings, found, progress)
    if ours is not None:
        found += examine_label_maps(ours)
    theirs = examine_target_scenes(target, settings, found, progress)
    if ours is not None and theirs is not None:
        attempt(partial(check_classes, ours, theirs), "both", found)
        attempt(partial(check_counts, ours, theirs, settings.least_target), "both", found)
        found += find_shared_samples(ours, theirs, "images")
    return sort_findings(found)


def examine_target_scenes(
    target: Any, settings: ScenePairSettings, found: list[Finding], progress: Progress | None = None
) -> SceneSamples | None:
    """Add all findings about the target alone, and return its scenes; None where they cannot be opened.

    Args:
        target: Target, as for `make_scene_pair`.
        settings: Settings of the pair, of which the target's table and split, and `skip_bad` are used.
        found: Findings so far.
        progress: Called while files are decoded.
    """
    table, split = settings.target_table, settings.target_split
    opened = attempt(partial(open_unchecked, target, labelled=False, table=table, split=split), "target", found)
    return opened and _examine_content("target", opened, settings, found, progress)


def examine_labelled_scenes(
    labels: Any, source: Any, target: Any, settings: ScenePairSettings, progress: Progress | None = None
) -> list[Finding]:
    """Return all findings about the labelled images of the target, errors first.

    There are none where the source or the target cannot be opened: `examine_scenes` says why.

    Args:
        labels: Labelled scenes of the target, as for `adapt`.
        source: Source, as for `make_scene_pair`.
        target: Target, as for `make_scene_pair`.
        settings: Settings of the pair, of which tables and `skip_bad` are used.
        progress: Called while files are decoded.
    """
    where = "target labels"
    found: list[Finding] = []
    ours = attempt(partial(open_scenes, source, labelled=True, table=settings.source_table), "source", [])
    theirs = attempt(partial(open_scenes, target, labelled=False), "target", [])
    if ours is None or theirs is None:
        return []
    opening = partial(open_labelled_scenes, table=settings.source_table, skip_bad=settings.skip_bad, progress=progress)
    few = attempt(partial(opening, labels, ours.classes), where, found)
    if few is None:
        return found
    present: set[int] = set()
    for place in range(len(few)):
        present |= set(np.unique(few.read_labels([place])[0]).tolist()) - {IGNORE}
    found.append(Finding("info", where, f"{len(few)} target images with {len(present)} classes are labelled."))
    if not present:
        text = "No pixel of the labelled target images has a label; label some pixels with a class."
        found.append(Finding("error", where, text))
    elif absent := [name for place, name in enumerate(few.classes) if place not in present]:
        text = f"These classes have no labelled target pixel: {name_some(absent)}; label an image that has them."
        found.append(Finding("warning", where, text))
    if shared := find_shared_samples(ours, few, "images with labels"):
        found += [Finding("warning", where, finding.message) for finding in shared]
    return sort_findings(found)


def examine_label_maps(source: SceneSamples) -> list[Finding]:
    """Report the classes' shares of the pixels, classes that never occur, and images without labels."""
    counts = np.zeros(IGNORE + 1, dtype=np.int64)
    empty = []
    for place in range(len(source)):
        here = np.bincount(source.read_labels([place])[0].ravel(), minlength=IGNORE + 1)
        counts += here
        if not here[:IGNORE].any():
            empty += source.names([place])
    names = source.classes
    shares = counts[: len(names)] / max(1, int(counts[:IGNORE].sum()))
    shown = ", ".join(f"{name} {share:.2%}" for name, share in zip(names, shares, strict=True))
    ignored = counts[IGNORE] / max(1, int(counts.sum()))
    text = f"{ignored:.1%} of the source's pixels have no label; the others are {shown}."
    found = [Finding("info", "source", text)]
    if not counts[:IGNORE].any():
        found.append(Finding("error", "source", f"No pixel of the source has a label, as in {empty[0]}; label some."))
        return found
    absent = [name for name, share in zip(names, shares, strict=True) if share == 0]
    if absent:
        text = f"These classes have no source pixel: {name_some(absent)}; the model will hardly ever predict them."
        found.append(Finding("warning", "source", text))
    rare = [name for name, share in zip(names, shares, strict=True) if 0 < share < _RARE]
    if rare:
        text = f"These classes have less than {_RARE:.1%} of the pixels: {name_some(rare)}; consider class weights."
        found.append(Finding("warning", "source", text))
    if empty:
        text = f"{len(empty)} of {len(source)} source images have no label at all ({name_some(empty)}); remove them."
        found.append(Finding("warning", "source", text))
    if len(source) - len(empty) == 1:
        text = "Only one source image has labelled pixels; label one more, so that one is held out."
        found.append(Finding("error", "source", text))
    return found


def _examine_content(
    domain: Domain,
    scenes: ArrayScenes | FileScenes,
    settings: ScenePairSettings,
    found: list[Finding],
    progress: Progress | None,
) -> SceneSamples | None:
    if isinstance(scenes, FileScenes):
        good = _drop_unusable(domain, scenes, settings, found, progress)
        if good is None:
            return None
        scenes = number_classes(good)
    found += [Finding("info", domain, note) for note in scenes.notes]
    found.append(_examine_sizes(domain, scenes))
    return scenes


def _drop_unusable(
    domain: Domain, scenes: FileScenes, settings: ScenePairSettings, found: list[Finding], progress: Progress | None
) -> FileScenes | None:
    check = partial(check_scene, scenes, thorough=True)
    bad = find_failures(check, range(len(scenes)), stop=False, progress=progress)
    keep = [place for place in range(len(scenes)) if place not in bad]
    severity: Literal["error", "warning"] = "warning" if settings.skip_bad and keep else "error"
    found += [Finding(severity, domain, f"{error}.") for error in list(bad.values())[:5]]
    if len(bad) > 5:
        found.append(Finding(severity, domain, f"{len(bad)} of {len(scenes)} scenes cannot be used in all."))
    return scenes.select(keep) if keep else None


def _examine_sizes(domain: Domain, scenes: SceneSamples) -> Finding:
    sizes = Counter(f"{width}x{height}" for width, height in scenes.sizes(range(len(scenes))))
    shown = name_some([f"{size} ({count})" for size, count in sizes.most_common()])
    more = "; all are resized to one" if len(sizes) > 1 else ""
    return Finding("info", domain, f"The {domain} has {len(scenes)} images of {shown}{more}.")
