"""Steps of SITCOM, with the code of sjames40/SITCOM at 445738a.

The script for y with noise runs as it is. Its scheduler, which is that of diffusers, is a stand-in with the times and the schedule alone.
"""

from __future__ import annotations

import pathlib
import sys
import types
from collections.abc import Iterator
from unittest import mock

import torch
from torch import Tensor

from method_vectors.author_code import Unconditional, alpha_bar, environment, strided
from method_vectors.case import SIGMA, STEPS, Case, Enough, measure, start, truth
from method_vectors.noise import SIDE, draw


class Scheduler:
    """DDIMScheduler as the script uses it."""

    def __init__(self) -> None:
        self.alphas_cumprod = alpha_bar()[1:]

    def set_timesteps(self, num_inference_steps: int) -> None:
        self.timesteps = torch.tensor(strided(num_inference_steps)[:num_inference_steps][::-1])


class Recorder(Unconditional):
    """The network, which records its first input at each time but the first."""

    in_channels = 3
    case: Case
    time = -1

    def forward(self, x: Tensor, t: Tensor) -> Tensor:
        if int(t) != self.time:
            if self.time >= 0:
                self.case.record(x)
            self.time = int(t)
        return super().forward(x, t.long())


def sitcom(folder: str) -> Iterator[Case]:
    """SITCOM_with_noise.py for super-resolution and Gaussian deblurring."""
    steps = STEPS + 1  # the state after the last one is the clean image
    empty = (
        "common_utils", "data", "data.dataloader", "guided_diffusion.condition_methods", "guided_diffusion.gaussian_diffusion_correct",
        "guided_diffusion.unet", "lpips", "matplotlib", "matplotlib.pyplot", "motionblur", "motionblur.motionblur", "torchvision",
        "torchvision.transforms", "torchvision.utils", "util.logger", "yaml",
    )  # fmt: skip
    scheduler = types.ModuleType("ddim_sampler")
    scheduler.DDIMScheduler = Scheduler
    script = (pathlib.Path(folder) / "SITCOM_with_noise.py").read_text()
    for task, iterations, rate, options in (
        ("super_resolution", 12, 0.02, {"name": "super_resolution", "in_shape": (1, 3, SIDE, SIDE), "scale_factor": 4}),
        ("gaussian_deblur", 8, 0.01, {"name": "gaussian_blur", "kernel_size": 7, "intensity": 0.375}),
    ):
        case = Case(f"sitcom_{task}", task, {"method": "sitcom", "steps": steps, "iterations": iterations, "lr": rate, "noise_std": SIGMA})
        model = Recorder()
        model.case = case
        configuration = {
            "data": {}, "conditioning": {"method": "", "params": {}},
            "measurement": {"operator": options | {"in_shape": (1, 3, SIDE, SIDE)} if task == "super_resolution" else options, "noise": {}},
        }  # fmt: skip
        normals = noise(strided(steps)[:steps][::-1])

        def randn(*_: object, requires_grad: bool = False, **__: object) -> Tensor:
            # One tensor is written over before it is read.
            return torch.zeros(1, 3, SIDE, SIDE, requires_grad=True) if requires_grad else next(normals)  # noqa: B023

        given = ["sitcom", f"--num_steps={iterations}", f"--n_step={steps}", f"--learning_rate={rate}", f"--noiselevel={SIGMA}"]
        given += [f"--{name}_config={__file__}" for name in ("model", "diffusion", "task")]  # any file: yaml.load reads none
        with environment(folder, *empty, ddim_sampler=scheduler), mock.patch.object(sys, "argv", given):
            sys.modules["torchvision"].torch = torch
            sys.modules["yaml"].load = lambda *_, **__: configuration  # noqa: B023
            sys.modules["data.dataloader"].get_dataloader = lambda *_, **__: [truth() / 2 + 0.5]
            create = mock.MagicMock()
            create.return_value.to.return_value = model
            sys.modules["guided_diffusion.unet"].create_model = create
            from guided_diffusion import measurements

            case.y = measure(measurements.get_operator(device="cpu", **options).forward)
            measurements.get_noise = lambda **_: lambda _: case.y  # noqa: B023
            code: dict[str, object] = {"__name__": "sitcom"}
            with mock.patch.object(torch, "randn", randn):
                try:
                    exec(compile(script, "SITCOM_with_noise.py", "exec"), code)
                except Enough:
                    yield case


def noise(times: list[int]) -> Iterator[Tensor]:
    """The numbers of torch.randn: two for the start, two for each step, of which the first is not used."""
    last = alpha_bar()[-1]
    yield start() * last.sqrt()
    yield start() * (1 - last).sqrt()
    for t in times:
        yield torch.zeros(1, 3, SIDE, SIDE)
        yield draw(0, t)
