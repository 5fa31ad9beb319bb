"""Figures of pictures for a paper, as SVG."""

from __future__ import annotations

import base64
import os
import struct
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from xml.sax.saxutils import escape

from ._files import write

Box = tuple[float, float, float, float]

_COLOURS = ("#d55e00", "#0072b2")  # of zooms, distinct with any colour vision
_GAP, _TEXT = 1.0, 3.2  # millimetres


@dataclass(frozen=True)
class Figure:
    """A figure of pictures. Its text is text, in Liberation Sans, Arial or Helvetica; a notebook shows it."""

    svg: str = field(repr=False)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the SVG file. Replaces an existing file. Raises ValueError for the extension of another format."""
        if Path(path).suffix.lower() not in ("", ".svg"):
            raise ValueError(f"save {os.fspath(path)}: a figure is an SVG file; name it .svg, and convert it with Inkscape or rsvg-convert")
        write(path, self.svg.encode())

    def _repr_svg_(self) -> str:
        return self.svg


def draw(headings: Sequence[str], rows: Sequence[Row], side: float, crop: Box | None, zooms: Sequence[Box]) -> Figure:
    """Draws rows of pictures below headings; see Experiment.figure."""
    out, y = [], _TEXT + _GAP
    out += [_text(i * (side + _GAP) + side / 2, _TEXT, h) for i, h in enumerate(headings)]
    for row in rows:
        height = 0.0
        for i, (file, caption) in enumerate(row.cells):
            x = i * (side + _GAP)
            if file is not None:
                picture, tall = _picture(file.read_bytes(), x, y, side, row.size, crop, zooms)
                out.append(picture)
                height = max(height, tall)
        out += [_text(i * (side + _GAP) + side / 2, y + height + _TEXT, caption) for i, (_, caption) in enumerate(row.cells)]
        y += height + _TEXT + 2 * _GAP
    width = len(headings) * (side + _GAP) - _GAP
    style = f"font-family=\"'Liberation Sans',Arial,Helvetica,sans-serif\" font-size=\"{0.8 * _TEXT:g}\" text-anchor=\"middle\""
    size = f'width="{width:g}mm" height="{y:g}mm" viewBox="0 0 {width:g} {y:g}"'
    return Figure(f'<svg xmlns="http://www.w3.org/2000/svg" {size} {style}>\n' + "\n".join(out) + "\n</svg>\n")


@dataclass(frozen=True)
class Row:
    """A row of a figure: the size of its truth, to which boxes refer, and PNG files with captions."""

    size: tuple[int, int]
    cells: list[tuple[Path | None, str]]


def size_of(png: bytes) -> tuple[int, int]:
    """Returns width and height of a PNG file."""
    return struct.unpack(">II", png[16:24])


def _picture(png: bytes, x: float, y: float, side: float, size: tuple[int, int], crop: Box | None, zooms: Sequence[Box]) -> tuple[str, float]:
    """Returns a picture of a width, with its zooms along the lower border, and its height. Boxes are in pixels of size, also for a smaller picture."""
    left, top, width, height = crop or (0, 0, *size)
    tall = side * height / width
    data = base64.b64encode(png).decode()

    def part(x: float, y: float, w: float, h: float, box: Box) -> str:
        view = f'x="{x:g}" y="{y:g}" width="{w:g}" height="{h:g}" viewBox="{" ".join(f"{v:g}" for v in box)}" preserveAspectRatio="none"'
        image = f'<image width="{size[0]}" height="{size[1]}" preserveAspectRatio="none" style="image-rendering:pixelated" href="data:image/png;base64,{data}"/>'
        return f"<svg {view}>{image}</svg>"

    def frame(x: float, y: float, w: float, h: float, colour: str) -> str:
        return f'<rect x="{x:g}" y="{y:g}" width="{w:g}" height="{h:g}" fill="none" stroke="{colour}" stroke-width="0.4"/>'

    out = [part(x, y, side, tall, (left, top, width, height))]
    scale, at = side / width, x
    for box, colour in zip(zooms, _COLOURS):
        out.append(frame(x + (box[0] - left) * scale, y + (box[1] - top) * scale, box[2] * scale, box[3] * scale, colour))
        w = 0.4 * side
        h = w * box[3] / box[2]
        out += [part(at, y + tall - h, w, h, box), frame(at, y + tall - h, w, h, colour)]
        at = x + side - w
    return "".join(out), tall


def _text(x: float, y: float, text: str) -> str:
    return f'<text x="{x:g}" y="{y:g}">{escape(text)}</text>'
