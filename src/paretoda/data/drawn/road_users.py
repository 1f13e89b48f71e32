"""Road users of a drawn driving scene: cars, vans, buses, pedestrians and bicyclists."""

from __future__ import annotations

import numpy as np

from paretoda.data.drawn.brush import BICYCLIST, CAR, NEAREST, PEDESTRIAN, Brush, Colour, Point


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
