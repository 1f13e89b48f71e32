"""Runs that are short compared with the steps between looks at the whole sets."""

import numpy as np

from paretoda import adapt

RNG = np.random.default_rng(0)
Y = RNG.integers(3, size=120)
SOURCE = (RNG.normal(size=(120, 8)) + 3 * np.eye(8)[Y], Y)
TARGET = RNG.normal(size=(90, 8)) + 3 * np.eye(8)[RNG.integers(3, size=90)] + 0.5


def test_predictions_of_an_untrained_model_are_never_spread():
    """The only look is before the first step: propagation would teach what random weights said."""
    run = adapt(SOURCE, TARGET, steps=20, refresh_every=50, select="last", device="cpu", reference=False)
    assert [line["losses"]["propagation"] for line in run.history] == [0.0] * 20


def test_it_begins_with_the_first_look_at_a_trained_model():
    alone = {"options": ["propagation.selective=0"], "reference": False}  # one voter, whose graph is always used
    run = adapt(SOURCE, TARGET, steps=20, refresh_every=10, select="last", device="cpu", **alone)
    values = [line["losses"]["propagation"] for line in run.history]
    assert values[:10] == [0.0] * 10
    assert min(values[10:]) > 0
