"""The doctor: everything that is wrong or strange about a source and a target, not only the first error."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any, Literal

from paretoda.data.arrays import ArraySamples, check_finite
from paretoda.data.datasets import DatasetSamples
from paretoda.data.doctor_features import about_features, about_scales
from paretoda.data.doctor_files import about_files, about_images, hidden_labels, readable
from paretoda.data.doctor_labels import about_labels
from paretoda.data.files import FileSamples
from paretoda.data.findings import Finding, attempt, shared_samples
from paretoda.data.making import check_match, check_size, labels_in
from paretoda.data.opening import described, open_unchecked
from paretoda.data.samples import Progress
from paretoda.data.settings import PairSettings

_COMFORTABLE = 200

Opened = ArraySamples | DatasetSamples | FileSamples


def examine(
    source: Any, target: Any, settings: PairSettings | None = None, progress: Progress | None = None
) -> list[Finding]:
    """All findings, errors first; without an error, `make_pair` accepts the data.

    Args:
        source: as for `make_pair`.
        target: as for `make_pair`.
        settings: `skip_bad` and `least_target` count.
        progress: called while image files are decoded.
    """
    settings = settings or PairSettings()
    found: list[Finding] = []
    ours = _source(source, found)
    theirs = attempt(partial(open_unchecked, target, labelled=False), "target", found)
    if hidden_labels(target):
        found.append(Finding("info", "target", "The target has labels; they are ignored, adaptation never reads them."))
    ours = ours and _content("source", source, ours, settings, found, progress)
    theirs = theirs and _content("target", target, theirs, settings, found, progress)
    if ours is not None:
        found += about_labels(ours)
    if theirs is not None:
        attempt(partial(check_size, theirs, settings.least_target), "target", found)
        if settings.least_target <= len(theirs) < _COMFORTABLE:
            text = (
                f"The target has only {len(theirs)} samples; collect more where you can, and compare with --method "
                "source-only: with 150 samples adaptation gained nothing in our own tests (docs/results.md)."
            )
            found.append(Finding("warning", "target", text))
    if ours is not None and theirs is not None:
        _both(ours, theirs, found)
    return sorted(found, key=lambda finding: ("error", "warning", "info").index(finding.severity))


def _source(source: Any, found: list[Finding]) -> Opened | None:
    samples = attempt(partial(open_unchecked, source, labelled=True), "source", found)
    if samples is not None:
        attempt(partial(labels_in, samples), "source", found)
        return samples
    if isinstance(source, (str, Path)) and not Path(source).expanduser().exists():
        return None
    # The labels are wrong, but the rest can still be looked at; its errors, if any, have just been told.
    return attempt(partial(open_unchecked, source, labelled=False), "source", [])


def _content(
    domain: Literal["source", "target"],
    what: Any,
    samples: Opened,
    settings: PairSettings,
    found: list[Finding],
    progress: Progress | None,
) -> Opened | None:
    if isinstance(samples, FileSamples):
        good, bad = readable(samples, progress)
        found += about_files(domain, samples, bad, settings.skip_bad)
        if good is None:
            return None
        samples = good
    found += [Finding("info", domain, note) for note in samples.notes]
    if isinstance(samples, ArraySamples) and samples.kind == "features":
        attempt(partial(check_finite, samples.x, described(what)), domain, found)
        found += about_features(domain, samples.x)
    else:
        found += about_images(domain, samples)
    return samples


def _both(source: Opened, target: Opened, found: list[Finding]) -> None:
    before = len(found)
    attempt(partial(check_match, source, target), "both", found)
    if len(found) > before:
        return
    if isinstance(source, ArraySamples) and isinstance(target, ArraySamples) and source.kind == "features":
        found += about_scales(source.x, target.x)
    found += shared_samples(source, target, "samples")
