"""Times the solver in PyTorch on this CPU: python3 -m ddiff_torch.bench --prior FILE ...

Prints one JSON object. The times come from the steps of one solver run, after a warm-up
run: ms_per_step is the median time from one call of the score network to the next,
ms_per_step_network the median time inside the network, and mean_ms_per_step the wall time of
the run divided by its steps. A mean far above the median indicates other load on the machine.

The PyTorch side is optimised: optional channels-last layout, no autograd graph through the
network, autograd only through A, noise drawn before the timed run, no curves recorded,
the Gaussian blur separated into two axes, the large blur kernels applied through the DFT.
"""

from __future__ import annotations

import argparse
import functools
import json
import math
import sys
import time

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from .onnx_prior import NetworkPrior, load
from .operators import Measurement, correlate, gaussian_kernel, measurement, nonlinear_deblur
from .random_inputs import box_mask, path_kernel, random_mask
from .solver import Config, solve

WARM_UP = 3

# gamma0, t0 and the sigma rule of the paper's FFHQ table.
SETTINGS: dict[str, tuple[float, int, str]] = {
    "super_resolution": (18, 1, "full"),
    "inpaint_box": (30, 1, "full"),
    "inpaint_random": (50, 1, "full"),
    "gaussian_deblur": (2.9, 50, "ddpm"),
    "motion_deblur": (2.9, 80, "ddpm"),
    "phase_retrieval": (38, 1, "full"),
    "nonlinear_deblur": (2.5, 120, "ddpm"),
    "hdr": (3.5, 120, "ddpm"),
}


def operator(task: str, size: int, batch: int) -> Measurement:
    """The task's operator, with the paper's masks and kernels scaled from 256 to size.

    Slow definitions are replaced by faster equivalents.
    """
    rng = np.random.default_rng(0)
    if task in ("inpaint_box", "inpaint_random"):
        draw = box_mask if task == "inpaint_box" else random_mask
        masks = torch.from_numpy(np.stack([draw(rng, size, size) for _ in range(batch)]))
        return measurement("inpaint", {}, mask=masks)
    if task == "gaussian_deblur":
        std = 3 * size / 256
        return Measurement(functools.partial(separable_gaussian, std=std, size=2 * math.ceil(4 * std) + 1))
    kernels = torch.from_numpy(np.stack([path_kernel(rng, 2 * (30 * size // 256) + 1) for _ in range(batch)]))
    if task == "motion_deblur":
        return Measurement(functools.partial(correlate_dft, kernel=kernels))
    if task == "nonlinear_deblur":
        return Measurement(functools.partial(nonlinear_deblur, kernel=kernels, blur=correlate_dft))
    return measurement(task, {})


def separable_gaussian(x: Tensor, std: float, size: int) -> Tensor:
    """operators.gaussian_deblur along one axis, then the other: its kernel is an outer product."""
    axis = torch.from_numpy(gaussian_kernel(std, size).sum(0)).to(x.dtype)
    return correlate(correlate(x, axis[:, None]), axis[None, :])


def correlate_dft(x: Tensor, kernel: Tensor) -> Tensor:
    """operators.correlate for kernels (N, 1, K, K), as a product of spectra."""
    height, width = x.shape[-2:]
    border = kernel.shape[-1] // 2
    padded = F.pad(x, (border,) * 4, mode="reflect")
    sides = padded.shape[-2:]
    product = torch.fft.rfft2(padded) * torch.fft.rfft2(kernel, s=sides).conj()
    return torch.fft.irfft2(product, s=sides)[..., :height, :width]


class TimedPrior:
    """A prior that records the start and end of each call, in seconds."""

    def __init__(self, prior: NetworkPrior) -> None:
        self._prior = prior
        self.starts: list[float] = []
        self.ends: list[float] = []

    def image(self, x: Tensor, t: int) -> Tensor:
        self.starts.append(time.perf_counter())
        z = self._prior.image(x, t)
        self.ends.append(time.perf_counter())
        return z


def bench(
    prior_path: str, task: str, size: int, batch: int, steps: int, threads: int, channels_last: bool = False
) -> dict[str, object]:
    """Measures one setting; the module's docstring defines the times."""
    torch.set_num_threads(threads)
    torch.manual_seed(0)
    gamma0, t0, rule = SETTINGS[task]
    layout = torch.channels_last if channels_last else torch.contiguous_format
    network = NetworkPrior(load(prior_path).to(memory_format=layout))
    measured = operator(task, size, batch)
    x = torch.rand(batch, 3, size, size) * 2 - 1
    y = measured.forward(x)
    y = y + 0.05 * torch.randn_like(y)
    state, fresh = torch.randn_like(x), torch.randn_like(x)

    def run(prior: NetworkPrior | TimedPrior, n: int) -> None:
        config = Config("ddiff", n, gamma0, 90, 3.3, 0.1, t0, rule, "norm")
        solve(config, prior, measured, y, state, [fresh] * n)

    run(network, WARM_UP)
    timed = TimedPrior(network)
    run(timed, steps)
    borders = np.array([*timed.starts, time.perf_counter()])
    inside = np.array(timed.ends) - np.array(timed.starts)
    return {
        "ms_per_step": round(float(np.median(np.diff(borders))) * 1e3, 2),
        "ms_per_step_network": round(float(np.median(inside)) * 1e3, 2),
        "mean_ms_per_step": round((borders[-1] - borders[0]) * 1e3 / steps, 2),
        "task": task,
        "size": size,
        "batch": batch,
        "steps": steps,
        "threads": threads,
        "channels_last": channels_last,
        "torch": torch.__version__,
    }


def main(args: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="bench", description="Time the solver in PyTorch on this CPU.")
    parser.add_argument("--prior", required=True, help="ONNX score model")
    parser.add_argument("--task", default="super_resolution", choices=list(SETTINGS))
    parser.add_argument("--size", type=int, default=256, help="side of the images in pixels, a multiple of 8")
    parser.add_argument("--batch", type=int, default=1, help="images per step")
    parser.add_argument("--steps", type=int, default=10, help="timed steps")
    parser.add_argument("--threads", type=int, default=torch.get_num_threads(), help="CPU threads of torch")
    parser.add_argument("--channels-last", action="store_true", help="store weights in channels-last layout, faster on some CPUs")
    o = parser.parse_args(args)
    try:
        result = bench(o.prior, o.task, o.size, o.batch, o.steps, o.threads, o.channels_last)
    except (ValueError, RuntimeError) as err:
        print(f"bench: {err}", file=sys.stderr)
        return 2
    print(json.dumps(result))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
