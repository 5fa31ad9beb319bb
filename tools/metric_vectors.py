#!/usr/bin/env python3
"""Write the golden vectors of restore/metric: image pairs and their scores by piq.

Needs Pillow, NumPy, PyTorch and piq (pip install piq==0.8.0). The images are computed with
integer formulas, so that a second run writes the same pixels. Scores are computed in float64.

    python3 tools/metric_vectors.py restore/metric/testdata
"""

import argparse
import json
import pathlib

import numpy as np
import piq
import torch
from PIL import Image

# name, height, width, amplitude of the noise in grey levels. The large pairs have no noise,
# because noise compresses badly.
CASES = [
    ("equal", 40, 48, None),
    ("noise", 80, 96, 40),
    ("odd", 47, 61, 12),
    ("window", 11, 11, 25),
    ("half_to_even", 384, 390, 0),  # 384/256 = 1.5, rounded to 2
    ("pooled", 512, 512, 0),
    ("pooled_odd", 523, 517, 0),  # the last rows and columns are outside the blocks
]


def picture(height, width):
    """Ramps with a coarse checkerboard, different for each channel; (height, width, 3) uint8."""
    y, x, c = np.mgrid[0:height, 0:width, 0:3]
    board = ((x // 16 + y // 24 + c) % 2) * 70
    return ((x // (1 + c) + y // 3 + 40 * c + board) % 256).astype(np.uint8)


def degrade(image, noise):
    """Shift by one pixel, quantise to 16 levels and add uniform noise of the given amplitude."""
    out = np.roll(image, (1, 1), axis=(0, 1)).astype(np.int64) // 16 * 16
    if noise:
        index = np.arange(out.size, dtype=np.uint32).reshape(out.shape)
        random = (index * np.uint32(2654435761)) >> np.uint32(16)
        out += random.astype(np.int64) % (2 * noise + 1) - noise
    return out.clip(0, 255).astype(np.uint8)


def tensor(image):
    """(height, width, 3) uint8 to (1, 3, height, width) float64 on [0, 1]."""
    return torch.from_numpy(image.astype(np.float64) / 255).permute(2, 0, 1)[None]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path, help="folder for the vectors")
    folder = parser.parse_args().folder
    folder.mkdir(parents=True, exist_ok=True)
    cases = []
    for name, height, width, noise in CASES:
        x = picture(height, width)
        y = x if noise is None else degrade(x, noise)
        files = [f"{name}_x.png", f"{name}_y.png"]
        for file, image in zip(files, (x, y)):
            Image.fromarray(image).save(folder / file, optimize=True)
        cases.append({
            "name": name,
            "x": files[0],
            "y": files[1],
            "psnr": piq.psnr(tensor(x), tensor(y), data_range=1.0).item(),
            "ssim": piq.ssim(tensor(x), tensor(y), data_range=1.0).item(),
            "psnr_y": piq.psnr(tensor(x), tensor(y), data_range=1.0, convert_to_greyscale=True).item(),
            # piq refuses images below 16 pixels.
            "haarpsi": piq.haarpsi(tensor(x), tensor(y), data_range=1.0).item() if min(height, width) >= 16 else None,
        })
    text = json.dumps({"piq": piq.__version__, "cases": cases}, indent=2)
    (folder / "piq.json").write_text(text + "\n")


if __name__ == "__main__":
    main()
