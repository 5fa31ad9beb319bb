#!/usr/bin/env python3
"""Writes steps of dual ascent with the exact data step, and of DPIR, computed from the equations alone, for tests of internal/restore/solver.

    python3 tools/ascent_vectors.py internal/restore/prior/bundled/prior.onnx internal/restore/solver/testdata/methods     # numpy, scipy, onnxruntime

Each case is a folder ddiff_exact_* or dpir_*: the settings, the measurement of a smooth scene, and the state after each of ten steps. The operators are
dense matrices, the data step is a solution of the normal equations, and no random draw enters the steps. With x and u for one image, and
tau_t^2 = (1 - abar_t)/abar_t, a step from t to s is

    z = D_t(x + u)
    x = argmin_x |y - A x|^2 + rho_t |x - (z - u)|^2,  rho_t = lambda (noise_std/2)^2 / tau_t^2
    u = (u + x - z) tau_s^2/tau_t^2                                                                       (0 in dpir)

and the state is the prior's next argument, sqrt(abar_s) (x + u), in dpir x.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Callable

import numpy as np
import onnxruntime
from scipy.ndimage import gaussian_filter1d

SIDE, STEPS = 32, 10
ALPHA_BAR = np.cumprod(1 - np.linspace(1e-4, 0.02, 1000))

Array = np.ndarray


def scene() -> Array:
    """A picture in [-1, 1] with edges and shades."""
    y, x = np.mgrid[:SIDE, :SIDE] / (SIDE - 1)
    disc = ((x - 0.4) ** 2 + (y - 0.55) ** 2 < 0.08) * 0.7
    return np.stack([0.8 * x - 0.3 - disc, 0.5 * np.sin(5 * y) - disc / 2, disc + 0.4 * x * y - 0.2])


def blur() -> Array:
    """The matrix of a Gaussian blur of std 3 pixels at 256, borders reflected without repeating the edge."""
    g = gaussian_filter1d(np.eye(SIDE), 3 * SIDE / 256, axis=0, mode="mirror", truncate=4)
    return np.kron(g, g)


def reduction(factor: int) -> Array:
    """The matrix of a cubic reduction whose kernel is stretched by the factor, borders mirrored with the edge pixel repeated."""

    def cubic(d: float) -> float:
        d = abs(d)
        return 1.5 * d**3 - 2.5 * d**2 + 1 if d <= 1 else -0.5 * d**3 + 2.5 * d**2 - 4 * d + 2 if d < 2 else 0.0

    rows = np.zeros((SIDE // factor, SIDE))
    for i, row in enumerate(rows):
        centre = (i + 0.5) * factor - 0.5
        for j in range(int(np.floor(centre - 2 * factor)), int(np.ceil(centre + 2 * factor)) + 1):
            inside = -j - 1 if j < 0 else 2 * SIDE - 1 - j if j >= SIDE else j
            row[inside] += cubic((j - centre) / factor)
    rows /= rows.sum(axis=1, keepdims=True)
    return np.kron(rows, rows)


def denoiser(model: str, mirror: bool) -> Callable[[Array, int, int], Array]:
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])

    def denoise(x: Array, t: int, step: int) -> Array:
        axes = [a for a, bit in ((1, 2), (2, 1)) if mirror and step & bit]
        given = np.flip(np.sqrt(ALPHA_BAR[t]) * x, axes).astype(np.float32)[None]
        z = session.run(None, {"x": np.ascontiguousarray(given), "t": np.array([t], np.int64)})[0][0]
        return np.clip(np.flip(z, axes), -1, 1).astype(np.float64)

    return denoise


def solve(model: str, matrices: list[Array], y: Array, start: Array, settings: dict) -> Array:
    """The states after each step."""
    denoise = denoiser(model, settings["mirror"] == "alternate")
    times = [round(i * settings["t_start"] / (STEPS - 1)) for i in reversed(range(STEPS))]
    tau2 = [(1 - ALPHA_BAR[t]) / ALPHA_BAR[t] for t in times] + [0.0]
    signal = [np.sqrt(ALPHA_BAR[t]) for t in times[1:]] + [1.0]
    x, u, states = start, np.zeros((3, SIDE, SIDE)), []
    for k, t in enumerate(times):
        z = denoise(x + u, t, k)
        rho = settings["lambda"] * (settings["noise_std"] / 2) ** 2 / tau2[k]
        x = np.empty_like(z)
        for c, a in enumerate(matrices):
            v = (z - u)[c].ravel()
            x[c] = np.linalg.solve(a.T @ a + rho * np.eye(a.shape[1]), a.T @ y[c] + rho * v).reshape(SIDE, SIDE)
        if settings["method"] == "ddiff":
            u = (u + x - z) * tau2[k + 1] / tau2[k]
        states.append(signal[k] * (x + u) if settings["method"] == "ddiff" else x)
    return np.stack(states)


def main(model: str, folder: Path) -> None:
    rng = np.random.default_rng(20261127)
    mask = (rng.random((SIDE, SIDE)) > 0.7).astype(np.float64)
    bayer = np.zeros((3, SIDE, SIDE))
    bayer[0, ::2, ::2] = bayer[1, 1::2, ::2] = bayer[1, ::2, 1::2] = bayer[2, 1::2, 1::2] = 1
    cases = {
        "gaussian_deblur": ([blur()] * 3, 0.05, "alternate", 120, 2.0),
        "super_resolution": ([reduction(4)] * 3, 0.02, "none", 150, 2.0),
        "inpaint_random": ([np.diag(mask.ravel())] * 3, 0.05, "alternate", 60, 3.0),
        "demosaic": ([np.diag(m.ravel()) for m in bayer], 0.2, "none", 60, 1.0),
    }
    for task, (matrices, sigma, mirror, first, weight) in cases.items():
        noise = rng.standard_normal((3, matrices[0].shape[0]))
        y = np.stack([a @ x.ravel() + sigma * n for a, x, n in zip(matrices, scene(), noise)])
        if task == "super_resolution":
            start = np.stack([np.linalg.pinv(a) @ v for a, v in zip(matrices, y)])
        else:
            start = np.stack([a @ v if task in ("inpaint_random", "demosaic") else v for a, v in zip(matrices, y)])
        rough = start.reshape(3, SIDE, SIDE)
        if task == "demosaic":
            measured = sum(np.diag(a) * v for a, v in zip(matrices, y))[None].reshape(1, SIDE, SIDE)
        else:
            side = int(np.sqrt(y.shape[1]))
            measured = y.reshape(3, side, side)
        for method in ("ddiff", "dpir") if task == "gaussian_deblur" else ("ddiff",):
            settings = {"method": method, "steps": STEPS, "lambda": weight, "noise_std": sigma, "t_start": first, "mirror": mirror}
            out = folder / f"{'ddiff_exact' if method == 'ddiff' else method}_{task}"
            out.mkdir(parents=True, exist_ok=True)
            stated = settings | ({"data_step": "exact"} if method == "ddiff" else {})
            case = {"task": task, "key": [15, 2026, 11], "sigma": sigma, "settings": stated}
            (out / "case.json").write_text(json.dumps(case, indent=1) + "\n")
            np.save(out / "y.npy", measured[None].astype(np.float32))
            np.save(out / "x.npy", solve(model, matrices, y, rough, settings).astype(np.float32))
            if task == "inpaint_random":
                np.save(out / "mask.npy", mask.astype(np.float32))


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
