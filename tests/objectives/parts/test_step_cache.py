import copy
import gc

import torch
from objectives.samples import Samples

from paretoda.objectives.parts.step_cache import StepCache


def test_what_was_made_is_handed_out_once_and_for_its_own_batch_only():
    samples = Samples()
    source, other = samples.source(), samples.source()
    kept = StepCache()
    made = torch.ones(2)
    assert kept.take(source) is None
    assert kept.keep(source, made) is made
    assert kept.take(other) is None
    assert kept.take(source) is None  # whoever asks ends it
    kept.keep(source, made)
    assert kept.take(source) is made
    assert kept.take(source) is None


def test_a_batch_that_is_gone_is_not_confused_with_the_next():
    samples = Samples()
    kept = StepCache()
    kept.keep(samples.source(), torch.ones(2))
    gc.collect()
    assert kept.take(samples.source()) is None


def test_a_copy_is_empty_and_possible_in_the_middle_of_a_step():
    kept = StepCache()
    source = Samples().source()
    made = torch.ones(2, requires_grad=True).exp()  # a tensor with a graph, which torch does not copy
    kept.keep(source, made)
    assert copy.deepcopy(kept).take(source) is None
    assert kept.take(source) is made
