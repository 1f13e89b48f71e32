"""Training of a CycleGAN between two domains, with CyCADA's semantic consistency (Hoffman et al., 2018)."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, l1_loss

from paretoda.core.seeds import derive_seed
from paretoda.models.cyclegan import CycleGan, from_raw, to_raw
from paretoda.training.seeding import isolated_rng, seed_everything

CYCLE = 10.0
IDENTITY = 5.0
POOL = 50
ImageBatches = Callable[[int], Tensor]
"""The raw images of a step, by its number: shape (n, 3, h, w), values 0..255."""
AfterStep = Callable[[int, Mapping[str, float]], None]
"""Called with the number of steps taken and the losses of the last one, by name."""


def train_cyclegan(
    source_batches: ImageBatches,
    target_batches: ImageBatches,
    steps: int,
    semantic: Callable[[Tensor], Tensor] | None = None,
    seed: int = 0,
    progress: AfterStep | None = None,
) -> CycleGan:
    """Train generators and discriminators; the result is the same for the same seed and batches.

    Args:
        source_batches: The source's images of each step; `random_patches` makes such a function.
        target_batches: The target's images of each step.
        steps: Number of steps; 2,000 to 4,000 suffice for patches of 64x64.
        semantic: Network of the source, frozen and in evaluation mode: raw images (n, 3, h, w), values 0..255, to
            logits (n, K, ...). It must predict the same before and after translation. None leaves that out.
        seed: Seed of initial weights and pools.
        progress: Called after each step.

    Returns:
        The networks, in evaluation mode.
    """
    device = source_batches(0).device
    with isolated_rng(device):
        seed_everything(seed, "cyclegan")
        gan = CycleGan().to(device)
    generators = [*gan.to_target.parameters(), *gan.to_source.parameters()]
    judges = [*gan.judge_target.parameters(), *gan.judge_source.parameters()]
    optimisers = [torch.optim.Adam(group, lr=2e-4, betas=(0.5, 0.999)) for group in (generators, judges)]
    pools = [ImagePool(POOL, derive_seed(seed, "pool", domain)) for domain in ("target", "source")]
    for step in range(steps):
        source, target = from_raw(source_batches(step)), from_raw(target_batches(step))
        terms, fakes = generator_losses(gan, source, target, semantic)
        # Only the generators get gradients, neither the discriminators nor the frozen network.
        _descend(optimisers[0], torch.stack(list(terms.values())).sum(), generators)
        seen = [pool(fake.detach()) for pool, fake in zip(pools, fakes, strict=True)]
        loss = judge_loss(gan.judge_target, target, seen[0]) + judge_loss(gan.judge_source, source, seen[1])
        _descend(optimisers[1], loss, judges)
        if progress is not None:
            progress(step + 1, {name: term.item() for name, term in (*terms.items(), ("judges", loss))})
    return gan.eval()


def _descend(optimiser: torch.optim.Optimizer, loss: Tensor, parameters: list[nn.Parameter]) -> None:
    optimiser.zero_grad()
    torch.autograd.backward(loss, inputs=parameters)
    optimiser.step()


def generator_losses(
    gan: CycleGan, source: Tensor, target: Tensor, semantic: Callable[[Tensor], Tensor] | None
) -> tuple[dict[str, Tensor], tuple[Tensor, Tensor]]:
    """Return the terms of the generators' loss, weighted, and both translations (into the target, into the source).

    Args:
        gan: Both generators and both discriminators.
        source: Images in -1..1, shape (n, 3, h, w).
        target: Images in -1..1, shape (n, 3, h, w).
        semantic: See `train_cyclegan`.
    """
    there, back = gan.to_target(source), gan.to_source(target)
    terms = {
        "adversarial": realism_loss(gan.judge_target(there), 1) + realism_loss(gan.judge_source(back), 1),
        "cycle": CYCLE * (l1_loss(gan.to_source(there), source) + l1_loss(gan.to_target(back), target)),
        "identity": IDENTITY * (l1_loss(gan.to_target(target), target) + l1_loss(gan.to_source(source), source)),
    }
    if semantic is not None:
        pairs = ((source, there), (target, back))
        terms["semantic"] = torch.stack(
            [semantic_loss(semantic, to_raw(images), to_raw(translated)) for images, translated in pairs]
        ).sum()
    return terms, (there, back)


def judge_loss(judge: nn.Module, real: Tensor, fake: Tensor) -> Tensor:
    """Half the sum of the squared distances of a discriminator's scores from 1 (real) and from 0 (translated)."""
    return 0.5 * (realism_loss(judge(real), 1) + realism_loss(judge(fake), 0))


def realism_loss(scores: Tensor, wanted: float) -> Tensor:
    """Mean squared distance of a discriminator's scores from the wanted one (least-squares GAN)."""
    return (scores - wanted).square().mean()


def semantic_loss(semantic: Callable[[Tensor], Tensor], images: Tensor, translated: Tensor) -> Tensor:
    """Cross-entropy of the frozen network's logits for translated images against its own decision on the originals.

    Args:
        semantic: Raw images (n, 3, h, w) -> logits (n, K, ...).
        images: Images before translation, values 0..255.
        translated: Images after translation.
    """
    with torch.no_grad():
        decided = semantic(images).argmax(dim=1)
    return cross_entropy(semantic(translated), decided)


class ImagePool:
    """Earlier translations, so that discriminators do not forget what they once recognised.

    Args:
        size: Number of images that it keeps.
        seed: Seed of what it returns.
    """

    def __init__(self, size: int, seed: int) -> None:
        self.size = size
        self.images: list[Tensor] = []
        self.generator = torch.Generator().manual_seed(seed)

    def __call__(self, images: Tensor) -> Tensor:
        """Return as many images; once the pool is full, half of them are swapped for stored ones.

        Args:
            images: Translations, detached, shape (n, 3, h, w).
        """
        return torch.stack([self._swap(image) for image in images])

    def _swap(self, image: Tensor) -> Tensor:
        if len(self.images) < self.size:
            self.images.append(image)
            return image
        if torch.rand((), generator=self.generator) < 0.5:
            return image
        place = int(torch.randint(self.size, (), generator=self.generator))
        image, self.images[place] = self.images[place], image
        return image


def random_patches(images: Tensor, count: int = 4, side: int = 64, seed: int = 0) -> ImageBatches:
    """Return a function that gives random squares of random images for each step, as floating point.

    Args:
        images: Raw images, shape (N, 3, h, w), any type, values 0..255.
        count: Number of squares per step.
        side: Side of a square; smaller images are taken whole in that direction.
        seed: Seed of the draw.
    """
    height, width = images.shape[-2:]

    def of_step(step: int) -> Tensor:
        generator = torch.Generator().manual_seed(derive_seed(seed, "patches", step))
        which = torch.randint(len(images), (count,), generator=generator).tolist()
        tops = torch.randint(max(height - side, 0) + 1, (count,), generator=generator).tolist()
        lefts = torch.randint(max(width - side, 0) + 1, (count,), generator=generator).tolist()
        squares = [images[i, :, y : y + side, x : x + side] for i, y, x in zip(which, tops, lefts, strict=True)]
        return torch.stack(squares).float()

    return of_step
