"""A small CycleGAN (Zhu et al., 2017), the translator of CyCADA's first stage: two generators and two discriminators.

The networks see images in -1..1; `CycleTranslation` takes and returns images in 0..255.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn.functional import interpolate

_INSIDE = 0.98  # atanh of 1 is infinite


class _Residual(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.change = nn.Sequential(*_convolution(width, width), nn.ReLU(), *_convolution(width, width))

    def forward(self, maps: Tensor) -> Tensor:
        change: Tensor = self.change(maps)
        return maps + change


def _convolution(before: int, after: int, stride: int = 1) -> tuple[nn.Module, ...]:
    layer = nn.Conv2d(before, after, 3, stride, padding=1, padding_mode="reflect")
    return layer, nn.InstanceNorm2d(after, affine=True)


class Generator(nn.Module):
    """Network from images (n, 3, h, w) in -1..1 to images of the same size and range; about 0.3 M parameters.

    Two strided convolutions, residual blocks and two enlargements produce a change of the image, which is 0 at first,
    so that an untrained generator is nearly the identity and content need not pass through the narrow middle.

    Args:
        width: Number of channels of the residual blocks.
        blocks: Number of residual blocks.

    Examples:
        >>> images = torch.zeros(1, 3, 16, 16)
        >>> torch.equal(Generator(width=8, blocks=1)(images), images)
        True
    """

    def __init__(self, width: int = 64, blocks: int = 4) -> None:
        super().__init__()
        half = width // 2
        self.down = nn.Sequential(*_convolution(3, half, 2), nn.ReLU(), *_convolution(half, width, 2), nn.ReLU())
        self.blocks = nn.Sequential(*(_Residual(width) for _ in range(blocks)))
        self.up = nn.Sequential(*_convolution(width, half), nn.ReLU())
        self.last = nn.Conv2d(half, 3, 3, padding=1, padding_mode="reflect")
        for parameter in self.last.parameters():
            nn.init.zeros_(parameter)

    def forward(self, images: Tensor) -> Tensor:
        """Return the translated images, of the same shape, in -1..1; h and w are at least 8."""
        height, width = images.shape[-2:]
        maps = self.blocks(self.down(images))
        maps = self.up(interpolate(maps, size=((height + 1) // 2, (width + 1) // 2), mode="nearest"))
        change: Tensor = self.last(interpolate(maps, size=(height, width), mode="nearest"))
        return torch.tanh(torch.atanh(images.clamp(-1, 1) * _INSIDE) + change)


def make_patch_discriminator(width: int = 32) -> nn.Sequential:
    """Build a PatchGAN of three layers: images (n, 3, h, w) to a map of scores, each of a patch of 22x22 pixels.

    Args:
        width: Number of channels of the first layer.
    """
    return nn.Sequential(
        nn.Conv2d(3, width, 4, 2, padding=1),
        nn.LeakyReLU(0.2),
        nn.Conv2d(width, 2 * width, 4, 2, padding=1),
        nn.InstanceNorm2d(2 * width, affine=True),
        nn.LeakyReLU(0.2),
        nn.Conv2d(2 * width, 1, 4, padding=1),
    )


class CycleGan(nn.Module):
    """Generators in both directions and a discriminator of each domain.

    Args:
        width: Number of channels of the generators' residual blocks.
        blocks: Number of their residual blocks.
    """

    def __init__(self, width: int = 64, blocks: int = 4) -> None:
        super().__init__()
        self.to_target = Generator(width, blocks)
        self.to_source = Generator(width, blocks)
        self.judge_target = make_patch_discriminator()
        self.judge_source = make_patch_discriminator()


class CycleTranslation:
    """Translation by a trained generator.

    Args:
        generator: Network from images in -1..1 to images in -1..1, such as `CycleGan.to_target`.
    """

    def __init__(self, generator: nn.Module) -> None:
        self.generator = generator.eval().requires_grad_(False)

    @torch.no_grad()
    def __call__(self, source: Tensor, target: Tensor, generator: torch.Generator) -> Tensor:  # noqa: ARG002
        """Return the translated images, shape (n, 3, h, w), values 0..255; the target and the generator are not used.

        Args:
            source: Raw images, shape (n, 3, h, w), values 0..255.
            target: Ignored; all translations have this argument.
            generator: Ignored; all translations have this argument.
        """
        return to_raw(self.generator(from_raw(source)))


def from_raw(images: Tensor) -> Tensor:
    """Map 0..255 to -1..1."""
    return images / 127.5 - 1


def to_raw(images: Tensor) -> Tensor:
    """Map -1..1 to 0..255."""
    return (images + 1) * 127.5
