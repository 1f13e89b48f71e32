"""What combines: ways to save memory or time, and schemes with methods; the settings obey these tables.

The documentation prints the first one in docs/memory.md and explains the second in docs/methods/schemes.md.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

WAYS = ("accumulate", "checkpoint-activations", "compile", "channels-last", "precision bf16", "precision 16")
"""Ways to save memory or time: the columns of the table."""

CIRCUMSTANCES = (
    "scheme linear",
    "any other scheme, voting all",
    "any other scheme, voting last",
    "scheme metaalign",
    "scheme auxilearn",
    "scheme hypernetwork",
    "scheme pga",
    "feature data",
    "frozen",
    "task segmentation",
)
"""Other properties of a run: the rows of the table, with the first four ways below them."""

_OTHER_WEIGHTS = "runs the network at weights that are not its own, which {} does not follow"
_TWICE = "differentiates gradients, which {} does not allow"
_NO_IMAGES = "channels-last is the layout of images, and {} trains on feature vectors"

REFUSED: dict[tuple[str, str], str] = {
    ("accumulate", "compile"): "accumulate changes dropout and BatchNorm from pass to pass, compiled code does not",
    ("checkpoint-activations", "compile"): "compiled code decides itself what it keeps and what it computes again",
    ("scheme metaalign", "accumulate"): _OTHER_WEIGHTS.format("accumulate"),
    ("scheme metaalign", "checkpoint-activations"): _OTHER_WEIGHTS.format("checkpoint-activations"),
    ("scheme metaalign", "compile"): _OTHER_WEIGHTS.format("compile"),
    ("scheme metaalign", "precision 16"): _TWICE.format("the scale of precision 16"),
    ("scheme auxilearn", "accumulate"): _TWICE.format("accumulate"),
    ("scheme auxilearn", "checkpoint-activations"): _TWICE.format("checkpoint-activations"),
    ("scheme auxilearn", "compile"): _TWICE.format("compile"),
    ("scheme auxilearn", "precision 16"): _TWICE.format("the scale of precision 16"),
    ("scheme pga", "accumulate"): _OTHER_WEIGHTS.format("accumulate"),
    ("scheme pga", "checkpoint-activations"): _OTHER_WEIGHTS.format("checkpoint-activations"),
    ("scheme pga", "compile"): _OTHER_WEIGHTS.format("compile"),
    ("scheme pga", "precision 16"): "divides by lengths of gradients, which the scale of precision 16 changes",
    ("feature data", "channels-last"): _NO_IMAGES.format("this run"),
    ("frozen", "channels-last"): _NO_IMAGES.format("frozen"),
}
"""Pairs that are refused -> the reason; a test runs every other pair."""


UNSUITED: dict[tuple[str, str], str] = {
    (
        "pmtl",
        "mdd",
    ): "reads the proportions of the losses, and mdd is below 0 until its second classifier is good",
    ("pmtl", "afn"): "reads the proportions of the losses, and afn has a constant value",
    ("gradnorm", "dta"): "asks all losses to fall at one rate, and dta rises with the share of features that it drops",
}
"""Scheme and method that are refused together -> the reason; docs/decisions/0004 has the measurements."""


FOR_ONE_SOURCE: dict[str, str] = {
    "gh++": "harmonises one source loss with one alignment",
}
"""Scheme that is refused with several separate sources -> the reason."""


def unsuited(scheme: str, method: str) -> str | None:
    """Return one sentence on a scheme that does not suit a method's loss values; None if it does.

    Examples:
        >>> unsuited("pmtl", "dann") is None
        True
    """
    reason = UNSUITED.get((scheme, method))
    return None if reason is None else f"the scheme {scheme!r} {reason}; take --scheme linear, mgda or paretoda"


def refusal(names: Collection[str]) -> str | None:
    """Return one sentence on the first pair that does not combine; None if all names combine.

    Args:
        names: Names of `WAYS` and `CIRCUMSTANCES` that hold for a run.
    """
    for (one, other), reason in REFUSED.items():
        if one in names and other in names:
            subject = f"the {one} " if one.startswith("scheme ") else ""
            return f"{subject}{reason}; {_way_out(one, other)}"
    return None


def _way_out(one: str, other: str) -> str:
    if other == "precision 16":
        return "take --precision bf16 or 32"
    return f"leave out --{other}" + (f" or --{one}" if one in WAYS else "")


def refuses(one: str, other: str) -> bool:
    """Return whether two of the names do not combine."""
    return (one, other) in REFUSED or (other, one) in REFUSED


def markdown_table() -> Iterator[str]:
    """Yield the lines of the table in Markdown, for docs/memory.md."""
    yield f"| | {' | '.join(f'`--{way}`' for way in WAYS)} |"
    yield f"|---|{':-:|' * len(WAYS)}"
    for row in (*CIRCUMSTANCES, *WAYS[:4]):
        cells = ["" if way == row else "no" if refuses(row, way) else "yes" for way in WAYS]
        yield f"| {f'`--{row}`' if row in WAYS else row} | {' | '.join(cells)} |"
