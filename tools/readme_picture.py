"""Compose the README's picture from the output of `make demo`: measurements above restorations.

    python3 tools/readme_picture.py out/demo docs/demo.png
"""
import json
import pathlib
import sys

from PIL import Image, ImageDraw

COLUMNS = [  # photograph and task of each column, left to right
    ("coffee", "inpaint_random"), ("chelsea", "motion_deblur"), ("astronaut", "inpaint_box"),
    ("rocket", "hdr"), ("retina", "gaussian_deblur"), ("coffee", "super_resolution"),
]
SIZE, GAP, TEXT = 128, 4, 16  # pixels


def main(output: pathlib.Path, picture: pathlib.Path) -> None:
    items = {}
    for path in (output / "items").glob("*/result.json"):
        item = json.loads(path.read_text())["item"]
        items[item["name"], item["task"]] = path.parent
    width = len(COLUMNS) * (SIZE + GAP) - GAP
    canvas = Image.new("RGB", (width, 2 * SIZE + GAP + TEXT), "white")
    draw = ImageDraw.Draw(canvas)
    for i, column in enumerate(COLUMNS):
        if column not in items:
            sys.exit(f"{output} has no item of photograph {column[0]}, task {column[1]}; run make demo")
        x = i * (SIZE + GAP)
        draw.text((x, 2), column[1], fill="black")
        for row, name in enumerate(["measurement.png", "restored.png"]):
            image = Image.open(items[column] / name).convert("RGB").resize((SIZE, SIZE), Image.NEAREST)
            canvas.paste(image, (x, TEXT + row * (SIZE + GAP)))
    canvas.save(picture, optimize=True)


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit("usage: readme_picture.py OUTPUT PICTURE.png")
    main(pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]))
