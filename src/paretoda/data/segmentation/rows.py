"""One domain's scenes as tensors, kept in memory where they fit."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from paretoda.data.batching import Positions
from paretoda.data.segmentation.samples import SceneSamples
from paretoda.data.segmentation.transforms import SceneTransform
from paretoda.errors import DataError

_MEMORY = 2**29
"""Resized scenes are kept in memory where all of a domain take no more bytes than this."""


@dataclass(frozen=True, eq=False)
class SceneRows:
    """Scenes with their transform, decoded and resized when they are first needed.

    Args:
        samples: what is transformed.
        transform: how.
        kept: resized images, shape (n, h, w, 3), or none where they do not fit into memory.
        known: which of them are there, shape (n,).
        kept_maps: resized label maps, shape (n, h, w), as many or none.
        known_maps: which of them are there, shape (n,).
    """

    samples: SceneSamples
    transform: SceneTransform
    kept: NDArray[np.uint8]
    known: NDArray[np.bool_]
    kept_maps: NDArray[np.uint8]
    known_maps: NDArray[np.bool_]

    def images(self, index: Positions) -> NDArray[np.uint8]:
        """These images at the transform's size, shape (b, h, w, 3)."""
        if not len(self.kept):
            return self.transform.prepare(self.samples.read(index))
        for place in np.unique(index[~self.known[index]]):
            self.kept[place] = self.transform.prepare(self.samples.read([place]))[0]
            self.known[place] = True
        return self.kept[index]

    def maps(self, index: Positions) -> NDArray[np.uint8]:
        """Their label maps at the same size, shape (b, h, w)."""
        if not self.samples.labelled:
            raise DataError("these scenes were opened without labels: only the source has them")
        if not len(self.kept_maps):
            return self.transform.prepare_labels(self.samples.read_labels(index))
        for place in np.unique(index[~self.known_maps[index]]):
            self.kept_maps[place] = self.transform.prepare_labels(self.samples.read_labels([place]))[0]
            self.known_maps[place] = True
        return self.kept_maps[index]

    def augmented(self, index: Positions, generator: torch.Generator) -> tuple[Tensor, Tensor]:
        """Images in 0..255, (b, 3, h, w), and int64 labels, (b, h, w), changed together anew in every batch."""
        pixels, labels = self.transform.augment(self.images(index), self.maps(index), generator)
        if labels is None:
            raise AssertionError("labels were given")
        return pixels, labels

    def pixels(self, index: Positions) -> Tensor:
        """Images in 0..255 without chance, shape (b, 3, h, w)."""
        return self.transform.pixels(self.images(index))

    def evaluate(self, index: Positions) -> Tensor:
        """Normalised images without chance, shape (b, 3, h, w)."""
        return self.transform.evaluate(self.images(index))


def make_scene_rows(samples: SceneSamples, transform: SceneTransform) -> SceneRows:
    """Scenes with a memory of their own where they fit; nothing is decoded yet."""
    width, height = transform.size
    fits = len(samples) * width * height * (4 if samples.labelled else 3) <= _MEMORY
    images = len(samples) if fits else 0
    maps = images if samples.labelled else 0
    return SceneRows(
        samples,
        transform,
        np.empty((images, height, width, 3), np.uint8),
        np.zeros(images, dtype=bool),
        np.empty((maps, height, width), np.uint8),
        np.zeros(maps, dtype=bool),
    )
