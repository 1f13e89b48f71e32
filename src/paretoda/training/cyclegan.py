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
    """Generators and judges after so many steps; the same for the same seed and batches.

    Args:
        source_batches: the source's images of each step; `patches` makes one.
        target_batches: the target's.
        steps: how many; 2,000 to 4,000 do for patches of 64x64.
        semantic: a network of the source, frozen and in evaluation mode: raw images (n, 3, h, w), values 0..255, to
            logits (n, K, ...). It must see the same before and after translation. None leaves that out.
        seed: of initial weights and pools.
        progress: called after each step.
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
        # Only the generators' gradients: neither the judges nor the frozen network collect any.
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
    """The terms of the generators' loss, already weighted, and both translations (into the target, into the source).

    Args:
        gan: both generators and both judges.
        source: images in -1..1, shape (n, 3, h, w).
        target: likewise.
        semantic: as in `train_cyclegan`.
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
    """Half of the distance from 1 of the scores of real images, and from 0 of those of translated ones."""
    return 0.5 * (realism_loss(judge(real), 1) + realism_loss(judge(fake), 0))


def realism_loss(scores: Tensor, wanted: float) -> Tensor:
    """Mean squared distance of a judge's scores from the wanted one (least-squares GAN)."""
    return (scores - wanted).square().mean()


def semantic_loss(semantic: Callable[[Tensor], Tensor], images: Tensor, translated: Tensor) -> Tensor:
    """Cross-entropy of what the frozen network says of translated images against its own decision on the originals.

    Args:
        semantic: raw images (n, 3, h, w) to logits (n, K, ...).
        images: before translation, values 0..255.
        translated: after it.
    """
    with torch.no_grad():
        decided = semantic(images).argmax(dim=1)
    return cross_entropy(semantic(translated), decided)


class ImagePool:
    """Earlier translations, so that judges do not forget what they once saw through.

    Args:
        size: how many it keeps.
        seed: of what it gives back.
    """

    def __init__(self, size: int, seed: int) -> None:
        self.size = size
        self.images: list[Tensor] = []
        self.chance = torch.Generator().manual_seed(seed)

    def __call__(self, images: Tensor) -> Tensor:
        """As many images: once the pool is full, half of them are swapped for stored ones.

        Args:
            images: translations, detached, shape (n, 3, h, w).
        """
        return torch.stack([self._swapped(image) for image in images])

    def _swapped(self, image: Tensor) -> Tensor:
        if len(self.images) < self.size:
            self.images.append(image)
            return image
        if torch.rand((), generator=self.chance) < 0.5:
            return image
        place = int(torch.randint(self.size, (), generator=self.chance))
        image, self.images[place] = self.images[place], image
        return image


def random_patches(images: Tensor, count: int = 4, side: int = 64, seed: int = 0) -> ImageBatches:
    """For each step random squares of random images, floating point.

    Args:
        images: raw, shape (N, 3, h, w), any type, values 0..255.
        count: squares a step.
        side: of a square; smaller images are taken whole in that direction.
        seed: of the draw.
    """
    height, width = images.shape[-2:]

    def of_step(step: int) -> Tensor:
        chance = torch.Generator().manual_seed(derive_seed(seed, "patches", step))
        which = torch.randint(len(images), (count,), generator=chance).tolist()
        tops = torch.randint(max(height - side, 0) + 1, (count,), generator=chance).tolist()
        lefts = torch.randint(max(width - side, 0) + 1, (count,), generator=chance).tolist()
        squares = [images[i, :, y : y + side, x : x + side] for i, y, x in zip(which, tops, lefts, strict=True)]
        return torch.stack(squares).float()

    return of_step
