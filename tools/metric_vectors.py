#!/usr/bin/env python3
"""Write the golden vectors of internal/restore/metric: image pairs and their scores by piq and scikit-image.

Needs Pillow, NumPy, PyTorch and piq (pip install piq==0.8.0). The images are computed with
integer formulas, so that a second run writes the same pixels. Scores are computed in float64.
--unclipped needs NumPy and scikit-image (pip install scikit-image==0.26.0) instead, and writes the
arrays beyond [-1, 1] with the scores in the range of the reference.

    python3 tools/metric_vectors.py internal/restore/metric/testdata
    python3 tools/metric_vectors.py --unclipped internal/restore/metric/testdata
"""

import argparse
import json
import pathlib

import numpy as np

# name, height, width, amplitude of the noise, gain of the contrast, of the arrays of --unclipped.
UNCLIPPED = [("unclipped", 47, 61, 12, 1.4), ("unclipped_window", 5, 6, 25, 0.8)]

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
    import torch

    return torch.from_numpy(image.astype(np.float64) / 255).permute(2, 0, 1)[None]


def unclipped(folder):
    """Arrays [3, height, width] and their scores by scikit-image."""
    import skimage
    from skimage.metrics import peak_signal_noise_ratio, structural_similarity

    cases = []
    for name, height, width, noise, gain in UNCLIPPED:
        image = picture(height, width)
        x, y = (array.astype(np.float32) / np.float32(127.5) - 1 for array in (image, degrade(image, noise)))
        y = (np.float32(gain) * y + np.float32(0.05)).astype(np.float32)
        for side, array in (("x", x), ("y", y)):
            np.save(folder / f"{name}_{side}.npy", array.transpose(2, 0, 1).copy())
        scores = {}
        for kind, dtype in (("", np.float64), ("_float32", np.float32)):
            a, b = x.astype(dtype), y.astype(dtype)
            scores["psnr" + kind] = float(peak_signal_noise_ratio(a, b, data_range=a.max() - a.min()))
            scores["ssim" + kind] = float(structural_similarity(a, b, win_size=5, data_range=a.max() - a.min(), channel_axis=2))
        cases.append({"name": name, **scores})
    text = json.dumps({"scikit-image": skimage.__version__, "cases": cases}, indent=2)
    (folder / "scikit_image.json").write_text(text + "\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path, help="folder for the vectors")
    parser.add_argument("--unclipped", action="store_true", help="write the vectors of scikit-image")
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    (unclipped if options.unclipped else clipped)(options.folder)


def clipped(folder):
    """Pictures and their scores by piq."""
    import piq
    from PIL import Image

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
