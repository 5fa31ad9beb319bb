"""Steps of PnP-Flow, with the code of annegnx/PnP-Flow at ee5b159.

Its network is a velocity at a real time; the prior is evaluated at the nearest index of its schedule. The operator of super-resolution is an average: the
code's own keeps every second pixel.
"""

from __future__ import annotations

import importlib
import math
import types
from collections.abc import Callable, Iterator
from unittest import mock

import numpy as np
import torch
import torch.nn.functional as F
from ddiff_torch.random_inputs import random_mask
from torch import Tensor, nn

from method_vectors.author_code import bundled, environment, returns
from method_vectors.case import SIGMA, STEPS, Case, Enough, measure, truth
from method_vectors.daps import nearest, noise_levels
from method_vectors.noise import SIDE, draw

EMPTY = (
    "PIL", "cv2", "deepinv", "ignite", "ignite.metrics", "lpips", "matplotlib", "matplotlib.pyplot", "pnpflow.image_generation",
    "pnpflow.image_generation.models", "pnpflow.image_generation.models.utils", "pnpflow.models", "skimage", "skimage.metrics", "torchmetrics", "torchmetrics.functional",
    "torchmetrics.functional.image", "torchvision", "torchvision.transforms",
)  # fmt: skip


class Velocity(nn.Module):
    """The bundled prior as flow matching calls it: x - n for s x + (1 - s) n."""

    def __init__(self) -> None:
        super().__init__()
        self.network = bundled()
        self.levels = noise_levels()

    def forward(self, x: Tensor, s: Tensor) -> Tensor:
        at = float(s[0])
        level = min((1 - at) / at, self.levels[-1]) if at > 0 else self.levels[-1]
        scaled = x / math.hypot(at, 1 - at)
        noise = self.network.noise(scaled, torch.tensor([nearest(self.levels, level)]))
        return (scaled * math.hypot(1, level) - level * noise - x) / (1 - at)


class Average:
    """Super-resolution by averages of 4x4 pixels."""

    def H(self, x: Tensor) -> Tensor:  # noqa: N802
        return F.avg_pool2d(x, 4)

    def H_adj(self, y: Tensor) -> Tensor:  # noqa: N802
        return F.interpolate(y, scale_factor=4) / 16


class Mask:
    """The code's degradation by a mask, with another mask."""

    def __init__(self, mask: np.ndarray) -> None:
        self.mask = torch.from_numpy(mask)

    def H(self, x: Tensor) -> Tensor:  # noqa: N802
        return self.mask * x

    H_adj = H


def tasks() -> Iterator[tuple[str, Mask | Average, np.ndarray | None]]:
    mask = random_mask(np.random.default_rng(23), SIDE, SIDE)
    yield "inpaint_random", Mask(mask), mask
    yield "super_resolution_area", Average(), None


def run(case: Case, method: object, hook: str, degradation: Mask | Average, noise: Callable[[], Iterator[Tensor]]) -> Case:
    """Runs a method, whose function hook gets the state at the start of each step."""
    case.y = measure(degradation.H)
    called = getattr(method, hook)
    calls = iter(range(STEPS + 1))

    def recorded(x: Tensor, *arguments: object) -> Tensor:
        if next(calls) > 0:
            case.record(x)
        return called(x, *arguments)

    setattr(method, hook, recorded)

    def normals() -> Iterator[Tensor]:
        yield (case.y - degradation.H(truth())) / SIGMA
        yield from noise()

    with mock.patch.object(torch, "randn_like", returns(normals())):
        try:
            method.solve_ip([(truth(), None)], degradation, SIGMA)
        except Enough:
            return case
    raise ValueError("the run ended early")


def arguments(**values: object) -> types.SimpleNamespace:
    return types.SimpleNamespace(
        model="ot", noise_type="gaussian", max_batch=1, compute_time=False, compute_memory=False, save_results=False, **values
    )  # fmt: skip


def pnp_flow(folder: str) -> Iterator[Case]:
    """The class PNP_FLOW with the step sizes alpha_1_minus_t."""
    steps = STEPS + 1
    with environment(folder, *EMPTY):
        code = importlib.import_module("pnpflow.methods.pnp_flow")
        for (task, degradation, mask), lr, alpha, samples in zip(tasks(), (1.0, 8.0), (0.5, 1.3), (1, 3)):
            case = Case(f"pnp_flow_{task}", task, {"method": "pnp_flow", "steps": steps, "lr": lr, "alpha": alpha, "samples": samples}, mask=mask)
            args = arguments(method="pnp_flow", steps_pnp=steps, lr_pnp=lr, alpha=alpha, num_samples=samples, gamma_style="alpha_1_minus_t")

            def noise(samples: int = samples) -> Iterator[Tensor]:
                return (draw(0, t, i) for t in reversed(range(steps)) for i in range(samples))

            yield run(case, code.PNP_FLOW(Velocity(), "cpu", args), "grad_datafit", degradation, noise)
