"""Procedural images: occluding leaves with natural spectra, colours and textures.

Shapes with radii of density r^-3 (scale invariant, as in photographs) occlude each other; each
has its own colour or gradient and a 1/f^b texture. Lines, strokes and lettering are drawn on top.
Images are drawn at twice the size and reduced, which antialiases edges.
"""

from __future__ import annotations

import numpy as np
from PIL import Image, ImageDraw, ImageFilter, ImageFont

# Converts luminance and two opponent axes to RGB; the rows are orthogonal.
OPPONENT = np.array([[1, 1, 1], [1, 0, -1], [0.5, -1, 0.5]], dtype=np.float32)


def noise_field(rng: np.random.Generator, size: int, slope: float, stretch: float = 1.0) -> np.ndarray:
    """Noise [size, size] with zero mean, unit deviation and amplitude spectrum f^-slope.

    A stretch other than 1 makes the noise directional.
    """
    fy = np.fft.fftfreq(size)[:, None].astype(np.float32) * stretch
    fx = np.fft.rfftfreq(size)[None].astype(np.float32)
    amplitude = (fy**2 + fx**2 + (1.0 / size) ** 2) ** (-slope / 2)
    spectrum = amplitude * np.exp(2j * np.pi * rng.random(amplitude.shape))
    spectrum[0, 0] = 0
    field = np.fft.irfft2(spectrum, s=(size, size)).astype(np.float32)
    return field / field.std()


class _Palette:
    """Colours of one scene: widely spread luminances, small chroma around a common cast."""

    def __init__(self, rng: np.random.Generator) -> None:
        self.rng = rng
        self.cast = rng.laplace(0, 0.06, 2)
        self.spread = rng.gamma(2.0, 0.022)
        self.middle, self.width = rng.uniform(0.25, 0.7), rng.uniform(0.1, 0.32)

    def colour(self) -> np.ndarray:
        luminance = np.clip(self.rng.normal(self.middle, self.width), -0.05, 1.05)
        chroma = self.cast + self.rng.laplace(0, self.spread, 2)
        chroma *= 0.3 + 2.8 * max(luminance * (1 - luminance), 0)
        return np.float32([luminance, *chroma]) @ OPPONENT


def _textures(rng: np.random.Generator, size: int) -> list[np.ndarray]:
    out = [noise_field(rng, size, rng.uniform(0.3, 1.8), np.exp(rng.normal(0, 0.5))) for _ in range(3)]
    # A warped grating: stripes, fur, masonry.
    y, x = np.mgrid[:size, :size].astype(np.float32)
    angle, period = rng.uniform(0, np.pi), np.exp(rng.uniform(np.log(5), np.log(40)))
    phase = (x * np.cos(angle) + y * np.sin(angle)) * (2 * np.pi / period)
    grating = np.sin(phase + rng.uniform(0, 3) * noise_field(rng, size, 1.8))
    return [*out, np.clip(grating * rng.uniform(1, 6), -1, 1).astype(np.float32)]


def _mask(rng: np.random.Generator, yy: np.ndarray, xx: np.ndarray, radius: float) -> np.ndarray:
    """Coverage in 0..1 of a random shape around the origin, with an extent of at most `radius`."""
    kind = rng.random()
    angle, aspect = rng.uniform(0, np.pi), rng.uniform(0.25, 1)
    u = xx * np.cos(angle) + yy * np.sin(angle)
    v = (yy * np.cos(angle) - xx * np.sin(angle)) / aspect
    if kind < 0.35:
        distance = np.sqrt(u * u + v * v)
    elif kind < 0.65:  # a parallelogram
        distance = np.maximum(np.abs(u), np.abs(v + rng.uniform(-0.5, 0.5) * u)) * 1.4
    else:  # a lobed or pointed outline
        theta = np.arctan2(v, u)
        outline = sum(rng.normal(0, 0.5 / k) * np.cos(k * theta + rng.uniform(0, 6.3)) for k in (2, 3, 5))
        distance = np.sqrt(u * u + v * v) * (1.3 + np.tanh(outline) * 0.5)
    soft = 1.0 if rng.random() < 0.75 else rng.uniform(1, 0.5 * radius + 1)
    return np.clip((radius - distance) / soft, 0, 1)


