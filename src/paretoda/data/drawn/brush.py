"""Colours, textures, a camera above a road, and a brush that draws a picture and its label map at once."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFilter

Colour = tuple[int, int, int]
Floats = NDArray[np.float64]

# Appearance of a material: muted colour, spread of its brightness (in logarithms), saturated colour.
MATERIALS: dict[str, tuple[Colour, float, Colour]] = {
    "sky": ((240, 244, 246), 0.03, (90, 170, 255)),
    "brick": ((100, 84, 76), 0.50, (214, 84, 40)),
    "render": ((152, 148, 138), 0.40, (240, 196, 110)),
    "stone": ((92, 90, 85), 0.50, (205, 130, 80)),
    "roof": ((74, 68, 68), 0.30, (150, 50, 40)),
    "glass": ((40, 43, 48), 0.55, (110, 60, 60)),
    "frame": ((160, 158, 155), 0.40, (250, 220, 180)),
    "road": ((84, 87, 91), 0.20, (110, 105, 130)),
    "mark": ((190, 192, 192), 0.15, (250, 250, 250)),
    "pavement": ((96, 95, 92), 0.28, (230, 150, 215)),
    "grass": ((78, 86, 58), 0.25, (90, 215, 60)),
    "leaf": ((62, 68, 46), 0.35, (30, 165, 50)),
    "twig": ((88, 82, 76), 0.30, (60, 150, 40)),
    "pole": ((84, 86, 88), 0.55, (235, 225, 130)),
    "sign": ((78, 76, 84), 0.70, (240, 40, 70)),
    "fence": ((70, 68, 64), 0.45, (125, 110, 205)),
    "tyre": ((26, 26, 28), 0.20, (30, 20, 60)),
    "shadow": ((36, 37, 40), 0.15, (70, 65, 90)),
    "skin": ((120, 92, 80), 0.25, (250, 190, 150)),
    "void": ((48, 48, 50), 0.60, (90, 90, 90)),
}
_CLOTHES = ((60, 40, 90), (200, 30, 120), (40, 60, 60), (230, 200, 40), (120, 60, 20), (20, 130, 150))
_CARS = ((40, 60, 220), (220, 30, 40), (245, 245, 245), (30, 30, 50), (180, 190, 200), (30, 150, 90), (240, 190, 20))
_TEXTURE = np.array([0.005, 0.13, 0.15, 0.045, 0.08, 0.4, 0.15, 0.25, 0.12, 0.2, 0.2])
_FREEDOM = {"mark": 0.2, "tyre": 0.2, "shadow": 0.2, "road": 0.4, "grass": 0.5, "leaf": 0.5, "twig": 0.7}
_GREY = {"sky", "road", "mark", "pavement"}
_SKY = 0
Point = tuple[float, float, float]
"""Metres to the right of the camera, above the ground and ahead."""
NEAREST = 1.5
SKY, BUILDING, POLE, ROAD, PAVEMENT, TREE, SIGN, FENCE, CAR, PEDESTRIAN, BICYCLIST = range(11)


@dataclass(eq=False)
class Paint:
    """The colours of one scene.

    Args:
        rng: Random generator of the colours only, so that no colour changes a shape.
        gap: 0 for muted, textured, shaded, blurred and noisy; 1 for flat and saturated.
    """

    rng: np.random.Generator
    gap: float

    def __post_init__(self) -> None:
        least, most = max(0.0, 2 * self.gap - 1), min(1.0, 2 * self.gap)
        # Scenes of one gap differ around its mean; colours and photography vary independently.
        self.vivid, self.smooth = (least + (most - least) * self.rng.random() for _ in range(2))
        dusk = self.rng.random() < 0.18
        self.exposure = self.rng.uniform(0.3, 0.6) if dusk else self.rng.uniform(0.6, 1.35)
        self.sky_light = self.rng.uniform(0.5, 0.85) if dusk else self.rng.uniform(0.97, 1.12)
        self.sides = self.rng.uniform(0.55, 1.15, 2)  # light on the left and on the right row of houses
        self.tint = np.exp(self.rng.normal(0, 0.05) * np.array([1, 0, -1]))  # warm or cold light
        self.flat_light = self.rng.uniform(0.45, 1.1)
        self.stray = self.rng.uniform(0, 1, len(MATERIALS)) * self.rng.uniform(0.2, 1)
        self.strange = self.rng.uniform(0, 255, (len(MATERIALS), 3))

    def colour(self, material: str, depth: float = 0.0, shade: float = 1.0) -> Colour:
        """Return a colour of this material, drawn anew at each call.

        Args:
            material: A key of `MATERIALS`, or "car" or "clothes", which have many saturated colours.
            depth: Metres from the camera; distant things are pale.
            shade: Amount of light on it, 1 for full light.
        """
        muted, spread, vivid = self._appearance(material)
        brightness = np.exp(self.rng.normal(0, spread))
        hue = np.exp(self.rng.normal(0, 0.01 if material in _GREY else 0.05, 3))
        light = self.sky_light if material == "sky" else self.exposure
        camera = np.array(muted) * brightness * hue * self.tint * light * shade
        if material != "sky":
            haze = 0.6 * (1 - np.exp(-depth / 110))
            camera = camera * (1 - haze) + 150 * self.sky_light * min(1.0, self.exposure) * haze
        flat = np.array(vivid) * (1.0 if material == "sky" else self.flat_light)
        return _to_rgb(camera * (1 - self.vivid) + flat * self.vivid)

    def _appearance(self, material: str) -> tuple[Colour | Floats, float, Colour | Floats]:
        if material == "car":
            grey = self.rng.choice([30, 45, 70, 120, 190], p=[0.3, 0.2, 0.2, 0.15, 0.15])
            return grey * np.exp(self.rng.normal(0, 0.13, 3)), 0.15, self.rng.choice(_CARS)
        if material == "clothes":
            return self.rng.uniform(22, 70) * np.exp(self.rng.normal(0, 0.2, 3)), 0.2, self.rng.choice(_CLOTHES)
        muted, spread, vivid = MATERIALS[material]
        place = list(MATERIALS).index(material)
        away = self.stray[place] * _FREEDOM.get(material, 0.8)  # distance from its usual colour in this scene
        strange = np.array([255, 255, 255]) if material == "sky" else self.strange[place]
        return muted, spread, (1 - away) * np.array(vivid) + away * strange

    def holes(self, shape: tuple[int, int]) -> NDArray[np.bool_]:
        """Return where the sky shows through a crown of bare twigs; nowhere in flat scenes."""
        share = self.rng.uniform(0.1, 0.75) * (1 - self.smooth)
        return self.rng.random(shape) * 0.6 + 0.4 * (smooth_noise(shape, 6, self.rng) * 0.25 + 0.5) < share * 0.85

    def develop(self, image: Image.Image, labels: NDArray[np.uint8], size: tuple[int, int]) -> NDArray[np.uint8]:
        """Return the photograph: the drawing with texture, light, blur and noise, at half the drawing's size.

        Args:
            image: The drawing, twice as large as the result.
            labels: Label map of the drawing, of the same size.
            size: Height and width of the result.
        """
        real = 1 - self.smooth
        pixels = np.asarray(image, dtype=np.float64)
        amplitude = np.append(_TEXTURE, 0.1)[np.minimum(labels, len(_TEXTURE))]
        grain = 0.5 * smooth_noise(labels.shape, 2, self.rng) + 0.7 * smooth_noise(labels.shape, 5, self.rng)
        broad = np.where(labels == _SKY, 0.03, 0.1) * smooth_noise(labels.shape, 48, self.rng)
        pixels = pixels * np.exp(real * (amplitude * grain + broad))[..., None]
        pixels += self._bright_top(labels.shape) * (labels == _SKY)[..., None]
        small = Image.fromarray(np.clip(pixels, 0, 255).astype(np.uint8)).resize(size[::-1], Image.Resampling.BOX)
        small = small.filter(ImageFilter.GaussianBlur(real * self.rng.uniform(0.05, 0.4)))
        noise = self.rng.normal(0, 1, (*size, 1)) * 0.7 + self.rng.normal(0, 1, (*size, 3)) * 0.5
        result = np.asarray(small, dtype=np.float64) + real * self.rng.uniform(0.5, 3) * noise
        return np.clip(result.round(), 0, 255).astype(np.uint8)

    def _bright_top(self, shape: tuple[int, ...]) -> Floats:
        """Return the change of the sky from its blue top to its white horizon, as a camera would see it."""
        height = np.linspace(1, -0.5, shape[0]).clip(0)[:, None, None]
        blue = self.rng.uniform(0, 1) ** 2 * np.array([-75.0, -38.0, -6.0])
        return (1 - self.vivid) * height * blue


def smooth_noise(shape: tuple[int, ...], grain: int, rng: np.random.Generator) -> Floats:
    """Return smooth noise of mean about 0 and deviation about 1.

    Args:
        shape: Height and width.
        grain: Size of a spot in pixels.
        rng: Source of all randomness.
    """
    coarse = rng.normal(0, 1.3, (shape[0] // grain + 2, shape[1] // grain + 2)).astype(np.float32)
    fine = Image.fromarray(coarse).resize((shape[1], shape[0]), Image.Resampling.BILINEAR)
    return np.asarray(fine, dtype=np.float64)


def _to_rgb(values: Floats) -> Colour:
    red, green, blue = (min(max(int(value), 0), 255) for value in values.tolist())
    return red, green, blue


@dataclass(frozen=True)
class Camera:
    """A pinhole camera before which the road bends.

    Args:
        focal: Focal length in pixels.
        centre: Column of the vanishing point.
        horizon: Row of the horizon.
        above: Metres above the ground.
        bend: Curvature of the road, 1 / metres.
    """

    focal: float
    centre: float
    horizon: float
    above: float
    bend: float

    def __call__(self, point: Point) -> tuple[float, float]:
        """Return column and row of a point; what is too near is moved to the nearest distance."""
        x, y, z = point
        z = max(z, NEAREST)
        x += self.bend * z * z / 2
        return self.centre + self.focal * x / z, self.horizon + self.focal * (self.above - y) / z


class Brush:
    """Draws shapes in the order of the calls, near over far.

    Args:
        size: Height and width of the canvas.
        camera: Camera that sees the scene.
        paint: Colours of the scene.
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
        """Draw a flat shape in space; without a label it is a mark on what is there."""
        self.flat([self.camera(point) for point in points], label, colour)

    def flat(self, outline: Sequence[tuple[float, float]], label: int | None, colour: Colour) -> None:
        """Draw a shape given on the canvas."""
        limit = 4 * max(self.size)
        xy = [(min(max(x, -limit), limit), min(max(y, -limit), limit)) for x, y in outline]
        self._colours.polygon(xy, fill=colour)
        if label is not None:
            self._names.polygon(xy, fill=label)

    def upright(
        self, x: tuple[float, float], y: tuple[float, float], z: float, label: int | None, colour: Colour
    ) -> None:
        """Draw a rectangle that faces the camera, at least one pixel of the final picture wide."""
        left, top = self.camera((x[0], y[1], z))
        right, bottom = self.camera((x[1], y[0], z))
        spare = max(0.0, self.size[1] / 160 - (right - left)) / 2
        box = [(left - spare, top), (right + spare, top), (right + spare, bottom), (left - spare, bottom)]
        self.flat(box, label, colour)

    def disc(self, centre: Point, radius: float | tuple[float, float], label: int | None, colour: Colour) -> None:
        """Draw an ellipse that faces the camera, with radii in metres."""
        box = self.box(centre, radius)
        self._colours.ellipse(box, fill=colour)
        if label is not None:
            self._names.ellipse(box, fill=label)

    def box(self, centre: Point, radius: float | tuple[float, float]) -> tuple[float, float, float, float]:
        """Return left, top, right and bottom of an ellipse."""
        x, y = self.camera(centre)
        across, up = radius if isinstance(radius, tuple) else (radius, radius)
        scale = self.camera.focal / max(centre[2], NEAREST)
        return x - across * scale, y - up * scale, x + across * scale, y + up * scale

    def crown(self, discs: Sequence[tuple[Point, tuple[float, float]]], colours: tuple[Colour, Colour]) -> None:
        """Draw foliage: its label covers all of it, its colours leave holes for what is behind.

        Args:
            discs: Ellipses whose union it is.
            colours: Colours of its light and of its dark half.
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
