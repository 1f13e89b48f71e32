"""Drawn driving scenes with label maps, in CamVid's classes: a labelled source that needs no files.

The seed alone determines every shape and so the label map; `gap` changes colours, texture, light, blur and noise.
Scenes of gap 1 and of gap 0 thus differ in appearance only.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
from numpy.typing import NDArray

from paretoda.data.drawn.brush import Brush, Camera, Paint
from paretoda.data.drawn.street_objects import (
    Side,
    draw_bicyclist,
    draw_clutter,
    draw_fence,
    draw_ground,
    draw_hanging_sign,
    draw_hedge,
    draw_houses,
    draw_lamp,
    draw_pedestrian,
    draw_sign,
    draw_skyline,
    draw_tree,
    draw_vehicle,
    sample_side,
)
from paretoda.errors import DataError
from paretoda.types import IGNORE

DRIVING_CLASSES = (
    *("sky", "building", "pole", "road", "pavement", "tree"),
    *("sign_symbol", "fence", "car", "pedestrian", "bicyclist"),
)
Pixels = NDArray[np.uint8]
_Thing = tuple[float, Callable[[], None]]
_FINE = 2  # everything is drawn at twice the size, so that edges are smooth


def draw_driving_scenes(
    count: int, seed: int = 0, gap: float = 0.5, size: tuple[int, int] = (120, 160)
) -> tuple[Pixels, Pixels]:
    """Draw scenes; a larger count begins with the same scenes.

    Args:
        count: Number of scenes.
        seed: Seed of all of them together.
        gap: 0..1, from camera-like to flat and saturated.
        size: Height and width.

    Returns:
        Images (count, h, w, 3) and label maps (count, h, w).

    Examples:
        >>> images, maps = draw_driving_scenes(2, size=(16, 16))
        >>> images.shape, maps.shape, DRIVING_CLASSES[3]
        ((2, 16, 16, 3), (2, 16, 16), 'road')
    """
    seeds = np.random.SeedSequence(seed).generate_state(max(count, 1), np.uint64)[:count]
    scenes = [draw_driving_scene(int(own), gap, size) for own in seeds]
    x = np.array([image for image, _ in scenes], dtype=np.uint8).reshape(count, *size, 3)
    y = np.array([labels for _, labels in scenes], dtype=np.uint8).reshape(count, *size)
    return x, y


def draw_driving_scene(seed: int, gap: float = 0.5, size: tuple[int, int] = (120, 160)) -> tuple[Pixels, Pixels]:
    """Draw an image (h, w, 3) and its label map (h, w), with `IGNORE` where there is no class.

    Args:
        seed: Seed of the scene; it alone determines the label map.
        gap: 0 = muted, textured, shaded, blurred and noisy like a camera's image; 1 = flat and saturated.
        size: Height and width, at least 16 each.

    Raises:
        DataError: The gap or the size is out of its range.
    """
    if not 0 <= gap <= 1:
        raise DataError(f"gap is {gap}: choose a number from 0 (camera-like) to 1 (flat and saturated)")
    if min(size) < 16:
        raise DataError(f"a driving scene of {size[0]}x{size[1]} pixels shows nothing: choose at least 16x16")
    rng = np.random.default_rng([seed, 0])
    paint = Paint(np.random.default_rng([seed, 1]), gap)
    fine = (_FINE * size[0], _FINE * size[1])
    brush = Brush(fine, _sample_camera(fine, rng), paint)
    sides = (sample_side(-1, rng), sample_side(1, rng))
    draw_skyline(brush, rng)
    draw_ground(brush, sides, rng)
    for side in sides:
        draw_houses(brush, side, rng)
        _draw_verge(brush, side, rng)
    for _, draw in sorted(_sample_things(brush, sides, rng), key=lambda thing: -thing[0]):
        draw()
    _draw_bonnet(brush, rng)
    labels = np.asarray(brush.labels)
    return paint.develop(brush.image, labels, size), labels[1::_FINE, 1::_FINE].copy()


def _sample_camera(size: tuple[int, int], rng: np.random.Generator) -> Camera:
    height, width = size
    return Camera(
        focal=width * rng.uniform(0.95, 1.2),
        centre=width * rng.uniform(0.38, 0.62),
        horizon=height * rng.uniform(0.5, 0.58),
        above=rng.uniform(1.3, 1.7),
        bend=rng.normal(0, 0.002),
    )


def _draw_verge(brush: Brush, side: Side, rng: np.random.Generator) -> None:
    """Draw trees between the houses and the pavement, bushes, and fences in front of them."""
    room = side.verge + (6 if side.built < 0.6 else 0)
    number = rng.poisson(8 * (1 - side.built) + 0.5)
    for z in sorted(rng.uniform(8, 60, number), reverse=True):
        draw_tree(brush, side.at(side.walk + rng.uniform(0.3, 0.5 + room)), float(z), rng)
    if rng.random() < 0.45 * (1.1 - side.built):
        draw_hedge(brush, side, rng)
    if rng.random() < 0.2 + 0.25 * (side.verge > 0):
        draw_fence(brush, side, rng)


def _sample_things(brush: Brush, sides: tuple[Side, Side], rng: np.random.Generator) -> list[_Thing]:
    """Return everything that stands or moves in the street: its distance, and how to draw it."""
    things: list[_Thing] = []

    def put(number: float, draw: Callable[..., None], x: Callable[[], float], z: tuple[float, float]) -> None:
        for _ in range(rng.poisson(number)):
            depth = float(np.exp(rng.uniform(*np.log(z))))
            things.append((depth, partial(draw, brush, x(), depth, rng)))

    left, right = sides
    for side in sides:
        edge = _sample_beyond(side, 0.2, 0.7, rng)
        put(1.5, draw_lamp, edge, (9, 60))
        put(1.3, draw_sign, edge, (8, 40))
        put(1.0, draw_clutter, _sample_beyond(side, 0.1, side.walk + 0.3, rng), (6, 40))
        put(3.2, draw_pedestrian, _sample_beyond(side, 0.3, max(side.walk, 0.8), rng), (7, 40))
        put(rng.choice([0.4, 2.5]), draw_vehicle, _sample_beyond(side, -1.6, -0.9, rng), (5, 60))  # parked
        put(0.6 if side.built > 0.6 else 0, _draw_board(side), lambda: 0.0, (8, 40))
    inner = (left.at(-1.5), right.at(-1.5))
    put(1.1, draw_vehicle, lambda: rng.uniform(*inner), (9, 60))
    put(0.35, draw_bicyclist, _sample_beyond(left, -1.3, 0.3, rng), (6, 35))
    put(0.25, draw_bicyclist, lambda: rng.uniform(*inner), (8, 40))
    put(0.15, draw_pedestrian, lambda: rng.uniform(*inner), (10, 40))
    return things


def _sample_beyond(side: Side, least: float, most: float, rng: np.random.Generator) -> Callable[[], float]:
    """Return a function that gives a random place so many metres beyond the kerb."""
    return lambda: side.at(rng.uniform(least, most))


def _draw_board(side: Side) -> Callable[[Brush, float, float, np.random.Generator], None]:
    return lambda brush, _, z, rng: draw_hanging_sign(brush, side, z, rng)


def _draw_bonnet(brush: Brush, rng: np.random.Generator) -> None:
    """Draw the car's own bonnet at the lower border, in some scenes."""
    if rng.random() < 0.15:
        height, width = brush.size
        top = height * rng.uniform(0.93, 0.99)
        outline = [(-1, height), (-1, top + height * 0.04), (width * rng.uniform(0.3, 0.7), top)]
        brush.flat([*outline, (width, top + height * 0.03), (width, height)], IGNORE, brush.paint.colour("void"))
