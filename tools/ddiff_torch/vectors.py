"""Writes the operators' reference vectors: python3 -m ddiff_torch.vectors OUTDIR

Each case is a folder OUTDIR/<task>_<height>x<width> with case.json, {"task", "params",
"shapes"}, and float32 .npy files, computed in float64. shapes lists every file.

    v       a point, some values outside [-1, 1]
    Av      A(v)
    yn      a noisy measurement A(x) + 0.05 n
    grad    gradient at v of the per-image norm ||w (yn - A(v))||_2, w the mask or 1
    mask, kernel   one per image, for tasks with a mask or kernel

At 32x32 also:

    x, y    a picture in [-1, 1] and y = A(x) without noise
    w, ATw  a random point of the measurement space and A^T w, for the linear tasks

A second run writes the same bytes. Cases with equal shapes share x, v and w, which git
therefore stores once.
"""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from .operators import LINEAR, NEEDS_KERNEL, NEEDS_MASK, adjoint, measurement, norm_gradient
from .random_inputs import box_mask, grained, path_kernel, picture, random_mask

SIGMA = 0.05


@dataclass(frozen=True)
class Case:
    """One folder: a task on `images` images of height x width."""

    task: str
    images: int
    height: int
    width: int
    params: dict[str, float]
    kernel: int = 0  # side of the blur kernel, for tasks with a kernel
    full: bool = False  # also write x, y, w and ATw

    @property
    def name(self) -> str:
        return f"{self.task}_{self.height}x{self.width}"


NONLINEAR = {"gain": 1.2, "gamma": 2.2, "toe": 0.01}
CASES = (
    Case("super_resolution", 2, 32, 32, {"factor": 4}, full=True),
    Case("gaussian_deblur", 2, 32, 32, {"std": 0.75, "size": 9}, full=True),
    Case("motion_deblur", 2, 32, 32, {}, kernel=9, full=True),
    Case("inpaint", 2, 32, 32, {}, full=True),
    Case("phase_retrieval", 2, 32, 32, {"oversample": 2}, full=True),
    Case("nonlinear_deblur", 2, 32, 32, NONLINEAR, kernel=9, full=True),
    Case("hdr", 2, 32, 32, {"scale": 2.0}, full=True),
    Case("denoise", 2, 32, 32, {}, full=True),
    Case("super_resolution_area", 2, 32, 32, {"factor": 4}, full=True),
    Case("colorize", 2, 32, 32, {"red": 0.299, "green": 0.587, "blue": 0.114}, full=True),
    Case("demosaic", 2, 32, 32, {"red_row": 0, "red_column": 0}, full=True),
    Case("super_resolution", 1, 24, 40, {"factor": 4}),
    Case("gaussian_deblur", 1, 24, 40, {"std": 0.75, "size": 9}),
    Case("motion_deblur", 1, 24, 40, {}, kernel=9),
    Case("phase_retrieval", 1, 24, 40, {"oversample": 2}),
    Case("super_resolution_area", 1, 24, 40, {"factor": 2}),
    Case("demosaic", 1, 24, 40, {"red_row": 1, "red_column": 0}),
    Case("super_resolution", 1, 64, 64, {"factor": 4}),
    Case("gaussian_deblur", 1, 64, 64, {"std": 1.5, "size": 15}),
    Case("motion_deblur", 1, 64, 64, {}, kernel=15),
    Case("phase_retrieval", 1, 64, 64, {"oversample": 2}),
    Case("phase_retrieval", 1, 16, 24, {"oversample": 8, "signed": 1}),
)


def arrays(case: Case) -> dict[str, np.ndarray]:
    """All arrays of the case's folder, by file name."""
    rng = np.random.default_rng([case.images, case.height, case.width])
    x = picture(rng, case.images, case.height, case.width)
    v = grained(1.1 * x + 0.3 * rng.standard_normal(x.shape))
    out: dict[str, np.ndarray] = {"x": x, "v": v}
    if case.task in NEEDS_MASK:
        draws = (box_mask, random_mask)
        out["mask"] = np.stack([draws[i % 2](rng, case.height, case.width) for i in range(case.images)])
    if case.task in NEEDS_KERNEL:
        out["kernel"] = np.stack([path_kernel(rng, case.kernel) for _ in range(case.images)])

    def point(name: str) -> Tensor | None:
        return torch.from_numpy(out[name]).double() if name in out else None

    measured = measurement(case.task, case.params, mask=point("mask"), kernel=point("kernel"))
    y = measured.forward(point("x"))
    normal = np.random.default_rng([1, *y.shape]).standard_normal(tuple(y.shape))
    out["y"] = y.numpy().astype(np.float32)
    out["Av"] = measured.forward(point("v")).numpy().astype(np.float32)
    out["yn"] = (y.numpy() + grained(SIGMA * normal)).astype(np.float32)
    out["grad"] = norm_gradient(measured.forward, point("v"), point("yn"), measured.weight).numpy().astype(np.float32)
    if case.task in LINEAR:
        out["w"] = grained(np.random.default_rng([2, *y.shape]).standard_normal(tuple(y.shape)))
        out["ATw"] = adjoint(measured.forward, x.shape, point("w")).numpy().astype(np.float32)
    if not case.full:
        for name in ("x", "y", "w", "ATw"):
            out.pop(name, None)
    return out


def write(case: Case, outdir: Path) -> None:
    """Writes one case's folder."""
    folder = outdir / case.name
    folder.mkdir(parents=True, exist_ok=True)
    files = arrays(case)
    for name, value in files.items():
        np.save(folder / f"{name}.npy", np.ascontiguousarray(value))
    described = {
        "task": case.task,
        "params": case.params,
        "shapes": {name: list(value.shape) for name, value in sorted(files.items())},
    }
    (folder / "case.json").write_text(json.dumps(described, indent=1) + "\n")


def main(args: list[str]) -> int:
    if len(args) != 1:
        print("usage: python3 -m ddiff_torch.vectors OUTDIR", file=sys.stderr)
        return 2
    torch.set_num_threads(1)  # the order of sums, and thus the last bit, depends on the number of threads
    for case in CASES:
        write(case, Path(args[0]))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