def _paint(rng: np.random.Generator, canvas: np.ndarray, textures: list, palette: _Palette, radius: float) -> None:
    size = canvas.shape[0]
    cy, cx = rng.integers(-int(radius / 2), size + int(radius / 2), 2)
    y0, y1 = max(0, int(cy - radius)), min(size, int(cy + radius) + 1)
    x0, x1 = max(0, int(cx - radius)), min(size, int(cx + radius) + 1)
    if y0 >= y1 or x0 >= x1:
        return
    yy = (np.arange(y0, y1, dtype=np.float32) - cy)[:, None]
    xx = (np.arange(x0, x1, dtype=np.float32) - cx)[None]
    cover = _mask(rng, yy, xx, radius)[..., None]
    fill = np.broadcast_to(palette.colour(), (*cover.shape[:2], 3))
    if rng.random() < 0.5:
        slope = rng.normal(0, 0.5 / radius, 2)
        fill = fill + (slope[0] * yy + slope[1] * xx)[..., None] * rng.uniform(0, 0.6)
    if rng.random() < 0.6:
        texture = textures[rng.integers(len(textures))]
        oy, ox = rng.integers(0, size - (y1 - y0) + 1), rng.integers(0, size - (x1 - x0) + 1)
        patch = texture[oy : oy + y1 - y0, ox : ox + x1 - x0, None]
        fill = fill + patch * (rng.gamma(1.5, 0.035) * (1 + 0.3 * rng.normal(size=3)))
    part = canvas[y0:y1, x0:x1]
    part += cover * (fill - part)


def _strokes(rng: np.random.Generator, image: Image.Image, palette: _Palette) -> None:
    draw, size = ImageDraw.Draw(image), image.size[0]

    def ink() -> tuple[int, ...]:
        return tuple(int(v) for v in np.clip(palette.colour() * 255, 0, 255))

    for _ in range(rng.poisson(5)):
        count = int(rng.integers(2, 7))
        points = np.cumsum(np.vstack([rng.uniform(0, size, 2), rng.normal(0, size / 8, (count, 2))]), axis=0)
        draw.line([tuple(p) for p in points], fill=ink(), width=int(rng.integers(1, 9)), joint="curve")
    if rng.random() < 0.35:  # lettering
        font, colour = ImageFont.load_default(), ink()
        for _ in range(int(rng.integers(1, 8))):
            letters = "".join(chr(c) for c in rng.integers(33, 127, int(rng.integers(3, 24))))
            stamp = Image.new("L", (8 * len(letters), 14))
            ImageDraw.Draw(stamp).text((1, 1), letters, fill=255, font=font)
            scale = rng.uniform(1.2, 4)
            stamp = stamp.resize((int(stamp.width * scale), int(stamp.height * scale)), Image.Resampling.BICUBIC)
            stamp = stamp.rotate(rng.normal(0, 15), expand=True, resample=Image.Resampling.BICUBIC)
            image.paste(colour, tuple(int(v) for v in rng.integers(-40, size, 2)), stamp)
    if rng.random() < 0.25:  # a fence or a grid of thin lines
        step, colour, width = int(rng.integers(8, 48)), ink(), int(rng.integers(1, 5))
        lean = rng.uniform(-0.5, 0.5) * size
        for x in range(-size, 2 * size, step):
            draw.line([(x, 0), (x + lean, size)], fill=colour, width=width)


def dead_leaves(rng: np.random.Generator, size: int = 256) -> np.ndarray:
    """One procedural image, uint8 [size, size, 3]."""
    big, palette = 2 * size, _Palette(rng)
    textures = _textures(rng, big)
    canvas = np.empty((big, big, 3), dtype=np.float32)
    canvas[:] = palette.colour()
    canvas += np.linspace(-1, 1, big, dtype=np.float32)[:, None, None] * (palette.colour() - palette.colour()) * 0.3
    canvas += textures[0][..., None] * rng.gamma(1.5, 0.03)

    smallest, largest = np.exp(rng.uniform(np.log(4), np.log(60))), 0.5 * big
    # Density r^-3: the area per octave is constant; the shapes cover the canvas about twice per e-fold.
    low, high = smallest**-2, largest**-2
    mean_area = np.pi * 0.35 * 2 * np.log(largest / smallest) / (low - high)
    count = min(int(big * big / mean_area * np.log(largest / smallest) * rng.uniform(0.4, 1.2)), 6000)
    radii = (high + (low - high) * rng.random(count)) ** -0.5
    if rng.random() < 0.6:  # large shapes first, so that small details stay visible
        radii = radii[np.argsort(-radii * np.exp(rng.normal(0, 0.7, count)))]
    for radius in radii:
        _paint(rng, canvas, textures, palette, float(radius))
    if rng.random() < 0.5:  # uneven light
        canvas *= 1 + 0.2 * np.clip(noise_field(rng, big, 2.5), -2.5, 2.5)[..., None]
    image = Image.fromarray((np.clip(canvas, 0, 1) * 255 + 0.5).astype(np.uint8))
    _strokes(rng, image, palette)
    if rng.random() < 0.3:
        image = image.filter(ImageFilter.GaussianBlur(rng.uniform(0.5, 2.5)))
    filter_ = Image.Resampling.LANCZOS if rng.random() < 0.7 else Image.Resampling.BOX
    return np.asarray(image.resize((size, size), filter_))
