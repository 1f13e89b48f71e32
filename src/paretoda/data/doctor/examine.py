"""The doctor: everything that is wrong or unusual about a source and a target, not only the first error."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from paretoda.core.options import name_some
from paretoda.data.build_pair import check_match, check_size, require_labels
from paretoda.data.doctor.findings import Finding, attempt, find_shared_samples, sort_findings
from paretoda.data.open.arrays import ArraySamples, check_finite, open_npz_file
from paretoda.data.open.datasets import DatasetSamples
from paretoda.data.open.decoding import SUFFIXES, read_shape
from paretoda.data.open.files import FileSamples, find_unreadable
from paretoda.data.open.folders import find_images, list_visible_folders
from paretoda.data.open.lists import read_text, split_line
from paretoda.data.open.samples import describe_origin, open_unchecked
from paretoda.data.open.sources import open_sources
from paretoda.data.samples import Samples
from paretoda.data.settings import PairSettings
from paretoda.data.target_labels import open_target_labels
from paretoda.errors import DataError
from paretoda.types import Progress

_IMBALANCE = 10
_RARE = 5
_APART = 10.0
Domain = Literal["source", "target"]
_TINY = 8
_COMFORTABLE = 200
Opened = ArraySamples | DatasetSamples | FileSamples


def examine_labels(source: Samples) -> list[Finding]:
    """Report how many samples each class has, and whether that is enough and balanced."""
    if source.labels is None:
        return []
    classes = source.labels.classes
    counts = np.bincount(source.labels.values, minlength=len(classes))
    shown = name_some([f"{name} {count}" for name, count in zip(classes, counts, strict=True)])
    found = [Finding("info", "source", f"The source has {len(source)} samples of {len(classes)} classes: {shown}.")]
    absent = [name for name, count in zip(classes, counts, strict=True) if count == 0]
    if absent:
        text = f"These classes have no source sample: {name_some(absent)}; the model will hardly ever predict them."
        found.append(Finding("warning", "source", text))
    rare = [name for name, count in zip(classes, counts, strict=True) if 0 < count < _RARE]
    if rare:
        text = f"These classes have fewer than {_RARE} samples: {name_some(rare)}; collect more, or merge classes."
        found.append(Finding("warning", "source", text))
    least, most = counts[counts > 0].min(), counts.max()
    if most > _IMBALANCE * least:
        text = f"The largest class has {most} samples, the smallest {least}; consider class_balanced batches."
        found.append(Finding("warning", "source", text))
    return found


def examine_features(domain: Literal["source", "target"], x: NDArray[np.float32]) -> list[Finding]:
    """Report features that are constant and so carry no information."""
    constant = np.flatnonzero((x == x[:1]).all(axis=0))
    if not len(constant):
        return []
    columns = name_some([str(column) for column in constant])
    count = f"{len(constant)} of {x.shape[1]}"
    text = f"{count} features are constant in the {domain} (columns {columns}); they can be removed."
    return [Finding("warning" if len(constant) == x.shape[1] else "info", domain, text)]


def examine_scales(source: NDArray[np.float32], target: NDArray[np.float32]) -> list[Finding]:
    """Report features whose scales differ so much that the domains seem to be measured in different units."""
    (mean_s, std_s), (mean_t, std_t) = _moments(source), _moments(target)
    either = (std_s > 0) & (std_t > 0)
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.where(either, np.maximum(std_s / std_t, std_t / std_s), 1)
        shift = np.where(either, np.abs(mean_s - mean_t) / np.minimum(std_s, std_t), 0)
    apart = np.flatnonzero((ratio > _APART) | (shift > _APART))
    if not len(apart):
        return []
    columns = name_some([str(column) for column in apart])
    text = (
        f"{len(apart)} of {len(ratio)} features have very different scales in source and target (columns {columns}); "
        "check their units, and keep the per-domain scaling."
    )
    return [Finding("warning", "both", text)]


def _moments(x: NDArray[np.float32]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    finite = x[np.isfinite(x).all(axis=1)].astype(np.float64)
    if not len(finite):
        return np.zeros(x.shape[1]), np.zeros(x.shape[1])
    return finite.mean(axis=0), finite.std(axis=0)


def split_readable(samples: FileSamples, progress: Progress | None) -> tuple[FileSamples | None, dict[int, DataError]]:
    """Return the samples that can be decoded, None where none can, and the errors of the others."""
    bad = find_unreadable(samples.paths, range(len(samples)), thorough=True, progress=progress)
    keep = [place for place in range(len(samples)) if place not in bad]
    return (samples.select(keep) if keep else None), bad


def examine_files(domain: Domain, samples: FileSamples, bad: dict[int, DataError], skipped: bool) -> list[Finding]:
    """Report how many files cannot be read, with the first names."""
    if not bad:
        return []
    names = name_some(samples.names(list(bad)))
    text = f"{len(bad)} of {len(samples)} image files cannot be read ({names}); repair or delete them, or use skip_bad."
    return [Finding("warning" if skipped and len(bad) < len(samples) else "error", domain, text)]


def examine_images(domain: Domain, samples: ArraySamples | DatasetSamples | FileSamples) -> list[Finding]:
    """Report mixed sizes and colours, and tiny images."""
    shapes = [read_shape(path) for path in samples.paths] if isinstance(samples, FileSamples) else samples.shapes()
    sizes = Counter(f"{width}x{height}" for height, width, _ in shapes)
    found = []
    if len(sizes) > 1:
        common = name_some([f"{size} ({count})" for size, count in sizes.most_common()])
        text = f"The images have {len(sizes)} sizes: {common}; all are resized to one square."
        found.append(Finding("info", domain, text))
    if len({shape[2] for shape in shapes}) > 1:
        grey = sum(shape[2] == 1 for shape in shapes)
        text = f"{grey} of {len(shapes)} images are grey and the others coloured; all are converted alike."
        found.append(Finding("info", domain, text))
    tiny = sum(min(shape[:2]) < _TINY for shape in shapes)
    if tiny:
        text = f"{tiny} of {len(shapes)} images have a side of less than {_TINY} pixels; check that they are no icons."
        found.append(Finding("warning", domain, text))
    return found


def has_hidden_labels(target: Any) -> bool:
    """Return whether the target comes with labels; only their existence is checked, never their content."""
    if isinstance(target, tuple):
        return len(target) > 1 and target[1] is not None
    if not isinstance(target, (str, Path)):
        return False
    path = Path(target).expanduser()
    if path.is_dir():
        return len([sub for sub in list_visible_folders(path) if find_images(sub)[0]]) > 1
    if path.is_file() and path.suffix.lower() == ".npz":
        try:
            with open_npz_file(path) as file:
                return "y" in file.files
        except DataError:  # opening the file reports what is wrong
            return False
    return path.is_file() and path.suffix.lower() not in SUFFIXES and _list_has_labels(path)


def _list_has_labels(file: Path) -> bool:
    try:
        lines = read_text(file).splitlines()
    except DataError:
        return False
    return any(split_line(line, file.parent)[1] is not None for line in lines if line.strip())


def examine(
    source: Any, target: Any, settings: PairSettings | None = None, progress: Progress | None = None
) -> list[Finding]:
    """Return all findings about two domains, errors first; without an error, `make_pair` accepts the data.

    Args:
        source: Source, as for `make_pair`.
        target: Target, as for `make_pair`.
        settings: Settings of the pair, of which `skip_bad` and `least_target` are used.
        progress: Called while image files are decoded.

    Returns:
        The findings: errors, then warnings, then information.

    Examples:
        >>> import numpy as np
        >>> x, z = np.random.default_rng(0).normal(size=(2, 300, 3))
        >>> for finding in examine((x, np.arange(300) % 2), z):
        ...     print(finding.severity, finding.message)
        info The source has 300 samples of 2 classes: 0 150, 1 150.
    """
    found: list[Finding] = []
    examine_domains(source, _open_source(source, found), target, settings or PairSettings(), found, progress)
    return sort_findings(found)


def examine_domains(
    source: Any,
    ours: Opened | None,
    target: Any,
    settings: PairSettings,
    found: list[Finding],
    progress: Progress | None,
) -> None:
    """Add everything about two domains besides the labels' own errors to the findings.

    Args:
        source: Source, as the user gave it.
        ours: The opened source, with its labels if they are classes; None where it cannot be opened.
        target: Target, as the user gave it.
        settings: Settings of the pair, of which `skip_bad` and `least_target` are used.
        found: The findings so far.
        progress: Called while image files are decoded.
    """
    ours = ours and _examine_content("source", source, ours, settings, found, progress)
    if ours is not None:
        found += examine_labels(ours)
    theirs = examine_target(target, settings, found, progress)
    if ours is not None and theirs is not None:
        _examine_both(ours, theirs, found)


def examine_target(
    target: Any, settings: PairSettings, found: list[Finding], progress: Progress | None = None
) -> Opened | None:
    """Add all findings about the target alone, and return its samples; None where they cannot be opened.

    Args:
        target: Target, as for `make_pair`.
        settings: Settings of the pair, of which `skip_bad` and `least_target` are used.
        found: Findings so far.
        progress: Called while image files are decoded.
    """
    samples = attempt(partial(open_unchecked, target, labelled=False), "target", found)
    if has_hidden_labels(target):
        found.append(Finding("info", "target", "The target has labels; they are ignored, adaptation never reads them."))
    samples = samples and _examine_content("target", target, samples, settings, found, progress)
    if samples is None:
        return None
    attempt(partial(check_size, samples, settings.least_target), "target", found)
    if settings.least_target <= len(samples) < _COMFORTABLE:
        text = (
            f"The target has only {len(samples)} samples; collect more where you can, and compare with --method "
            "source-only: gains are smaller with few samples (docs/results.md, Small targets)."
        )
        found.append(Finding("warning", "target", text))
    return samples


def examine_sources(
    sources: Sequence[Any], target: Any, settings: PairSettings | None = None, progress: Progress | None = None
) -> list[Finding]:
    """Return all findings about several sources and a target; otherwise as `examine`.

    Args:
        sources: The sources.
        target: Target, as for `make_pair`.
        settings: Settings of the pair.
        progress: Called while image files are decoded.
    """
    found: list[Finding] = []
    for number, source in enumerate(sources, start=1):
        names = {"source": f"source {number}", "both": f"source {number} and target"}
        found += [
            replace(finding, domain=names.get(finding.domain, finding.domain))
            for finding in examine(source, target, settings, progress)
            if finding.domain in names or number == 1  # the target is the same for all
        ]
    if not any(finding.severity == "error" for finding in found):
        attempt(partial(open_sources, sources, partial(open_unchecked, labelled=True)), "sources", found)
    return sort_findings(found)


def _open_source(source: Any, found: list[Finding]) -> Opened | None:
    samples = attempt(partial(open_unchecked, source, labelled=True), "source", found)
    if samples is not None:
        attempt(partial(require_labels, samples), "source", found)
        return samples
    if isinstance(source, (str, Path)) and not Path(source).expanduser().exists():
        return None
    # The labels are wrong, but the rest can still be examined; its errors, if any, are among the findings already.
    return attempt(partial(open_unchecked, source, labelled=False), "source", [])


def _examine_content(
    domain: Literal["source", "target"],
    what: Any,
    samples: Opened,
    settings: PairSettings,
    found: list[Finding],
    progress: Progress | None,
) -> Opened | None:
    if isinstance(samples, FileSamples):
        good, bad = split_readable(samples, progress)
        found += examine_files(domain, samples, bad, settings.skip_bad)
        if good is None:
            return None
        samples = good
    found += [Finding("info", domain, note) for note in samples.notes]
    if isinstance(samples, ArraySamples) and samples.kind == "features":
        attempt(partial(check_finite, samples.x, describe_origin(what)), domain, found)
        found += examine_features(domain, samples.x)
    else:
        found += examine_images(domain, samples)
    return samples


def _examine_both(source: Opened, target: Opened, found: list[Finding]) -> None:
    before = len(found)
    attempt(partial(check_match, source, target), "both", found)
    if len(found) > before:
        return
    if isinstance(source, ArraySamples) and isinstance(target, ArraySamples) and source.kind == "features":
        found += examine_scales(source.x, target.x)
    found += find_shared_samples(source, target, "samples")


def examine_target_labels(
    labels: Any, source: Any, target: Any, settings: PairSettings | None = None, progress: Progress | None = None
) -> list[Finding]:
    """Return all findings about the labelled samples of the target, errors first.

    There are none where the source or the target cannot be opened: `examine` says why.

    Args:
        labels: Labelled samples of the target, as for `adapt`.
        source: Source, as for `make_pair`.
        target: Target, as for `make_pair`.
        settings: Settings of the pair, of which `skip_bad` is used.
        progress: Called while image files are decoded.
    """
    where = "target labels"
    found: list[Finding] = []
    ours = attempt(partial(open_unchecked, source, labelled=True), "source", [])
    theirs = attempt(partial(open_unchecked, target, labelled=False), "target", [])
    if ours is None or theirs is None or ours.labels is None:
        return []
    classes, skip_bad = ours.labels.classes, (settings or PairSettings()).skip_bad
    opened = attempt(
        partial(open_target_labels, labels, theirs, classes, skip_bad=skip_bad, progress=progress), where, found
    )
    if opened is None:
        return found
    samples, few = opened
    counts = np.bincount(few.values, minlength=len(classes))
    found += [Finding("info", where, note) for note in samples.notes]
    text = f"{len(samples)} target samples of {(counts > 0).sum()} of {len(classes)} classes are labelled."
    found.append(Finding("info", where, text))
    if absent := [name for name, count in zip(classes, counts, strict=True) if count == 0]:
        text = f"These classes have no labelled target sample: {name_some(absent)}; label one of each if you can."
        found.append(Finding("warning", where, text))
    if shared := find_shared_samples(ours, samples, "samples with labels"):
        found += [Finding("warning", where, finding.message) for finding in shared]
    return sort_findings(found)
