"""Self-training of pixels with an averaged teacher: mixed images (DACS) and masked images (MIC)."""

from __future__ import annotations

from abc import abstractmethod

import torch
from torch import Tensor
from torch.nn import functional

from paretoda.maps import resize_maps
from paretoda.objectives.target.mean_teacher import MeanTeacher, find_taught
from paretoda.types import IGNORE, Batch, Lesson, Source, Target

_JITTER = 0.25
"""Largest change of the contrast of a changed image, and of the brightness of its channels, in deviations."""


def mix_classes(labels: Tensor) -> Tensor:
    """Choose half of the classes of every label map, at random, and return where they are.

    Args:
        labels: Labels, shape (n, H, W), `IGNORE` where there is none, which is never chosen.

    Returns:
        Shape (n, H, W), True where a pixel has a chosen class; of an odd number of classes the larger half is chosen.

    Examples:
        >>> mix_classes(torch.tensor([[[3, 3, IGNORE]]]))
        tensor([[[ True,  True, False]]])
    """
    found = torch.zeros_like(labels, dtype=torch.bool)
    for place, own in enumerate(labels):
        classes = own.unique()
        classes = classes[classes != IGNORE]
        chosen = classes[torch.randperm(len(classes))[: (len(classes) + 1) // 2].to(classes.device)]
        found[place] = torch.isin(own, chosen)
    return found


def mask_blocks(size: tuple[int, int, int], block: int, share: float) -> Tensor:
    """Choose square blocks of images at random, each with the same probability.

    Args:
        size: Number of images, height and width.
        block: Side of the blocks, which begin at the upper left corner.
        share: Probability of a block.

    Returns:
        Shape (n, H, W), True inside the chosen blocks.

    Examples:
        >>> mask_blocks((1, 4, 6), block=2, share=1.0).all()
        tensor(True)
    """
    count, height, width = size
    blocks = torch.rand(count, 1, -(-height // block), -(-width // block)) < share
    whole = functional.interpolate(blocks.float(), scale_factor=block)[:, 0]
    return whole[:, :height, :width].bool()


def jitter_colours(inputs: Tensor, strength: float) -> Tensor:
    """Change the contrast of every image and the brightness of its channels, at random.

    Args:
        inputs: Normalised images, shape (n, 3, H, W).
        strength: Contrast changes by a factor of 1 ± strength, brightness by ± strength deviations.
    """
    shape = (len(inputs), 1, 1, 1), (len(inputs), inputs.shape[1], 1, 1)
    contrast, brightness = ((2 * torch.rand(size) - 1).to(inputs) * strength for size in shape)
    return inputs * (1 + contrast) + brightness


class SelfTraining(MeanTeacher):
    """Cross-entropy of changed target images to the labels of the averaged teacher, over all pixels.

    Labels of the teacher count as much as the share of the batch's pixels that it is confident of: little in the
    beginning, and more and more.

    Args:
        features: Width of the features (not used).
        classes: Number of classes K (not used).
        strength: Factor of the value and the gradient.
        confidence: The teacher is confident of a pixel whose largest probability is above this.
        jitter: Strength of the change of colours, 0 for none.

    Raises:
        ValueError: The strength or the jitter is negative, or the confidence is no probability.
    """

    def __init__(
        self,
        features: int,
        classes: int,
        *,
        strength: float = 1.0,
        confidence: float = 0.968,
        jitter: float = _JITTER,
    ) -> None:
        super().__init__(features, classes, strength=strength, confidence=confidence)
        if jitter < 0:
            raise ValueError(f"jitter is 0 or more, not {jitter}")
        self.jitter = jitter

    def lesson(self, batch: Batch, probabilities: Tensor) -> Lesson:
        """Return changed images, with the teacher's labels and their weight; the colours of all are changed."""
        height, width = batch.target.shape[-2:]
        largest, labels = resize_maps(probabilities, (height, width)).max(1)
        share = (largest > self.confidence).float().mean()
        inputs, labels, weights = self.change(batch, labels, share.expand(labels.shape))
        return Lesson(jitter_colours(inputs, self.jitter) if self.jitter else inputs, labels, weights)

    @abstractmethod
    def change(self, batch: Batch, labels: Tensor, weights: Tensor) -> Lesson:
        """Return the changed images with their labels and weights.

        Args:
            batch: Batch of the step.
            labels: The teacher's labels of the target's images, shape (n, H, W).
            weights: Their weights, of the same shape.
        """

    def forward(self, source: Source, target: Target) -> Tensor:  # noqa: ARG002
        """Return the strength times the mean of weight times cross-entropy over all pixels.

        Raises:
            TypeError: The target has no labels of a teacher.
        """
        taught = find_taught(target)
        height, width = taught.labels.shape[-2:]
        logits = resize_maps(taught.logits, (height, width))
        losses = functional.cross_entropy(logits, taught.labels, ignore_index=IGNORE, reduction="none")
        return self.strength * (taught.weights * losses).mean()

    def extra_repr(self) -> str:
        """Return the settings that `repr` shows."""
        return f"{super().extra_repr()}, jitter={self.jitter}"


class Dacs(SelfTraining):
    """DACS (Tranheden et al., 2021): half of the classes of a source image are pasted onto a target image.

    Pasted pixels have the source's labels with weight 1, the others the teacher's. Arguments as for `SelfTraining`.

    Examples:
        >>> source, target = torch.ones(1, 3, 2, 2), torch.zeros(1, 3, 2, 2)
        >>> index, labels = torch.arange(1), torch.tensor([[[1, 1], [IGNORE, IGNORE]]])
        >>> batch = Batch(source, labels, target, None, index, index, None)
        >>> dacs = Dacs(features=4, classes=2, jitter=0.0)
        >>> inputs, labels, weights = dacs.lesson(batch, torch.tensor([0.6, 0.4]).expand(1, 2, 2, 2).mT)
        >>> labels, weights, inputs[0, 0]
        (tensor([[[1, 1],
                 [0, 0]]]), tensor([[[1., 1.],
                 [0., 0.]]]), tensor([[1., 1.],
                [0., 0.]]))
    """

    def change(self, batch: Batch, labels: Tensor, weights: Tensor) -> Lesson:
        """Paste half of the source's classes onto the target's images.

        Raises:
            ValueError: Source and target differ in size or number.
        """
        if batch.source.shape != batch.target.shape:
            raise ValueError(
                "dacs pastes pixels of the source into images of the target, which must have the same size: leave out "
                "--source-size, or make it that of --size"
            )
        pasted = mix_classes(batch.labels)
        return Lesson(
            batch.source.where(pasted[:, None], batch.target),
            batch.labels.where(pasted, labels),
            weights.masked_fill(pasted, 1.0),
        )


class Mic(SelfTraining):
    """MIC (Hoyer et al., 2023): blocks of a target image are hidden, and the labels are those of the whole image.

    Args:
        features: Width of the features (not used).
        classes: Number of classes K (not used).
        strength: Factor of the value and the gradient.
        confidence: The teacher is confident of a pixel whose largest probability is above this.
        jitter: Strength of the change of colours, 0 for none.
        block: Side of the blocks in pixels; the paper has 64 for images of 1024x512.
        share: Share of the blocks that are hidden.

    Raises:
        ValueError: An argument is out of range.

    Examples:
        >>> index = torch.arange(1)
        >>> batch = Batch(*torch.ones(2, 1, 3, 4, 4), torch.ones(1, 3, 4, 4), None, index, index, None)
        >>> lesson = Mic(features=4, classes=2, jitter=0.0, share=1.0).lesson(batch, torch.full((1, 2, 2, 2), 0.5))
        >>> lesson.inputs.abs().sum(), lesson.labels.shape
        (tensor(0.), torch.Size([1, 4, 4]))
    """

    def __init__(
        self,
        features: int,
        classes: int,
        *,
        strength: float = 1.0,
        confidence: float = 0.968,
        jitter: float = _JITTER,
        block: int = 16,
        share: float = 0.7,
    ) -> None:
        super().__init__(features, classes, strength=strength, confidence=confidence, jitter=jitter)
        if block < 1:
            raise ValueError(f"block is a number of pixels, at least 1, not {block}")
        if not 0 <= share <= 1:
            raise ValueError(f"share is a share of the blocks, from 0 to 1, not {share}")
        self.block, self.share = block, share

    def change(self, batch: Batch, labels: Tensor, weights: Tensor) -> Lesson:
        """Hide blocks of the target's images; hidden pixels have the mean colour."""
        count, _, height, width = batch.target.shape
        hidden = mask_blocks((count, height, width), self.block, self.share).to(batch.target.device)
        return Lesson(batch.target.masked_fill(hidden[:, None], 0.0), labels, weights)

    def extra_repr(self) -> str:
        """Return the settings that `repr` shows."""
        return f"{super().extra_repr()}, block={self.block}, share={self.share}"
