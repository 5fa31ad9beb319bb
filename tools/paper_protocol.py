#!/usr/bin/env python3
"""Writes the masks, the motion kernel and the blur code with which the paper of DDiff evaluates.

    python3 -m paper_protocol ../examples/paper/protocol --code DIR

The authors' released code (SoniaMinseoKim/ddiff-cvpr at ae3ce1f) seeds NumPy's legacy generator with 0 before each
image, so that all images have the same mask and the same kernel; DIR is a copy of it. The files:

    box_mask.png       256x256, 0 in a box of 128x128, 255 where the pixel is observed
    random_mask.png    256x256, 0 at 70 to 71 % of the pixels, for all channels
    motion_kernel.npy  float32 [61, 61] of sum 1, by the generator in motionblur/ of the code; only with --code
    blur_code.npy      float32 [512, 2, 2], the code of the nonlinear blur, from torch's generator with seed 0

Legacy generators of NumPy are frozen; the kernel also depends on how Pillow draws, blurs and resizes.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import numpy as np
from PIL import Image

SIDE = 256
MARGIN = 16


def box_mask() -> np.ndarray:
    """A box of 128 pixels at least 16 pixels from the border: [256, 256] of 0 (dropped) and 1."""
    draw = np.random.RandomState(0)
    side = draw.randint(128, 129)  # draws a number from the generator
    top, left = (draw.randint(MARGIN, SIDE - MARGIN - side) for _ in range(2))
    mask = np.ones((SIDE, SIDE), np.uint8)
    mask[top : top + side, left : left + side] = 0
    return mask


def random_mask() -> np.ndarray:
    """A share between 0.70 and 0.71 of the pixels dropped: [256, 256] of 0 (dropped) and 1."""
    draw = np.random.RandomState(0)
    dropped = int(draw.uniform(0.70, 0.71) * SIDE * SIDE)
    mask = np.ones(SIDE * SIDE, np.uint8)
    mask[draw.choice(SIDE * SIDE, dropped, replace=False)] = 0
    return mask.reshape(SIDE, SIDE)


def motion_kernel(code: Path) -> np.ndarray:
    """The first kernel of the code's generator: float32 [61, 61] of sum 1."""
    sys.path.insert(0, str(code))
    from motionblur.motionblur import Kernel

    np.random.seed(0)
    return Kernel(size=(61, 61), intensity=0.5).kernelMatrix


def blur_code() -> np.ndarray:
    """The code of the nonlinear blur: float32 [512, 2, 2]."""
    import torch

    return (torch.randn(1, 512, 2, 2, generator=torch.Generator().manual_seed(0)) * 1.2)[0].numpy()


def main(args: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="paper_protocol", description="Write the masks, the kernel and the blur code of the paper's evaluation.")
    parser.add_argument("out", type=Path, help="folder for the files")
    parser.add_argument("--code", type=Path, metavar="DIR", help="copy of the authors' code, for the motion kernel")
    o = parser.parse_args(args)
    if o.code and not (o.code / "motionblur" / "motionblur.py").is_file():
        parser.error(f"--code {o.code}: has no motionblur/motionblur.py; give a copy of ddiff-cvpr")
    o.out.mkdir(parents=True, exist_ok=True)
    for name, mask in (("box_mask", box_mask()), ("random_mask", random_mask())):
        Image.fromarray(mask * 255).save(o.out / f"{name}.png", optimize=True)
    np.save(o.out / "blur_code.npy", blur_code())
    if o.code:
        np.save(o.out / "motion_kernel.npy", motion_kernel(o.code))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
