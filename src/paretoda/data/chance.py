"""Chance for each sample of a batch, the same wherever the sample is read."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from paretoda.processes import Processes


class BatchGenerator(torch.Generator):
    """The generator of a batch of which this process reads a share: `per_sample` draws for all of it."""

    whole: int
    share: slice


def batch_generator(seed: int, count: int, processes: Processes) -> BatchGenerator:
    """The generator of a batch of `count` samples."""
    generator = BatchGenerator()
    generator.manual_seed(seed)
    generator.whole, generator.share = count, processes.share(count)
    return generator


def per_sample(shape: Sequence[int], axis: int, generator: torch.Generator, dtype: torch.dtype | None = None) -> Tensor:
    """Uniform numbers 0..1 of that shape, whose `axis` runs over the samples at hand.

    Args:
        shape: of the result.
        axis: of the samples.
        generator: the only source of chance; a `BatchGenerator` knows which samples of the batch are at hand.
        dtype: of the numbers.
    """
    if not isinstance(generator, BatchGenerator):
        return torch.rand(tuple(shape), generator=generator, dtype=dtype)
    whole = [generator.whole if place == axis else size for place, size in enumerate(shape)]
    share = generator.share
    return torch.rand(whole, generator=generator, dtype=dtype).narrow(axis, share.start, share.stop - share.start)
