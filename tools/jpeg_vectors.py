#!/usr/bin/env python3
"""Write the vectors of the task jpeg: a picture, its JPEG files by libjpeg, and what libjpeg decodes from them.

Needs Pillow. A name has quality and subsampling (0 is 4:4:4, 1 is 4:2:2, 2 is 4:2:0) of its file.

    python3 tools/jpeg_vectors.py examples/images restore/operator/testdata/jpeg
"""

import argparse
import pathlib

from PIL import Image

# Width and height are even and no multiples of 16, the height of the second picture is no multiple of 8.
PICTURES = {"astronaut": (150, 20, 72, 56), "coffee": (200, 150, 88, 52)}
CASES = [(1, 2), (10, 2), (10, 0), (10, 1), (30, 2), (40, 2), (60, 1), (75, 2), (95, 0), (100, 0)]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("images", type=pathlib.Path, help="folder of the photographs")
    parser.add_argument("folder", type=pathlib.Path, help="folder for the vectors")
    args = parser.parse_args()
    args.folder.mkdir(parents=True, exist_ok=True)
    for name, (left, top, width, height) in PICTURES.items():
        source = Image.open(args.images / f"{name}.png").convert("RGB").crop((left, top, left + width, top + height))
        source.save(args.folder / f"{name}.png", optimize=True)
        for quality, subsampling in CASES:
            file = args.folder / f"{name}_{quality}_{subsampling}.jpg"
            source.save(file, quality=quality, subsampling=subsampling)
            Image.open(file).save(file.with_suffix(".png"), optimize=True)


if __name__ == "__main__":
    main()
