"""What is drawn in a street: ground, houses, trees, fences, poles, signs, cars, pedestrians and bicyclists."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from paretoda.data.drawn.brush import (
    BICYCLIST,
    BUILDING,
    CAR,
    FENCE,
    NEAREST,
    PAVEMENT,
    PEDESTRIAN,
    POLE,
    ROAD,
    SIGN,
    TREE,
    Brush,
    Colour,
    Point,
)
from paretoda.types import IGNORE

FAR = 110.0
_DEPTHS = np.geomspace(NEAREST, FAR, 24)
_FACADES = ("brick", "render", "stone")


@dataclass(frozen=True)
class Side:
    """One side of the street.

    Args:
        way: -1 for the left, 1 for the right.
        kerb: Metres from the camera to the edge of the road.
        walk: Width of the pavement.
        verge: Metres from the pavement to the houses.
        built: Share of its length that has houses.
    """

    way: int
    kerb: float
    walk: float
    verge: float
    built: float

    def at(self, metres: float) -> float:
        """Return how far to the right of the camera a place is that lies so many metres beyond the kerb."""
        return self.way * (self.kerb + metres)

    @property
    def line(self) -> float:
        """Where the houses stand."""
        return self.at(self.walk + self.verge)


def sample_side(way: int, rng: np.random.Generator) -> Side:
    """Return a random side: a street of houses, a road between trees, or an open place."""
    place = rng.choice(3, p=[0.58, 0.22, 0.2])
    kerb = rng.uniform(2.2, 4.0) if way < 0 else rng.uniform(4.0, 7.5)
    if place == 0:
        return Side(way, kerb, rng.uniform(1.8, 4.8), rng.choice([0.0, rng.uniform(0, 3)]), rng.uniform(0.85, 1))
    if place == 1:
        return Side(way, kerb, rng.uniform(0.8, 2.5), rng.uniform(2, 7), rng.uniform(0.1, 0.5))
    return Side(way, kerb + rng.uniform(3, 9), rng.uniform(0.5, 2.5), rng.uniform(2, 10), rng.uniform(0.3, 0.8))


def draw_ground(brush: Brush, sides: tuple[Side, Side], rng: np.random.Generator) -> None:
    """Draw the road, its marks, pavements and what lies beyond them."""
    paint = brush.paint
    left, right = sides
    for side in sides:
        label, material = (TREE, "grass") if rng.random() < 0.6 else (PAVEMENT, "pavement")
        _draw_band(brush, (side.at(0), side.way * 300.0), label, paint.colour(material, 20))
        _draw_band(brush, (side.at(0), side.at(side.walk)), PAVEMENT, paint.colour("pavement", 10))
    _draw_band(brush, (left.at(0), right.at(0)), ROAD, paint.colour("road", 10))
    middle = rng.uniform(-0.2, 0.8) * right.at(0) / 2 + rng.uniform(0.5, 1.5)
    phase, every, share = rng.uniform(0, 6), rng.uniform(4, 9), rng.uniform(0.3, 0.7)
    for start in np.arange(2 - phase, 60, every):
        _draw_stripe(brush, (middle - 0.08, middle + 0.08), (start, start + every * share))
    for side in sides:
        if rng.random() < 0.6:
            _draw_stripe(brush, (side.at(-0.45), side.at(-0.3)), (NEAREST, 60))
    if rng.random() < 0.2:
        near = rng.uniform(6, 20)
        for x in np.arange(left.at(0), right.at(0), 1.2):
            _draw_stripe(brush, (x, x + 0.6), (near, near + 3))
    for _ in range(rng.integers(0, 4)):
        x, near = rng.uniform(left.at(-0.5), right.at(-0.5)), rng.uniform(5, 18)
        _draw_stripe(brush, (x, x + rng.uniform(0.15, 1.2)), (near, near + rng.uniform(0.4, 3)))


def _draw_band(brush: Brush, x: tuple[float, float], label: int, colour: Colour) -> None:
    edge = [(x[0], 0.0, float(z)) for z in _DEPTHS]
    brush.polygon([*edge, *((x[1], 0.0, float(z)) for z in _DEPTHS[::-1])], label, colour)


def _draw_stripe(brush: Brush, x: tuple[float, float], z: tuple[float, float]) -> None:
    if z[1] > NEAREST:
        steps = np.linspace(max(z[0], NEAREST), z[1], 2 if z[1] - z[0] < 8 else 12)
        edge = [(x[0], 0.0, float(depth)) for depth in steps]
        colour = brush.paint.colour("mark", float(steps[0]))
        brush.polygon([*edge, *((x[1], 0.0, float(depth)) for depth in steps[::-1])], ROAD, colour)


def draw_skyline(brush: Brush, rng: np.random.Generator) -> None:
    """Draw low trees and houses where the street ends, across the whole canvas."""
    x = -120.0
    while x < 120:
        width, height = rng.uniform(6, 30), rng.uniform(2.5, 11)
        if rng.random() < 0.55:
            discs = [
                ((x + rng.uniform(0, width), rng.uniform(0, 1) * height, FAR), (rng.uniform(3, 7), height * 0.5))
                for _ in range(6)
            ]
            brush.crown(discs, (brush.paint.colour("leaf", FAR), brush.paint.colour("twig", FAR)))
        else:
            brush.upright((x, x + width), (0, height), FAR, BUILDING, brush.paint.colour("stone", FAR))
        x += width * 0.9


def draw_houses(brush: Brush, side: Side, rng: np.random.Generator) -> None:
    """Draw a row of houses along the street, with gaps, from the far end."""
    plots = []
    z = rng.uniform(0, 6)
    tall = rng.uniform(7, 15)
    while z < 95:
        length = rng.uniform(7, 20)
        if rng.random() < side.built:
            plots.append((z, length, tall * rng.uniform(0.65, 1.4), side.way * max(0.0, rng.normal(0, 0.8))))
        z += length
    for start, length, height, back in reversed(plots):
        _draw_house(brush, (side.line + back, side.way), (start, start + length), height, rng)


def _draw_house(
    brush: Brush, place: tuple[float, int], z: tuple[float, float], height: float, rng: np.random.Generator
) -> None:
    x, way = place
    near = max(z[0], NEAREST)
    paint = brush.paint
    material = _FACADES[rng.integers(len(_FACADES))]
    shade = paint.sides[(way + 1) // 2]
    wall = paint.colour(material, near, shade)
    if rng.random() < 0.5:  # a sloping roof and its gable
        top = height + rng.uniform(1, 3)
        ridge = [(x, height, near), (x, height, z[1]), (x + 3 * way, top, z[1]), (x + 3 * way, top, near)]
        brush.polygon(ridge, BUILDING, paint.colour("roof", near, shade))
        gable = [(x, height, near), (x + 3 * way, top, near), (x + 6 * way, height, near)]
        brush.polygon(gable, BUILDING, wall)
    front = sorted((x, x + 12 * way))
    brush.upright((front[0], front[1]), (0, height), near, BUILDING, paint.colour(material, near, 0.8))
    bays = np.linspace(near, z[1], max(2, round((z[1] - near) / 3) + 1))
    floors = max(1, round(height / 3))
    storey = height / floors
    shop = rng.random() < 0.4
    for start, end in pairwise(bays.tolist()):
        _draw_pane(brush, x, (start, end), (0, height), wall)
        for floor in range(floors):
            base, tall = (0.3, 0.75) if shop and floor == 0 else (0.3, 0.5)
            rim = (end - start) * (0.08 if shop and floor == 0 else 0.28)
            rows = (storey * (floor + base), storey * (floor + base + tall - 0.05))
            _draw_pane(brush, x, (start + rim, end - rim), rows, paint.colour("glass", start, shade))
    if shop:
        _draw_pane(brush, x, (near, z[1]), (storey * 1.02, storey * 1.15), paint.colour("frame", near, shade))


def _draw_pane(
    brush: Brush, x: float, z: tuple[float, float], y: tuple[float, float], colour: tuple[int, int, int]
) -> None:
    corners = [(x, y[0], z[0]), (x, y[1], z[0]), (x, y[1], z[1]), (x, y[0], z[1])]
    brush.polygon(corners, BUILDING, colour)


def draw_tree(brush: Brush, x: float, z: float, rng: np.random.Generator) -> None:
    """Draw a trunk and a crown, in leaf or bare."""
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


def draw_hedge(brush: Brush, side: Side, rng: np.random.Generator) -> None:
    """Draw a strip of bushes behind the pavement."""
    start, high = rng.uniform(3, 30), rng.uniform(0.8, 2.2)
    for z in np.arange(start + rng.uniform(8, 40), start, -1.5):
        x = side.at(side.walk + 0.6)
        discs = [((x, high * 0.4, z), (rng.uniform(0.8, 1.3), high * rng.uniform(0.5, 0.75)))]
        brush.crown(discs, (brush.paint.colour("leaf", z), brush.paint.colour("leaf", z, 0.5)))


def draw_fence(brush: Brush, side: Side, rng: np.random.Generator) -> None:
    """Draw a wall or railings behind the pavement."""
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


def draw_lamp(brush: Brush, x: float, z: float, rng: np.random.Generator) -> None:
    """Draw a street lamp: a pole and an arm over the road."""
    height, arm = rng.uniform(5, 9), rng.uniform(0.3, 1.6)
    colour = brush.paint.colour("pole", z)
    brush.upright((x - 0.06, x + 0.06), (0, height), z, POLE, colour)
    ends = sorted((x, x - np.sign(x) * arm))
    brush.upright((ends[0], ends[1]), (height - 0.12, height + 0.06), z, POLE, colour)


def draw_sign(brush: Brush, x: float, z: float, rng: np.random.Generator) -> None:
    """Draw a road sign, a traffic light or a board on a pole."""
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


def draw_hanging_sign(brush: Brush, side: Side, z: float, rng: np.random.Generator) -> None:
    """Draw a board that stands out from a house."""
    width, height, low = rng.uniform(0.6, 1.3), rng.uniform(0.5, 1.3), rng.uniform(2.6, 4.2)
    ends = sorted((side.line, side.line - side.way * width))
    brush.upright((ends[0], ends[1]), (low, low + height), z, SIGN, brush.paint.colour("sign", z))


def draw_clutter(brush: Brush, x: float, z: float, rng: np.random.Generator) -> None:
    """Draw a bollard, which is a pole, or something that has no class: a bin, a box."""
    if rng.random() < 0.5:
        brush.upright((x - 0.1, x + 0.1), (0, rng.uniform(0.8, 1.2)), z, POLE, brush.paint.colour("pole", z))
    else:
        half = rng.uniform(0.2, 0.6)
        brush.upright((x - half, x + half), (0, rng.uniform(0.8, 1.6)), z, IGNORE, brush.paint.colour("void", z))


def draw_vehicle(brush: Brush, x: float, z: float, rng: np.random.Generator) -> None:
    """Draw a car, now and then a van or a bus, seen from behind, in front or the side, with its shadow."""
    kind = rng.choice(3, p=[0.88, 0.10, 0.02])
    length, width, body, top = ((4.1, 1.75, 0.85, 1.45), (5.0, 1.95, 1.2, 2.3), (10.0, 2.5, 1.3, 4.1))[kind]
    across = kind == 0 and rng.random() < 0.15
    size = rng.uniform(0.92, 1.1)
    length, width, body, top = size * length, size * width, size * body, size * top
    if across:
        length, width = width, length
    paint = brush.paint
    colour, shaded = paint.colour("car", z), paint.colour("shadow", z)
    z = max(z, NEAREST)
    left, right = x - width / 2, x + width / 2
    brush.polygon(
        [
            (left - 0.2, 0, z - 0.3),
            (right + 0.2, 0, z - 0.3),
            (right + 0.2, 0, z + length),
            (left - 0.2, 0, z + length),
        ],
        None,
        shaded,
    )
    _draw_box(brush, (left, right), (0.25, body), (z, z + length), (colour, _darken(colour)))
    slope = 0.12 if kind == 0 else 0.03
    cabin = (left + slope * width, right - slope * width)
    depth = (z + length * (0.06 if kind == 0 else 0.0), z + length * (0.75 if kind == 0 else 1.0))
    _draw_box(brush, cabin, (body, top), depth, (colour, _darken(colour)))
    glass = paint.colour("glass", z)
    rim = 0.12 * (top - body)
    brush.upright((cabin[0] + rim, cabin[1] - rim), (body + rim, top - rim), depth[0], None, glass)
    inner = cabin[0] if x > 0 else cabin[1]
    brush.polygon(_side_corners(inner, (body + rim, top - rim), (depth[0] + 0.2, depth[1] - 0.2)), None, _darken(glass))
    _draw_wheels(brush, (left, right), (z, z + length), across)
    if not across:
        lamp = paint.colour("sign" if rng.random() < 0.6 else "frame", z)
        for edge in (left + 0.05, right - 0.3):
            brush.upright((edge, edge + 0.25), (body * 0.7, body * 0.9), z, None, lamp)


def _draw_box(
    brush: Brush,
    x: tuple[float, float],
    y: tuple[float, float],
    z: tuple[float, float],
    colours: tuple[Colour, Colour],
) -> None:
    """Draw a box: first the sides, then the top and the end that faces the camera."""
    for edge in x:
        brush.polygon(_side_corners(edge, y, z), CAR, colours[1])
    brush.polygon([(x[0], y[1], z[0]), (x[1], y[1], z[0]), (x[1], y[1], z[1]), (x[0], y[1], z[1])], CAR, colours[0])
    brush.upright(x, y, z[0], CAR, colours[0])


def _side_corners(x: float, y: tuple[float, float], z: tuple[float, float]) -> list[Point]:
    return [(x, y[0], z[0]), (x, y[1], z[0]), (x, y[1], z[1]), (x, y[0], z[1])]


def _draw_wheels(brush: Brush, x: tuple[float, float], z: tuple[float, float], across: bool) -> None:
    tyre = brush.paint.colour("tyre", z[0])
    width = x[1] - x[0]
    if across:
        for share in (0.2, 0.8):
            brush.disc((x[0] + share * width, 0.3, z[0]), 0.32, CAR, tyre)
        return
    inner = x[0] if x[0] > 0 else x[1]
    for share in (0.82, 0.18):
        brush.disc((inner, 0.3, z[0] + share * (z[1] - z[0])), (0.2, 0.3), CAR, tyre)
    for edge in (x[0] + 0.02, x[1] - 0.27):
        brush.upright((edge, edge + 0.25), (0, 0.3), z[0], CAR, tyre)


def draw_pedestrian(brush: Brush, x: float, z: float, rng: np.random.Generator) -> None:
    """Draw a pedestrian."""
    _draw_person(brush, (x, z), rng.uniform(1.5, 1.9), PEDESTRIAN, rng.uniform(0.05, 0.3))


def draw_bicyclist(brush: Brush, x: float, z: float, rng: np.random.Generator) -> None:
    """Draw a person on a bicycle, seen along or across the road."""
    aside = rng.random() < 0.3
    tyre = brush.paint.colour("tyre", z)
    offsets = (-0.55, 0.55) if aside else (0.0,)
    for offset in offsets:
        brush.disc((x + offset, 0.34, z), (0.34 if aside else 0.09, 0.34), BICYCLIST, tyre)
    if aside:
        brush.upright((x - 0.5, x + 0.5), (0.55, 0.68), z, BICYCLIST, tyre)
    else:
        brush.upright((x - 0.28, x + 0.28), (0.95, 1.05), z, BICYCLIST, tyre)
    _draw_person(brush, (x, z), rng.uniform(1.65, 1.85), BICYCLIST, 0.16, lowest=0.4)


def _draw_person(
    brush: Brush, place: tuple[float, float], height: float, label: int, stride: float, lowest: float = 0.0
) -> None:
    x, z = place
    paint = brush.paint
    trousers, coat, skin = paint.colour("clothes", z), paint.colour("clothes", z), paint.colour("skin", z)
    hip, neck = lowest + 0.47 * (height - lowest), height - 0.27
    for way in (-1, 1):
        foot = x + way * stride
        leg = [(x - 0.16, hip, z), (x + 0.16, hip, z), (foot + 0.1, lowest, z), (foot - 0.1, lowest, z)]
        brush.polygon(leg, label, trousers)
    brush.upright((x - 0.23, x + 0.23), (hip - 0.05, neck), z, label, coat)
    brush.disc((x, height - 0.14, z), (0.11, 0.15), label, skin)


def _darken(colour: Colour) -> Colour:
    return tuple(np.multiply(colour, 0.72).astype(int).tolist())
