"""Steps of AdamDPS, with the code of christianbelardi/adam-guidance at 21f878a. Its sampler is that of DDIM; the times are those of DPS."""

from __future__ import annotations

import importlib
import types
from collections.abc import Iterator

import torch
from ddiff_torch import schedule
from torch import Tensor

from method_vectors.author_code import Unconditional, alpha_bar, environment
from method_vectors.case import Case, Enough, measure, start
from method_vectors.noise import SIDE, draw


def adam_dps(folder: str) -> Iterator[Case]:
    """AdamDPSGuidance for super-resolution."""
    steps, rate, beta1, beta2 = 12, 0.05, 0.6, 0.8
    empty = (
        "datasets", "diffusers", "diffusers.utils", "diffusers.utils.torch_utils", "matplotlib", "matplotlib.pyplot", "tasks.base", "tasks.utils",
        "torchvision", "torchvision.transforms", "utils.configs",
    )  # fmt: skip
    network = Unconditional()
    settings = {"method": "dps", "steps": steps, "guidance": "adam", "rate": rate, "beta1": beta1, "beta2": beta2}
    case = Case("dps_adam_super_resolution", "super_resolution", settings)
    with environment(folder, *empty):
        operators = importlib.import_module("tasks.networks.image_inverse_operator")
        task = importlib.import_module("tasks.super_resolution")
        method = importlib.import_module("methods.adam_dps")
        args = types.SimpleNamespace(beta1=beta1, beta2=beta2, device="cpu", guidance_strength=rate, clip_sample_range=1.0, batch_id=0, per_sample_batch_size=1)
        guider = task.SuperResolution.__new__(task.SuperResolution)
        guider.args, guider.operator = args, operators.SuperResolutionOperator("cpu", [1, 3, SIDE, SIDE], 4)
        case.y = guider.noisy_images = measure(guider.operator.forward)
        times = torch.tensor(schedule.respaced(steps))
        levels = alpha_bar()[times + 1]
        following = torch.cat([levels[1:], torch.ones(1)])
        now = 0

        def noisy(x: Tensor, sigma: Tensor) -> Tensor:
            return x + sigma * draw(0, int(times[now]))

        guidance = method.AdamDPSGuidance(args, noise_fn=noisy)
        guidance.guider = guider
        x = start()
        try:
            for now in range(steps):
                x = guidance.guide_step(x, now, lambda v, t: network(v, t.reshape(1))[:, :3], times, levels, following, 1.0)
                case.record(x)
        except Enough:
            yield case
