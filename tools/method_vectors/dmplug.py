"""Steps of DMPlug, with the code of sun-umn/DMPlug at e3101e7.

The code measures a picture from a file, draws its seed and stops after 5000 iterations: it gets the picture, the seed and the noise
of the other cases, and an end. Its scheduler has its settings without the package diffusers. Its measures of the result are 0.
"""

from __future__ import annotations

import importlib
import inspect
import itertools
import sys
import types
from collections.abc import Callable, Iterator
from unittest import mock

import numpy as np
import torch
from torch import Tensor, nn

from method_vectors.author_code import bundled, environment
from method_vectors.case import STEPS, Case, Enough, measure, truth
from method_vectors.noise import SIDE, START, normal


def dmplug(folder: str) -> Iterator[Case]:
    """The function dmplug of sr_inp_nonlinear.py for super-resolution."""
    steps = STEPS + 1  # the last state is not recorded

    def registered(init: Callable[..., None]) -> Callable[..., None]:
        def with_config(self: object) -> None:
            self.config = types.SimpleNamespace(**{k: p.default for k, p in inspect.signature(init).parameters.items() if k != "self"})
            init(self)

        return with_config

    configuration, schedulers, outputs = (types.ModuleType(f"diffusers.{name}") for name in ("configuration_utils", "schedulers", "utils"))
    configuration.ConfigMixin, configuration.register_to_config = type("ConfigMixin", (), {}), registered
    outputs.BaseOutput, outputs.deprecate = type("BaseOutput", (), {}), None
    schedulers.SchedulerMixin = type("SchedulerMixin", (), {})
    empty = ("matplotlib", "matplotlib.pyplot", "torchvision", "motionblur", "motionblur.motionblur", "skimage", "skimage.metrics", "lpips", "shutil",
             "PIL", "tqdm", "tqdm.auto", "diffusers", "diffusers.schedulers")  # fmt: skip
    given = {"diffusers.configuration_utils": configuration, "diffusers.utils": outputs, "diffusers.schedulers.scheduling_utils": schedulers}
    with environment(folder, *empty, **given):
        sys.modules["torchvision"].torch = torch
        module = importlib.import_module("sr_inp_nonlinear")
        for lr, evaluations in ((0.002, 3), (0.002, 2)):
            options = {"name": "super_resolution", "in_shape": (1, 3, SIDE, SIDE), "scale_factor": 4}
            settings = {"method": "dmplug", "steps": steps, "lr": lr, "ddim_steps": evaluations}
            case = Case(f"dmplug_{evaluations}_evaluations", "super_resolution", settings)
            operator = module.get_operator(device="cpu", **options)
            case.y = measure(operator.forward)
            forward, calls = operator.forward, itertools.count()

            def measured(x: Tensor) -> Tensor:
                if next(calls) == 0:  # noqa: B023
                    return case.y  # noqa: B023
                case.record(x)  # noqa: B023
                return forward(x)  # noqa: B023

            operator.forward = measured
            scheduler = module.DDIMScheduler()
            scheduler.set_timesteps(evaluations)
            picture = np.round((truth()[0].permute(1, 2, 0).numpy() + 1) / 2 * 255).astype(np.uint8)
            task = {"measurement": {"operator": options, "noise": {"name": "clean"}}}
            network = bundled()
            stand_ins = mock.patch.multiple(
                module, get_operator=lambda **_: operator, peak_signal_noise_ratio=lambda *_: 0,
                structural_similarity=lambda *_, **__: 0,
                Image=types.SimpleNamespace(open=lambda _: types.SimpleNamespace(convert=lambda _: picture)),
                clear_color=lambda y: y,
            )  # fmt: skip
            seed = mock.patch.multiple(torch, randn=lambda *_, **__: normal((1, 3, SIDE, SIDE), START, 1).requires_grad_())
            with stand_ins, seed, mock.patch.object(Tensor, "cuda", lambda x: x):
                try:
                    module.dmplug(Denoise(network), scheduler, "", lr=lr, img_model_config={"image_size": SIDE}, task_config=task, device="cpu")
                except Enough:
                    yield case


class Denoise(nn.Module):
    """The noise that the bundled prior predicts."""

    def __init__(self, network: nn.Module) -> None:
        super().__init__()
        self.network = network

    def forward(self, x: Tensor, t: Tensor) -> Tensor:
        return self.network.noise(x, t.long())
