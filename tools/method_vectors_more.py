#!/usr/bin/env python3
"""Write further reference vectors of published methods, as method_vectors.py does.

    python3 tools/method_vectors_more.py reddiff DIR OUTDIR    DIR is a copy of NVlabs/RED-diff, commit 66482f2
    python3 tools/method_vectors_more.py ddrm    DIR OUTDIR    DIR is a copy of bahjat-kawar/ddrm, commit 32b6b3c
    python3 tools/method_vectors_more.py dcdp    DIR OUTDIR    DIR is a copy of Morefre/Decoupled-Data-Consistency-with-Diffusion-
                                                               Purification-for-Image-Restoration, commit fa89ad3
    python3 tools/method_vectors_more.py dmplug  DIR OUTDIR    DIR is a copy of sun-umn/DMPlug, commit e3101e7

The stand-ins are those of method_vectors.py, and:

  - RED-diff's steps of Adam are recorded where they end. The learning rates are small: Adam's first step moves each entry by the
    learning rate, so that rounding decides where a gradient is nearly 0. Its classes for diffusion and guidance, which need CUDA,
    are a schedule and the bundled prior;
  - DDRM draws noise in the space of the singular vectors, three times in a step. Each draw is that of restore/noise, which is one
    per step in pixels, times the transpose of the code's V. Its "cuda" is read as "cpu";
  - DCDP draws the noise of y itself: that of method_vectors.py;
  - DMPlug measures a picture from a file, draws its seed and stops after 5000 iterations: it gets the picture, the seed and the
    noise of method_vectors.py, and an end. Its scheduler has its settings without the package diffusers. Its measures of the result are 0.
"""

from __future__ import annotations

import importlib
import inspect
import itertools
import pathlib
import sys
import types
from collections.abc import Callable, Iterator
from unittest import mock

import method_vectors
import numpy as np
import torch
from ddiff_torch import schedule
from ddiff_torch.random_inputs import random_mask
from method_vectors import SIDE, SIGMA, START, STEPS, Case, Enough, Progress, Unconditional
from method_vectors import bundled, draw, environment, measure, normal, returns, start, truth
from torch import Tensor, nn


def alpha_bar() -> Tensor:
    """The schedule as the codes of DDIM have it: entry t + 1 is that of time t, and entry 0 is 1."""
    return torch.tensor(np.concatenate([[1.0], schedule.alpha_bar()]), dtype=torch.float32)


