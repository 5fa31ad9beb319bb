"""Pages of text in the fonts of the machine: lines of made-up words, dark on light or light on dark."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from PIL import Image, ImageDraw, ImageFont

FONTS = Path("/usr/share/fonts")

# Letters with their frequency in English, in per mille.
LETTERS = dict(
    zip(
        "etaoinshrdlcumwfgypbvkjxqz",
        (127, 91, 82, 75, 70, 67, 63, 61, 60, 43, 40, 28, 28, 24, 24, 22, 20, 20, 19, 15, 10, 8, 2, 2, 1, 1),
    )
)


def fonts(folder: Path = FONTS) -> list[Path]:
    """The font files of a folder, without symbols; raises ValueError if there are none."""
    found = sorted(p for p in folder.rglob("*.[ot]tf") if not any(w in p.name for w in ("Symbol", "Dingbats", "Emoji")))
    if not found:
        raise ValueError(f"pages: no fonts in {folder}; install packages such as fonts-dejavu-core and fonts-liberation")
    return found


def word(rng: np.random.Generator) -> str:
    """Random letters, sometimes capital, or a number, sometimes with a sign behind it."""
    weights = np.array(list(LETTERS.values())) / sum(LETTERS.values())
    text = "".join(rng.choice(list(LETTERS), int(np.clip(rng.poisson(4), 1, 12)), p=weights))
    kind = rng.random()
    if kind < 0.15:
        text = text.capitalize()
    elif kind < 0.22:
        text = text.upper()
    elif kind < 0.3:
        text = str(rng.integers(10 ** int(rng.integers(1, 6))))
    return text + (str(rng.choice(list(",.;:-)"))) if rng.random() < 0.5 else "")


def _colours(rng: np.random.Generator) -> tuple[tuple[int, ...], tuple[int, ...]]:
    if rng.random() < 0.6:
        paper, ink = np.full(3, 255), np.full(3, rng.integers(40))
    else:
        paper, ink = rng.integers(170, 256) + rng.integers(-30, 31, 3), rng.integers(90) + rng.integers(-30, 60, 3)
    paper, ink = (tuple(int(v) for v in np.clip(c, 0, 255)) for c in (paper, ink))
    return (paper, ink) if rng.random() < 0.75 else (ink, paper)


def page(rng: np.random.Generator, files: list[Path], size: int = 256) -> np.ndarray:
    """One page, uint8 [size, size, 3]; half of them are drawn twice as large and reduced."""
    side = 2 * size
    paper, ink = _colours(rng)
    picture = Image.new("RGB", (side, side), paper)
    draw = ImageDraw.Draw(picture)
    y = int(rng.integers(-10, 20))
    while y < side:
        pixels = int(np.exp(rng.uniform(np.log(14), np.log(56))))
        font = ImageFont.truetype(str(files[rng.integers(len(files))]), pixels)
        gap, x = int(pixels * rng.uniform(1.05, 1.5)), int(rng.integers(-20, 40))
        for _ in range(int(rng.integers(2, 9))):
            draw.text((x, y), " ".join(word(rng) for _ in range(30)), font=font, fill=ink)
            y += gap
        if rng.random() < 0.3:
            draw.line([(0, y), (side, y)], fill=ink, width=int(rng.integers(1, 6)))
            y += int(rng.integers(4, 20))
    if rng.random() < 0.5:
        return np.asarray(picture.resize((size, size), Image.Resampling.LANCZOS))
    return np.asarray(picture.crop((0, 0, size, size)))
