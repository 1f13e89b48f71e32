"""One domain's scenes as tensors, kept in memory where they fit."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from paretoda.data.batching import Positions
from paretoda.data.rows import ArrayCache, fits_in_memory
from paretoda.data.segmentation.samples import SceneSamples
from paretoda.data.segmentation.transforms import SceneTransform
from paretoda.errors import DataError


@dataclass(frozen=True, eq=False)
class SceneRows:
    """Scenes with their transform, decoded and resized when they are first needed.

    Args:
        samples: The scenes.
        transform: The transform.
        cached_images: Resized images, shape (h, w, 3) each.
        cached_maps: Resized label maps, shape (h, w) each.
    """

    samples: SceneSamples
    transform: SceneTransform
    cached_images: ArrayCache
    cached_maps: ArrayCache

    def images(self, index: Positions) -> NDArray[np.uint8]:
        """Return these images at the transform's size, shape (b, h, w, 3)."""
        # One file at a time: images in full size take much memory.
        return self.cached_images.fetch(
            index, lambda new: np.concatenate([self.transform.prepare(self.samples.read([place])) for place in new])
        )

    def maps(self, index: Positions) -> NDArray[np.uint8]:
        """Return their label maps at the same size, shape (b, h, w)."""
        if not self.samples.labelled:
            raise DataError("these scenes were opened without labels: only the source has them")
        return self.cached_maps.fetch(
            index,
            lambda new: np.concatenate(
                [self.transform.prepare_labels(self.samples.read_labels([place])) for place in new]
            ),
        )

    def augment(self, index: Positions, generator: torch.Generator) -> tuple[Tensor, Tensor]:
        """Return images in 0..255, (b, 3, h, w), and int64 labels, (b, h, w), augmented together in every batch."""
        pixels, labels = self.transform.augment(self.images(index), self.maps(index), generator)
        if labels is None:
            raise AssertionError("labels were given")
        return pixels, labels

    def pixels(self, index: Positions) -> Tensor:
        """Return images in 0..255 that are not augmented, shape (b, 3, h, w)."""
        return self.transform.pixels(self.images(index))

    def evaluate(self, index: Positions) -> Tensor:
        """Return normalised images that are not augmented, shape (b, 3, h, w)."""
        return self.transform.evaluate(self.images(index))


def make_scene_rows(samples: SceneSamples, transform: SceneTransform) -> SceneRows:
    """Return the rows of scenes, with caches where they fit into memory; nothing is decoded yet."""
    width, height = transform.size
    fits = fits_in_memory(len(samples), width * height * (4 if samples.labelled else 3))
    images = len(samples) if fits else 0
    maps = images if samples.labelled else 0
    return SceneRows(
        samples, transform, ArrayCache.make(images, (height, width, 3)), ArrayCache.make(maps, (height, width))
    )
