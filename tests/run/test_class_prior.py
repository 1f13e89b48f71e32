"""The option `target.prior`: words become numbers that the data know, and help where frequencies differ."""

import re

import numpy as np
import pytest
import torch

from paretoda.api import adapt
from paretoda.data import make_pair
from paretoda.errors import SettingsError
from paretoda.objectives import Information
from paretoda.run.build import build_step, describe_label_shift
from paretoda.tasks import find_task
from paretoda.tasks.classification.build import make_pair_settings
from paretoda.tasks.settings import make_settings

COUNTS = {"source": (100, 100, 100), "target": (270, 20, 10)}


def domains(seed=0, counts=COUNTS, d=8):
    """Three classes that lie close together, the target's a little apart, with frequencies of their own."""
    rng = np.random.default_rng(seed)
    centres = 1.2 * rng.normal(size=(3, d))
    made = []
    for domain, number in counts.items():
        y = np.repeat(np.arange(3), number)
        x = centres[y] + rng.normal(size=(len(y), d)) + (0.5 if domain == "target" else 0)
        made += [x.astype(np.float32), y]
    return made


def prior_of(word, counts, **given):
    x, y, t, _ = domains(counts=counts)
    settings = make_settings({"options": [f"target.prior={word}"], "batch_size": 16, **given})
    pair = make_pair((x, y), t, make_pair_settings(settings))
    return build_step(find_task(settings.task), settings, pair, torch.device("cpu")).objectives["target"].prior


@pytest.mark.parametrize("loss", ["tcm", "im"])
def test_words_become_numbers(loss):
    uneven = {"source": (160, 80, 40), "target": (50, 50, 50)}
    found = prior_of("source", uneven, target_loss=loss)
    torch.testing.assert_close(found.log.exp(), torch.tensor([4, 2, 1]) / 7, rtol=0.05, atol=0)
    assert found.shift is None
    moving = prior_of("estimated", uneven, target_loss=loss)
    torch.testing.assert_close(moving.log, found.log)
    assert moving.shift is not None
    assert prior_of("uniform", uneven, target_loss=loss).log is None
    even = prior_of("source", uneven, target_loss=loss, class_balanced=True)
    torch.testing.assert_close(even.log.exp(), torch.full((3,), 1 / 3))
    torch.testing.assert_close(prior_of("[1,1,2]", uneven, target_loss=loss).log.exp(), torch.tensor([1, 1, 2]) / 4)


def test_another_word_is_refused():
    with pytest.raises(SettingsError, match=r"target.prior is source, estimated, uniform or a number for each class"):
        prior_of("even", COUNTS, target_loss="tcm")


def test_an_estimated_prior_saves_what_an_equal_one_spoils():
    x, y, t, z = domains()
    given = {"steps": 150, "batch_size": 32, "bottleneck": 16, "dropout": 0.0, "scaling": "source", "select": "last"}
    given |= {"target_loss": "tcm+propagation", "members": 1, "reference": False}
    right = {
        word: [
            np.mean(adapt((x, y), t, options=[f"target.prior={word}"], seed=seed, **given).predict(t) == z.astype(str))
            for seed in range(3)
        ]
        for word in ("uniform", "estimated")
    }
    assert min(right["estimated"]) > max(right["uniform"]), right
    assert np.mean(right["estimated"]) > np.mean(right["uniform"]) + 0.03, right


def test_what_was_found_is_said():
    x, y, t, _ = domains()
    given = {"steps": 60, "batch_size": 32, "bottleneck": 16, "scaling": "source", "select": "last"}
    given |= {"target_loss": "tcm", "reference": False}
    said = adapt((x, y), t, options=["target.prior=estimated"], **given).sentences
    (sentence,) = (line for line in said if line.startswith("By its predictions"))
    assert re.search(r"the target has .*\b0 \d\.\d times.* as often as the source", sentence)
    assert not any("By its predictions" in line for line in adapt((x, y), t, **given).sentences)


def test_the_sentence_names_the_farthest_classes_and_none_that_is_near():
    objective = Information(2, 4, shift=True)
    assert describe_label_shift([Information(2, 4)], "abcd") is None
    assert "about as often" in describe_label_shift([objective], "abcd")
    objective.prior.shift.log_ratios.copy_(torch.tensor([2.0, 0.5, 1.2, 4.0]).log())
    assert "has d 4.0 times, a 2.0 times and b 0.5 times as often" in describe_label_shift([objective], "abcd")
    objective.prior.shift.log_ratios.copy_(torch.tensor([1.0, 0.5, 1.2, 0.9]).log())
    assert "has b 0.5 times as often" in describe_label_shift([objective], "abcd")