def strided(steps: int) -> list[int]:
    return list(range(0, schedule.TRAIN_STEPS, schedule.TRAIN_STEPS // steps))


# RED-diff.


def reddiff(folder: str) -> Iterator[Case]:
    """The algorithm REDDIFF with its operators for inpainting and super-resolution by averages."""
    network, steps = bundled(), 20
    algos = types.ModuleType("algos")
    algos.__path__ = [str(pathlib.Path(folder) / "algos")]

    class Diffusion:
        def alpha(self, t: Tensor) -> Tensor:
            return alpha_bar()[t + 1]

    class Model:
        diffusion = Diffusion()

        def __call__(self, x: Tensor, _y: Tensor, t: Tensor, scale: float) -> tuple[Tensor, Tensor]:
            eps, a = network.noise(x, t[:1]), self.diffusion.alpha(t).view(-1, 1, 1, 1)
            return eps, (x - eps * (1 - a).sqrt()) / a.sqrt()

    empty = ("omegaconf", "matplotlib", "matplotlib.pyplot", "models", "models.classifier_guidance_model")
    with environment(folder, *empty, algos=algos):
        module = importlib.import_module("algos.reddiff")
        operators = importlib.import_module("utils.degredations")
        mask = random_mask(np.random.default_rng(19), SIDE, SIDE)
        for name, task, more in (
            ("reddiff_inpaint_random", "inpaint_random", {"denoise_term_weight": "linear", "grad_term_weight": 0.25, "lr": 0.002}),
            ("reddiff_super_resolution_area", "super_resolution_area", {"denoise_term_weight": "log", "grad_term_weight": 0.7, "lr": 0.01}),
        ):
            case = Case(name, task, {"method": "reddiff", "steps": steps, "obs_weight": 0.8} | more)
            if task == "inpaint_random":
                case.mask = mask
                operator = operators.Inpainting2(3, SIDE, torch.from_numpy(mask).repeat(1, 3, 1, 1).bool(), "cpu")
                operator.set_indices(torch.tensor([0]))
            else:
                operator = operators.SuperResolution(3, SIDE, 4, "cpu")
            y = measure(operator.H)
            case.y = y.view(1, 3, SIDE, SIDE) * torch.from_numpy(mask) if case.mask is not None else y.view(1, 3, SIDE // 4, SIDE // 4)

            class Recorded(torch.optim.Adam):
                def step(self) -> None:
                    super().step()
                    case.record(self.param_groups[0]["params"][0])  # noqa: B023

            algo = types.SimpleNamespace(awd=True, cond_awd=False, eta=0.0, sigma_x0=0.0, sigma_y=0.0, deg=task, **case.settings)
            config = types.SimpleNamespace(algo=algo, exp=types.SimpleNamespace(save_evolution=False))

            def noise() -> Iterator[Tensor]:
                for t in reversed(strided(steps)):
                    yield torch.zeros(1, 3, SIDE, SIDE)  # of sigma_x0 = 0
                    yield draw(0, t)

            with (
                mock.patch.object(module, "build_degredation_model", lambda _: operator),  # noqa: B023
                mock.patch.object(torch.optim, "Adam", Recorded),
                mock.patch.object(torch, "randn_like", returns(noise())),
            ):
                try:
                    module.REDDIFF(Model(), config).sample(torch.zeros(1, 3, SIDE, SIDE), None, strided(steps), y_0=y)
                except Enough:
                    yield case


# DDRM.


def ddrm(folder: str) -> Iterator[Case]:
    """efficient_generalized_steps with the code's operators for inpainting and bicubic super-resolution."""
    steps = 20
    network = Unconditional()
    with environment(folder, "torchvision", "torchvision.utils"), mock.patch.dict(sys.modules, tqdm=types.ModuleType("tqdm")):
        sys.modules["tqdm"].tqdm = Progress
        operators = importlib.import_module("functions.svd_replacement")
        text = (pathlib.Path(folder) / "functions/denoising.py").read_text()
        code: dict[str, object] = {}
        exec(compile(text.replace("to('cuda')", "to('cpu')"), "denoising.py", "exec"), code)
        mask = random_mask(np.random.default_rng(20), SIDE, SIDE)
        for name, task, eta, eta_b in (
            ("ddrm_inpaint_random", "inpaint_random", 0.85, 1.0),
            ("ddrm_super_resolution", "super_resolution", 0.7, 0.9),
        ):
            settings = {"method": "ddrm", "steps": steps, "eta": eta, "eta_b": eta_b, "noise_std": SIGMA}
            case = Case(name, task, settings)
            if task == "inpaint_random":
                case.mask = mask
                missing = torch.nonzero(torch.from_numpy(mask).reshape(-1) == 0).reshape(-1) * 3
                operator = operators.Inpainting(3, SIDE, torch.cat([missing, missing + 1, missing + 2]), "cpu")
            else:
                operator = operators.SRConv(cubic(4), 3, SIDE, "cpu", stride=4)
            y = measure(operator.H)
            case.y = operator.V(operator.add_zeros(y)) if task == "inpaint_random" else y
            case.y = case.y.view(1, 3, SIDE, SIDE) if task == "inpaint_random" else y.view(1, 3, SIDE // 4, SIDE // 4)
            times, singulars = strided(steps), operator.singulars()

            def noise() -> Iterator[Tensor]:
                for t, s in zip(reversed(times), reversed([-1, *times[:-1]])):  # noqa: B023
                    z = operator.Vt(draw(0, t)).view(1, -1)  # noqa: B023
                    level = ((1 - alpha_bar()[s + 1]) / alpha_bar()[s + 1]).sqrt()
                    after = singulars * level < SIGMA  # noqa: B023
                    m = singulars.numel()  # noqa: B023
                    yield z
                    yield z[:, :m][:, after]
                    yield z[:, :m]

            betas = torch.from_numpy(1 - schedule.alpha_bar() / np.concatenate([[1.0], schedule.alpha_bar()[:-1]])).float()
            first = operator.Vt(start()).view(1, 3, SIDE, SIDE)
            with mock.patch.object(torch, "randn_like", returns(noise())):
                states, _ = code["efficient_generalized_steps"](
                    first, times, lambda x, t: network(x, t.long()), betas, operator, y, SIGMA, eta_b, eta, eta)  # fmt: skip
            case.states = [x.detach().clone() for x in states[1 : STEPS + 1]]
            yield case


def cubic(factor: int) -> Tensor:
    """The kernel of DDRM's runner for sr_bicubic: cubic interpolation with a = -1/2, stretched."""
    x = np.abs((np.arange(factor * 4) - factor * 2 + 0.5) / factor)
    k = np.where(x <= 1, 1.5 * x**3 - 2.5 * x**2 + 1, -0.5 * x**3 + 2.5 * x**2 - 4 * x + 2)
    return torch.from_numpy(k / k.sum()).float()


# DCDP.


def dcdp(folder: str) -> Iterator[Case]:
    """Diffusion_Purified_CSGM for super-resolution, and for inpainting with turns at the last times."""
    empty = ("matplotlib", "matplotlib.pyplot", "torchvision", "torchvision.transforms", "motionblur", "motionblur.motionblur", "tqdm", "tqdm.auto",
             "skimage", "skimage.metrics", "torchmetrics", "torchmetrics.image", "torchmetrics.image.lpip", "data", "data.dataloader")  # fmt: skip
    with environment(folder, *empty):
        sys.modules["tqdm.auto"].tqdm = Progress
        sys.modules["torchvision"].torch = torch
        module = importlib.import_module("dcdp")
        conditions = importlib.import_module("guided_diffusion.condition_methods")
        measurements = importlib.import_module("guided_diffusion.measurements")
        mask = random_mask(np.random.default_rng(21), SIDE, SIDE)
        for task, options, first, lr in (
            ("super_resolution", {"name": "super_resolution", "in_shape": (1, 3, SIDE, SIDE), "scale_factor": 4}, 400, 2000.0),
            ("inpaint_random", {"name": "inpainting"}, 18, 20000.0),
        ):
            turns, descents, evaluations, momentum = STEPS, 8, 5, 0.8
            settings = {"csgm_num_iterations": descents, "lr": lr, "momentum": momentum, "ddim_init_timestep": first, "ddim_end_timestep": 0,
                        "ddim_num_iterations": evaluations}  # fmt: skip
            case = Case(f"dcdp_{task}", task, {"method": "dcdp", "steps": turns} | settings)
            given = None
            if task == "inpaint_random":
                case.mask = mask
                given = torch.from_numpy(mask)[None]
            operator = measurements.get_operator(device="cpu", **options)
            kind = "inpainting" if given is not None else "super_resolution"
            case.y = measure(lambda x: operator.forward(x, mask=given))  # noqa: B023
            added = (case.y - operator.forward(truth(), mask=given)) / SIGMA
            if given is not None:
                case.y = case.y * given
            times = module.Purification_Schedule(turns, first, 0)

            def noise() -> Iterator[Tensor]:
                for t in times:  # noqa: B023
                    yield draw(0, int(t) - 1)
                    for _ in range(min(max(int(t), 2), evaluations)):  # noqa: B023
                        yield torch.zeros(1, 3, SIDE, SIDE)  # of eta = 0

            solve = module.CSGM_Solver_Pixel_Space

            def solved(measurement: Tensor, x: Tensor, *args: object, **kwargs: object) -> tuple[Tensor, list[Tensor]]:
                case.states.append(x.detach().clone())  # noqa: B023
                return solve(measurement, x, *args, **kwargs)  # noqa: B023

            condition = conditions.get_conditioning_method("vanilla", operator, types.SimpleNamespace(__name__="gaussian"), scale=0)
            with (
                mock.patch.multiple(module, CSGM_Solver_Pixel_Space=solved),
                mock.patch.multiple(torch, randn=lambda _: added, randn_like=returns(noise())),  # noqa: B023
            ):
                # The learning rate of 256x256 images is that of these images times (256/SIDE)^2.
                last, _ = module.Diffusion_Purified_CSGM(
                    Unconditional(), truth(), turns, descents, "cpu", condition, first, 0, operator, kind, SIGMA, mask=given,
                    ddim_num_iterations=evaluations, optimizer="SGD", momentum=momentum, lr=lr * (SIDE / 256) ** 2, save_every_main=10**6,
                    save_every_sub=10**6, root_path="")  # fmt: skip
            case.states = [*case.states[1:], last.detach().clone()]
            yield case


# DMPlug.


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


if __name__ == "__main__":
    method_vectors.PUBLICATIONS = {"reddiff": reddiff, "ddrm": ddrm, "dcdp": dcdp, "dmplug": dmplug}
    method_vectors.__doc__ = __doc__
    sys.exit(method_vectors.main())
