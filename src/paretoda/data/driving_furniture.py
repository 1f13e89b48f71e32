"""Trees, fences, poles and signs of a drawn driving scene."""

from __future__ import annotations

import numpy as np

from paretoda.data.driving_brush import FENCE, NEAREST, POLE, SIGN, TREE, Brush
from paretoda.data.driving_street import Side
from paretoda.domains import IGNORE


def tree(brush: Brush, x: float, z: float, rng: np.random.Generator) -> None:
    """A trunk and a crown, in leaf or bare."""
    height = rng.uniform(4.5, 15)
    width = height * rng.uniform(0.22, 0.42)
    middle = height * rng.uniform(0.5, 0.66)
    trunk = rng.uniform(0.1, 0.25)
    bare = rng.random() < 0.6
    brush.upright((x - trunk, x + trunk), (0, middle), z, TREE, brush.paint.colour("twig", z, 0.7))
    discs = []
    for _ in range(9):
        turn, out = rng.uniform(0, 2 * np.pi), rng.uniform(0.2, 0.75)
        centre = (x + width * out * np.cos(turn), middle + (height - middle) * out * np.sin(turn), z)
        discs.append((centre, (width * rng.uniform(0.3, 0.6), (height - middle) * rng.uniform(0.3, 0.6))))
    material = "twig" if bare else "leaf"
    brush.crown(discs, (brush.paint.colour(material, z), brush.paint.colour(material, z, 0.5)))


def hedge(brush: Brush, side: Side, rng: np.random.Generator) -> None:
    """A strip of bushes behind the pavement."""
    start, high = rng.uniform(3, 30), rng.uniform(0.8, 2.2)
    for z in np.arange(start + rng.uniform(8, 40), start, -1.5):
        x = side.at(side.walk + 0.6)
        discs = [((x, high * 0.4, z), (rng.uniform(0.8, 1.3), high * rng.uniform(0.5, 0.75)))]
        brush.crown(discs, (brush.paint.colour("leaf", z), brush.paint.colour("leaf", z, 0.5)))


def fence(brush: Brush, side: Side, rng: np.random.Generator) -> None:
    """A wall or railings behind the pavement."""
    start, high = rng.uniform(2, 25), rng.uniform(0.9, 2.3)
    end = start + rng.uniform(8, 40)
    x = side.at(side.walk)
    solid = rng.random() < 0.5
    colour = brush.paint.colour("fence", start)
    steps = np.linspace(max(start, NEAREST), end, 12)
    edge = [(x, high, float(z)) for z in steps]
    brush.polygon([*edge, *((x, 0.0, float(z)) for z in steps[::-1])], FENCE, colour)
    gap = brush.paint.colour("grass", start, 0.8)
    for z in () if solid else np.arange(start, end, 0.7):
        brush.polygon([(x, 0.15, z), (x, high - 0.1, z), (x, high - 0.1, z + 0.4), (x, 0.15, z + 0.4)], None, gap)


def lamp(brush: Brush, x: float, z: float, rng: np.random.Generator) -> None:
    """A street lamp: a pole and an arm over the road."""
    height, arm = rng.uniform(5, 9), rng.uniform(0.3, 1.6)
    colour = brush.paint.colour("pole", z)
    brush.upright((x - 0.06, x + 0.06), (0, height), z, POLE, colour)
    ends = sorted((x, x - np.sign(x) * arm))
    brush.upright((ends[0], ends[1]), (height - 0.12, height + 0.06), z, POLE, colour)


def sign(brush: Brush, x: float, z: float, rng: np.random.Generator) -> None:
    """A road sign, a traffic light or a board on a pole."""
    low, kind = rng.uniform(1.9, 3.0), rng.choice(4, p=[0.4, 0.3, 0.2, 0.1])
    brush.upright((x - 0.06, x + 0.06), (0, low + 0.3), z, POLE, brush.paint.colour("pole", z))
    colour, inner = brush.paint.colour("sign", z), brush.paint.colour("frame", z)
    if kind == 0:
        size = rng.uniform(0.35, 0.55)
        brush.disc((x, low + size, z), size, SIGN, colour)
        brush.disc((x, low + size, z), size * 0.6, None, inner)
    elif kind == 1:  # a traffic light
        brush.upright((x - 0.22, x + 0.22), (low, low + 1.1), z, SIGN, brush.paint.colour("tyre", z))
        lit = low + 0.2 + 0.35 * rng.integers(3)
        brush.disc((x, lit, z), 0.12, None, colour)
    else:
        width, height = rng.uniform(0.5, 0.9), rng.uniform(0.7, 1.2 if kind == 2 else 2.6)
        brush.upright((x - width, x + width), (low, low + height), z, SIGN, colour)
        brush.upright((x - width * 0.7, x + width * 0.7), (low + height * 0.4, low + height * 0.7), z, None, inner)


def hanging_sign(brush: Brush, side: Side, z: float, rng: np.random.Generator) -> None:
    """A board that stands out from a house."""
    width, height, low = rng.uniform(0.6, 1.3), rng.uniform(0.5, 1.3), rng.uniform(2.6, 4.2)
    ends = sorted((side.line, side.line - side.way * width))
    brush.upright((ends[0], ends[1]), (low, low + height), z, SIGN, brush.paint.colour("sign", z))


def clutter(brush: Brush, x: float, z: float, rng: np.random.Generator) -> None:
    """A bollard, which is a pole, or something that has no class: a bin, a box."""
    if rng.random() < 0.5:
        brush.upright((x - 0.1, x + 0.1), (0, rng.uniform(0.8, 1.2)), z, POLE, brush.paint.colour("pole", z))
    else:
        half = rng.uniform(0.2, 0.6)
        brush.upright((x - half, x + half), (0, rng.uniform(0.8, 1.6)), z, IGNORE, brush.paint.colour("void", z))
