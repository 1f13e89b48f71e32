"""Where the adapted model scores below the source-only one, the user is told.

Only some scores can be compared between two models. `im`, `bnm` and `corr-c` read the predictions on the same target
samples, on a scale that K and n fix, and fall when classes vanish; `mixval` is a share of the same mixtures. Adaptation
often raises the first three directly, so a rise proves nothing, but a fall in spite of that is evidence. Left out:
`dev` and `transfer-score` measure in each model's own feature space (and `dev` takes a model whose domains are far
apart for a good one), `entropy` and `snd` reward collapse, `source-risk` knows nothing of the target. No score sees a
model that is sure, diverse and wrong.
"""

from __future__ import annotations

from collections.abc import Mapping

from paretoda.evaluation.choice import listed

COMPARABLE = ("im", "bnm", "corr-c", "mixval")
"""Validators whose scores mean the same for two different models on one target."""

MARGIN = 0.01
"""Relative fall below which two scores count as equal."""


def negative_transfer_warning(adapted: Mapping[str, float], source_only: Mapping[str, float]) -> str | None:
    """One sentence where a comparable validator puts the adapted model below the source-only one, None where none does.

    Args:
        adapted: validator -> score of the adapted model.
        source_only: the same of the model trained on the source alone.
    """
    known = [name for name in COMPARABLE if name in adapted and name in source_only]
    fallen = [name for name in known if not adapted[name] >= source_only[name] - MARGIN * abs(source_only[name])]
    if not fallen:
        return None
    numbers = listed([f"{name} {adapted[name]:.3f} instead of {source_only[name]:.3f}" for name in fallen])
    doubt = "has probably" if len(fallen) == len(known) else "may have"
    share = f"{len(fallen)} of {len(known)} label-free validators"
    return (
        f"Adaptation {doubt} made the model worse on the target: {share} score it below the source-only model "
        f"({numbers}); look at its predictions, or use the source-only model."
    )
