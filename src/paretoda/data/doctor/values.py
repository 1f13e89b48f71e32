"""The doctor of regression: everything that is wrong or unusual about a source with values and a target."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from paretoda.data.doctor.examine import examine_domains
from paretoda.data.doctor.findings import Finding, attempt, sort_findings
from paretoda.data.open.samples import open_unchecked
from paretoda.data.settings import PairSettings
from paretoda.data.values import Values, check_values, open_unchecked_values
from paretoda.types import Progress

_FAR = 10.0
"""Number of interquartile ranges beyond the quartiles from which on a value is an outlier."""
_FEW = 5


def describe_values(values: Values) -> list[Finding]:
    """Report the range of the source's values, outliers, and values that look like classes.

    Examples:
        >>> for finding in describe_values(np.array([0.0] * 9 + [1.0])):
        ...     print(finding.severity, finding.message.split(";")[0])
        info The source has 10 values from 0 to 1, mean 0.1, standard deviation 0.3.
        warning The source has only 2 different values (0, 1)
    """
    low, high, mean, deviation = (float(f(values)) for f in (np.min, np.max, np.mean, np.std))
    text = (
        f"The source has {len(values)} values from {low:.6g} to {high:.6g}, mean {mean:.6g}, "
        f"standard deviation {deviation:.6g}."
    )
    found = [Finding("info", "source", text)]
    different = np.unique(values)
    if len(different) <= _FEW:
        named = ", ".join(f"{value:.6g}" for value in different)
        text = (
            f"The source has only {len(different)} different values ({named}); if they are classes, leave out --task."
        )
        found.append(Finding("warning", "source", text))
    quartiles = np.quantile(values, [0.25, 0.75])
    reach = _FAR * (quartiles[1] - quartiles[0])
    outliers = np.flatnonzero((values < quartiles[0] - reach) | (values > quartiles[1] + reach))
    if reach and len(outliers):
        text = (
            f"{len(outliers)} values of the source are far from all others, for example {values[outliers[0]]:.6g} in "
            f"row {outliers[0]}; correct or remove them, or take --source-loss huber."
        )
        found.append(Finding("warning", "source", text))
    return found


def examine_values(
    source: Any, target: Any, settings: PairSettings | None = None, progress: Progress | None = None
) -> list[Finding]:
    """Return all findings about two domains, errors first; without an error, `make_value_pair` accepts the data.

    Args:
        source: Source, as for `make_value_pair`.
        target: Target, as for `make_value_pair`.
        settings: Settings of the pair, of which `skip_bad` and `least_target` are used.
        progress: Called while image files are decoded.

    Examples:
        >>> x, z = np.random.default_rng(0).normal(size=(2, 300, 3))
        >>> for finding in examine_values((x, np.full(300, 7.0)), z):
        ...     print(finding.severity, finding.message)
        error all samples of the source have the value 7, so there is nothing to predict.
    """
    found: list[Finding] = []
    opened = attempt(partial(open_unchecked_values, source), "source", found)
    samples = None
    if opened is not None:
        samples, values = replace(opened[0], labels=None), opened[1]
        before = len(found)
        attempt(partial(check_values, values), "source", found)
        if len(found) == before:
            found += describe_values(values)
    elif not isinstance(source, tuple):
        samples = attempt(partial(open_unchecked, source, labelled=False), "source", [])
    examine_domains(source, samples, target, settings or PairSettings(), found, progress)
    return sort_findings(found)
