"""A camera above a road, and a brush that draws what it sees: a picture and its label map at once."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw

from paretoda.data.driving_paint import Colour, Paint

Point = tuple[float, float, float]
"""Metres to the right of the camera, above the ground, ahead."""
NEAREST = 1.5
SKY, BUILDING, POLE, ROAD, PAVEMENT, TREE, SIGN, FENCE, CAR, PEDESTRIAN, BICYCLIST = range(11)


@dataclass(frozen=True)
class Camera:
    """A pinhole; the road bends before it.

    Args:
        focal: in pixels.
        centre: column of the vanishing point.
        horizon: row of the horizon.
        above: metres above the ground.
        bend: curvature of the road, 1 / metres.
    """

    focal: float
    centre: float
    horizon: float
    above: float
    bend: float

    def __call__(self, point: Point) -> tuple[float, float]:
        """Column and row of a point; what is too near is seen as at the nearest place."""
        x, y, z = point
        z = max(z, NEAREST)
        x += self.bend * z * z / 2
        return self.centre + self.focal * x / z, self.horizon + self.focal * (self.above - y) / z


class Brush:
    """Draws shapes, near over far, in the order of the calls.

    Args:
        size: height and width of the canvas.
        camera: that sees it.
        paint: that gives the colours.
    """

    def __init__(self, size: tuple[int, int], camera: Camera, paint: Paint) -> None:
        self.camera = camera
        self.paint = paint
        self.size = size
        self.image = Image.new("RGB", size[::-1], paint.colour("sky"))
        self.labels = Image.new("L", size[::-1], SKY)
        self._colours = ImageDraw.Draw(self.image)
        self._names = ImageDraw.Draw(self.labels)

    def polygon(self, points: Iterable[Point], label: int | None, colour: Colour) -> None:
        """A flat shape in space; without a label it is a mark on what is there."""
        self.flat([self.camera(point) for point in points], label, colour)

    def flat(self, outline: Sequence[tuple[float, float]], label: int | None, colour: Colour) -> None:
        """A shape on the canvas."""
        limit = 4 * max(self.size)
        xy = [(min(max(x, -limit), limit), min(max(y, -limit), limit)) for x, y in outline]
        self._colours.polygon(xy, fill=colour)
        if label is not None:
            self._names.polygon(xy, fill=label)

    def upright(
        self, x: tuple[float, float], y: tuple[float, float], z: float, label: int | None, colour: Colour
    ) -> None:
        """A rectangle that faces the camera, at least a pixel of the final picture wide."""
        left, top = self.camera((x[0], y[1], z))
        right, bottom = self.camera((x[1], y[0], z))
        spare = max(0.0, self.size[1] / 160 - (right - left)) / 2
        box = [(left - spare, top), (right + spare, top), (right + spare, bottom), (left - spare, bottom)]
        self.flat(box, label, colour)

    def disc(self, centre: Point, radius: float | tuple[float, float], label: int | None, colour: Colour) -> None:
        """An ellipse that faces the camera, its radii in metres."""
        box = self.box(centre, radius)
        self._colours.ellipse(box, fill=colour)
        if label is not None:
            self._names.ellipse(box, fill=label)

    def box(self, centre: Point, radius: float | tuple[float, float]) -> tuple[float, float, float, float]:
        """Left, top, right and bottom of an ellipse."""
        x, y = self.camera(centre)
        across, up = radius if isinstance(radius, tuple) else (radius, radius)
        scale = self.camera.focal / max(centre[2], NEAREST)
        return x - across * scale, y - up * scale, x + across * scale, y + up * scale

    def crown(self, discs: Sequence[tuple[Point, tuple[float, float]]], colours: tuple[Colour, Colour]) -> None:
        """Foliage: its label covers all of it, its colours leave holes for what is behind.

        Args:
            discs: whose union it is.
            colours: of the light and of the dark half of it.
        """
        mask = Image.new("1", self.size[::-1])
        draw = ImageDraw.Draw(mask)
        for centre, radius in discs:
            draw.ellipse(self.box(centre, radius), fill=1)
        inside = mask.getbbox()
        if inside is None:
            return
        area: NDArray[np.bool_] = np.asarray(mask.crop(inside))
        seen = area & ~self.paint.holes((area.shape[0], area.shape[1]))
        dark = seen & (self.paint.rng.random(area.shape) < 0.4)
        self.labels.paste(TREE, inside, Image.fromarray(area))
        self.image.paste(colours[0], inside, Image.fromarray(seen))
        self.image.paste(colours[1], inside, Image.fromarray(dark))
