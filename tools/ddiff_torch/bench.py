"""Times the solver in PyTorch, on the CPU or a GPU: python3 -m ddiff_torch.bench --prior FILE ...

ddiff_torch.compare alternates it with `ddiff bench`. A variant is a precision, then the words channels_last and
compiled, joined by +; bfloat16 and float16 are autocast, float32 has no TF32.

Prints one JSON object. The times come from the steps of one solver run, after a warm-up
run: ms_per_step is the median time from one call of the score network to the next,
ms_per_step_network the median time inside the network, and mean_ms_per_step the wall time of
the run divided by its steps. A mean far above the median indicates other load on the machine.

The PyTorch side is optimised: channels-last layout, bfloat16 and compilation of the network as
variants, no autograd graph through the network, autograd only through A, noise drawn before the timed run, no curves recorded,
the Gaussian blur separated into two axes, the large blur kernels applied through the DFT.
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import json
import math
import sys
import time
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from .onnx_prior import NetworkPrior, load
from .operators import Measurement, correlate, gaussian_kernel, measurement, nonlinear_deblur
from .random_inputs import box_mask, path_kernel, random_mask
from .solver import Config, solve

WARM_UP = 3

# The fastest variants last: a caller that stops early has the others.
VARIANTS = (
    "float32",
    "float32+channels_last",
    "bfloat16+channels_last",
    "float16+channels_last",
    "float32+channels_last+compiled",
    "bfloat16+channels_last+compiled",
    "float16+channels_last+compiled",
)

# gamma0, t0 and the sigma rule of the paper's FFHQ table. Times do not depend on them; the other tasks have gamma0 of the preset gradient.
SETTINGS: dict[str, tuple[float, int, str]] = {
    "super_resolution": (18, 1, "full"),
    "inpaint_box": (30, 1, "full"),
    "inpaint_random": (50, 1, "full"),
    "gaussian_deblur": (2.9, 50, "ddpm"),
    "motion_deblur": (2.9, 80, "ddpm"),
    "phase_retrieval": (38, 1, "full"),
    "nonlinear_deblur": (2.5, 120, "ddpm"),
    "hdr": (3.5, 120, "ddpm"),
    "denoise": (6, 120, "ddpm"),
    "super_resolution_area": (30, 120, "ddpm"),
    "colorize": (16, 120, "ddpm"),
    "demosaic": (9, 120, "ddpm"),
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
    axis = torch.from_numpy(gaussian_kernel(std, size).sum(0)).to(x)
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
    """A prior that records the start and end of each call, in seconds. It waits for the device before and after."""

    def __init__(self, prior: NetworkPrior, device: str) -> None:
        self._prior = prior
        self._wait = (lambda: None) if device == "cpu" else torch.cuda.synchronize
        self.starts: list[float] = []
        self.ends: list[float] = []

    def image(self, x: Tensor, t: int) -> Tensor:
        self._wait()
        self.starts.append(time.perf_counter())
        z = self._prior.image(x, t)
        self._wait()
        self.ends.append(time.perf_counter())
        return z


def has_bfloat16() -> bool:
    """Whether the processor multiplies in bfloat16: AVX512-BF16 or AMX on x86, BF16 on ARM. False where Linux does not say."""
    try:
        words = set(Path("/proc/cpuinfo").read_text().split())
    except OSError:
        return False
    return bool(words & {"avx512_bf16", "amx_bf16", "bf16"})


def variants(device: str) -> list[str]:
    """The variants that this PyTorch and the device support: half precision is bfloat16 on the CPU, float16 on a GPU."""
    if device != "cpu":
        return [name for name in VARIANTS if "bfloat16" not in name]
    if not hasattr(torch, "compile"):  # before 2.0: no compiler, and no group norm in bfloat16 with float32 weights
        return list(VARIANTS[:2])
    return [name for name in VARIANTS if name.startswith("float32") or ("bfloat16" in name and has_bfloat16())]


class VariantPrior(NetworkPrior):
    """The network in the precision and form of a variant; its output is float32."""

    def __init__(self, path: str, variant: str, device: str) -> None:
        if variant not in variants(device):
            raise ValueError(f"variant {variant!r}: use one of {', '.join(variants(device))}")
        words = variant.split("+")
        layout = torch.channels_last if "channels_last" in words else torch.contiguous_format
        network = load(path).to(device, memory_format=layout)
        if "compiled" in words:
            network.rest = torch.compile(network.rest, dynamic=False)  # the transform beside it has complex numbers
        super().__init__(network)
        self._precision, self._kind = getattr(torch, words[0]), torch.device(device).type

    def image(self, x: Tensor, t: int) -> Tensor:
        half = self._precision if self._precision != torch.float32 else torch.bfloat16
        with torch.autocast(self._kind, half, enabled=self._precision != torch.float32):
            return super().image(x, t).to(x.dtype)


class Bench:
    """Measures settings one after the other. It loads and warms up each variant and batch size once."""

    def __init__(self, prior_path: str, size: int, threads: int, device: str = "cpu") -> None:
        torch.set_num_threads(threads)
        if device != "cpu":
            torch.backends.cudnn.allow_tf32 = False
        self.device = device
        self._path, self._size, self._threads = prior_path, size, threads
        self._priors: dict[str, VariantPrior] = {}
        self._warm: set[tuple[str, str, int]] = set()

    def measure(self, variant: str, task: str, batch: int, steps: int) -> dict[str, object]:
        """Measures one setting; the module's docstring defines the times."""
        if task not in SETTINGS:
            raise ValueError(f"task {task!r}: use one of {', '.join(SETTINGS)}")
        if variant not in self._priors:
            self._priors[variant] = VariantPrior(self._path, variant, self.device)
        with torch.device(self.device) if self.device != "cpu" else contextlib.nullcontext():
            return self._measure(variant, task, batch, steps)

    def _measure(self, variant: str, task: str, batch: int, steps: int) -> dict[str, object]:
        network = self._priors[variant]
        torch.manual_seed(0)
        gamma0, t0, rule = SETTINGS[task]
        measured = operator(task, self._size, batch)
        x = torch.rand(batch, 3, self._size, self._size) * 2 - 1
        y = measured.forward(x)
        y = y + 0.05 * torch.randn_like(y)
        state, fresh = torch.randn_like(x), torch.randn_like(x)

        def run(prior: NetworkPrior | TimedPrior, n: int) -> None:
            config = Config("ddiff", n, gamma0, 90, 3.3, 0.1, t0, rule, "norm")
            solve(config, prior, measured, y, state, [fresh] * n)

        # A process that was idle needs one step, too.
        run(network, 1 if (variant, task, batch) in self._warm else WARM_UP)
        self._warm.add((variant, task, batch))
        timed = TimedPrior(network, self.device)
        run(timed, steps)
        borders = np.array([*timed.starts, time.perf_counter()])
        inside = np.array(timed.ends) - np.array(timed.starts)
        return {
            "ms_per_step": round(float(np.median(np.diff(borders))) * 1e3, 2),
            "ms_per_step_network": round(float(np.median(inside)) * 1e3, 2),
            "mean_ms_per_step": round((borders[-1] - borders[0]) * 1e3 / steps, 2),
            "variant": variant,
            "task": task,
            "size": self._size,
            "batch": batch,
            "steps": steps,
            "threads": self._threads,
            "torch": torch.__version__,
        }


def main(args: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="bench", description="Time the solver in PyTorch.")
    parser.add_argument("--prior", required=True, help="ONNX score model")
    parser.add_argument("--variant", default="float32", choices=VARIANTS, help="precision and form of the network")
    parser.add_argument("--task", default="super_resolution", choices=list(SETTINGS))
    parser.add_argument("--size", type=int, default=256, help="side of the images in pixels, a multiple of 8")
    parser.add_argument("--batch", type=int, default=1, help="images per step")
    parser.add_argument("--steps", type=int, default=10, help="timed steps")
    parser.add_argument("--threads", type=int, default=torch.get_num_threads(), help="CPU threads of torch")
    parser.add_argument("--device", default="cpu", help="device of torch (default cpu)")
    o = parser.parse_args(args)
    bench = Bench(o.prior, o.size, o.threads, o.device)
    try:
        result = bench.measure(o.variant, o.task, o.batch, o.steps)
    except (ValueError, RuntimeError) as err:
        print(f"bench: {err}", file=sys.stderr)
        return 2
    print(json.dumps(result))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
