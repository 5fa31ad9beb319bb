"""The photographs and fonts of a training in one file, for a machine without network.

The file is a zip archive without compression: photographs/NAME.jpg, held/NAME.jpg and fonts/NAME. Photographs are stored at most SIDE pixels high or wide,
whichever is less, with full colour resolution. `photographs.versions` reduces them to four fifths or less after decoding, so that no crop has the
pixels of the compression.
"""

from __future__ import annotations

import argparse
import io
import subprocess
import sys
import zipfile
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from PIL import Image

from . import pages, photographs

SIDE = 1080
QUALITY = 92


def write(file: Path, folder: Path, wanted: Sequence[photographs.Photograph], held: Path | None = None, fonts: Path = pages.FONTS, quality: int = QUALITY) -> int:
    """Packs photographs of unpacked packages, the pictures of the folder held, which no training sees, and fonts; returns the size in bytes."""
    part = file.with_name(file.name + ".tmp")
    with zipfile.ZipFile(part, "w") as archive:
        for i, p in enumerate(wanted):
            archive.writestr(f"photographs/{i:03}-{Path(p.name).stem}.jpg", _jpeg(photographs.read(p, folder), quality))
        for path in sorted(held.iterdir()) if held else ():
            archive.writestr(f"held/{path.stem}.jpg", _jpeg(Image.open(path).convert("RGB"), quality))
        for font in pages.fonts(fonts):
            archive.write(font, f"fonts/{font.name}", zipfile.ZIP_DEFLATED)
    part.replace(file)
    return file.stat().st_size


def _jpeg(image: Image.Image, quality: int) -> bytes:
    """Reduces large camera files like photographs.versions, to half their size or less."""
    short = min(image.size)
    side = min(SIDE, short // 2 if short > 1400 else short)
    buffer = io.BytesIO()
    size = tuple(round(n * side / short) for n in image.size)
    image.resize(size, Image.Resampling.LANCZOS).save(buffer, "JPEG", quality=quality, subsampling=0, optimize=True)
    return buffer.getvalue()


def _decode(data: bytes) -> Image.Image:
    return Image.open(io.BytesIO(data)).convert("RGB")


def read(file: Path, fonts: Path) -> tuple[list[Callable[[], Image.Image]], list[Callable[[], Image.Image]]]:
    """Writes the fonts into a folder; returns decoders of the photographs, and of those held back. Raises ValueError on another file."""
    photos, held = [], []
    try:
        with zipfile.ZipFile(file) as archive:
            for entry in archive.infolist():
                kind, _, name = entry.filename.partition("/")
                if kind == "fonts":
                    fonts.mkdir(parents=True, exist_ok=True)
                    (fonts / Path(name).name).write_bytes(archive.read(entry))
                else:
                    {"photographs": photos, "held": held}[kind].append(partial(_decode, archive.read(entry)))
    except (zipfile.BadZipFile, KeyError) as err:
        raise ValueError(f"packed: {file} is not a whole pack: {err}; write it again with make prior-pack") from err
    if not photos:
        raise ValueError(f"packed: {file} has no photographs; write it again with make prior-pack")
    return photos, held


def main() -> int:
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument("--out", type=Path, required=True, help="file to write")
    p.add_argument("--photographs", type=Path, required=True, help="folder of the unpacked packages; packages that it lacks are downloaded")
    p.add_argument("--held", type=Path, help="folder of photographs for the printed figures, which no training sees")
    p.add_argument("--fonts", type=Path, default=pages.FONTS, help=f"folder of the fonts of the pages (default {pages.FONTS})")
    p.add_argument("--quality", type=int, default=QUALITY, help=f"quality of the JPEG files (default {QUALITY})")
    args = p.parse_args()
    wanted = photographs.PHOTOGRAPHS + photographs.MORE
    try:
        photographs.fetch(args.photographs, wanted)
        size = write(args.out, args.photographs, wanted, args.held, args.fonts, args.quality)
    except (ValueError, OSError, subprocess.CalledProcessError) as err:
        print(f"packed: {err}", file=sys.stderr)
        return 2
    print(f"photographs={len(wanted)} bytes={size} file={args.out}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
