#!/usr/bin/env python3
"""Write the reference vectors of published methods: the first steps of the authors' own code, with the bundled prior.

    python3 tools/method_vectors.py dps     DIR OUTDIR    DIR is a copy of DPS2022/diffusion-posterior-sampling, commit effbde7
    python3 tools/method_vectors.py daps    DIR OUTDIR    DIR is a copy of zhangbingliang2019/DAPS, commit 098df6b
    python3 tools/method_vectors.py diffpir DIR OUTDIR    DIR is a copy of yuanzhi-zhu/DiffPIR, commit 111d26e

The committed vectors are in restore/solver/testdata/methods. DIR is read and never written. Each case is a folder with

    case.json       the method, the task and the settings of the run
    y.npy           the measurement
    mask.npy        the mask, for inpainting
    x.npy           the state after each step, [steps, 3, H, W]

The start and the noise are those of restore/noise for KEY, which this program computes a second time: a test gives them to the
Go program by the key alone.

The authors' code runs as it is, with these stand-ins:

  - the network is the bundled prior (ddiff_torch.onnx_prior). Where the code expects a learned variance, it is at the lower end of
    its range. DAPS asks for real-valued noise levels; the prior is evaluated at the nearest index of its schedule;
  - torch.randn_like and torch.rand_like return the recorded noise;
  - modules that only draw pictures, load data sets or report progress (matplotlib, tqdm, torchvision, cv2, lpips, ...) are empty;
  - torchdiffeq.odeint is Euler's method on the given points, the only part of it that DAPS uses;
  - DiffPIR is a program without functions. Its main() for inpainting runs with one picture and one mask in place of its image
    files, without its log and its folders, and its assignments of noise level, number of steps, lambda and zeta are replaced by those
    of the case. The states are the inputs of its calls of the network.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib
import itertools
import json
import math
import pathlib
import re
import sys
import types
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from unittest import mock

import numpy as np
import torch
import torch.nn.functional as F
from ddiff_torch import onnx_prior, schedule, wiener
from ddiff_torch.random_inputs import picture, random_mask
from scipy.special import ndtri
from torch import Tensor, nn

KEY = (15, 2026, 7)
SIDE, STEPS, SIGMA = 32, 10, 0.05
START, STEP, SHIFT = 2, 3, 20  # of restore/noise and restore/solver
PRIOR = pathlib.Path(__file__).parent.parent / "restore/prior/bundled/prior.onnx"


# The noise of restore/noise.


def words(count: int, purpose: int, step: int) -> np.ndarray:
    """The first words of a stream of KEY: Philox4x32-10."""
    low = np.uint64(0xFFFFFFFF)
    blocks = -(-count // 4)
    c = [np.arange(blocks, dtype=np.uint64)] + [np.full(blocks, v, np.uint64) for v in (step, purpose, KEY[2])]
    k0, k1 = KEY[:2]
    for _ in range(10):
        p0, p1 = c[0] * np.uint64(0xD2511F53), c[2] * np.uint64(0xCD9E8D57)
        c = [(p1 >> np.uint64(32)) ^ c[1] ^ np.uint64(k0), p1 & low, (p0 >> np.uint64(32)) ^ c[3] ^ np.uint64(k1), p0 & low]
        k0, k1 = (k0 + 0x9E3779B9) & 0xFFFFFFFF, (k1 + 0xBB67AE85) & 0xFFFFFFFF
    return np.stack(c, 1).reshape(-1)[:count]


def normal(shape: tuple[int, ...], purpose: int, step: int) -> Tensor:
    """Independent N(0, 1) numbers of a stream of KEY."""
    w = words(math.prod(shape), purpose, step)
    tail = (2 * (w & np.uint64(0x7FFFFFFF)).astype(np.float64) + 1) / 2**33
    z = -ndtri(tail) * np.where(w >> np.uint64(31), -1, 1)
    return torch.from_numpy(z.astype(np.float32)).reshape(shape)


def draw(position: int, time: int, iteration: int = 0) -> Tensor:
    """The noise of one step: position is that of the draw in the method's declaration."""
    return normal((1, 3, SIDE, SIDE), STEP | iteration << 8, position << SHIFT | time)


def bundled() -> onnx_prior.UNet:
    """The bundled prior, which can be differentiated."""

    def pad(x: Tensor, rows: int, columns: int) -> Tensor:
        return F.pad(x, (columns, columns, rows, rows), mode="replicate")

    wiener._RepeatEdges.apply = staticmethod(pad)
    return onnx_prior.load(PRIOR)


# The run of an author's code.


class Enough(Exception):
    """Ends a run after the recorded steps."""


class Anything(types.ModuleType):
    """A module whose names are all classes that accept any call."""

    __path__: list[str] = []

    def __getattr__(self, name: str) -> object:
        if name.startswith("__"):
            raise AttributeError(name)
        return mock.MagicMock()


@contextlib.contextmanager
def environment(folder: str, *empty: str, **modules: types.ModuleType) -> Iterator[None]:
    """Imports come from folder; the named modules are empty or given."""
    stand_ins = {name: Anything(name) for name in empty} | modules
    with mock.patch.dict(sys.modules, stand_ins), mock.patch.object(sys, "path", [folder, *sys.path]):
        yield


def returns(values: Iterator[Tensor]) -> Callable[..., Tensor]:
    """A replacement of torch.randn_like that returns the next of values."""

    def like(x: Tensor, **_: object) -> Tensor:
        v = next(values)
        if v.shape != x.shape:
            raise ValueError(f"noise of shape {tuple(v.shape)} for {tuple(x.shape)}")
        return v

    return like


@dataclass
class Case:
    """One folder."""

    name: str
    task: str
    settings: dict[str, object]
    y: Tensor | None = None
    mask: np.ndarray | None = None
    states: list[Tensor] = field(default_factory=list)

    def record(self, x: Tensor) -> None:
        """Adds a state; the run ends after STEPS of them."""
        self.states.append(x.detach().clone())
        if len(self.states) == STEPS:
            raise Enough

    def write(self, outdir: pathlib.Path) -> None:
        folder = outdir / self.name
        folder.mkdir(parents=True, exist_ok=True)
        described = {"task": self.task, "key": KEY, "sigma": SIGMA, "settings": self.settings}
        (folder / "case.json").write_text(json.dumps(described, indent=1) + "\n")
        np.save(folder / "y.npy", self.y.detach().numpy())
        np.save(folder / "x.npy", torch.cat(self.states).numpy())
        if self.mask is not None:
            np.save(folder / "mask.npy", self.mask[0])
        print(f"{self.name}: {len(self.states)} steps, the last in [{self.states[-1].min():.3f}, {self.states[-1].max():.3f}]")


def truth() -> Tensor:
    """The picture that is measured, [1, 3, SIDE, SIDE]."""
    return torch.from_numpy(picture(np.random.default_rng(15), 1, SIDE, SIDE))


def start() -> Tensor:
    """The initial state, N(0, I)."""
    return normal((1, 3, SIDE, SIDE), START, 0)


def measure(forward: Callable[[Tensor], Tensor]) -> Tensor:
    """A measurement of the picture with noise."""
    y = forward(truth()).detach()
    return y + SIGMA * torch.from_numpy(np.random.default_rng(16).standard_normal(tuple(y.shape)).astype(np.float32))


# DPS.


def dps(folder: str) -> Iterator[Case]:
    """The sampler ddpm with the conditioning method ps."""
    network = bundled()

    def model(x: Tensor, t: Tensor) -> Tensor:
        eps = network.noise(x, t)
        return torch.cat([eps, -torch.ones_like(eps)], 1)

    with environment(folder, "matplotlib", "matplotlib.pyplot", "torchvision", "motionblur", "motionblur.motionblur", "tqdm", "tqdm.auto"):
        sys.modules["torchvision"].torch = torch
        sys.modules["tqdm.auto"].tqdm = Progress
        diffusion = importlib.import_module("guided_diffusion.gaussian_diffusion")
        conditions = importlib.import_module("guided_diffusion.condition_methods")
        measurements = importlib.import_module("guided_diffusion.measurements")
        for task, scale, options in (
            ("gaussian_deblur", 2.4, {"name": "gaussian_blur", "kernel_size": 7, "intensity": 0.375}),
            ("super_resolution", 2.4, {"name": "super_resolution", "in_shape": (1, 3, SIDE, SIDE), "scale_factor": 4}),
        ):
            steps = 12
            case = Case(f"dps_{task}", task, {"method": "dps", "steps": steps, "scale": scale})
            operator = measurements.get_operator(device="cpu", **options)
            noiser = measurements.get_noise("gaussian", sigma=SIGMA)
            # The step size of 256x256 images is that of these images times 256/SIDE.
            method = conditions.get_conditioning_method("ps", operator, noiser, scale=scale * SIDE / 256)
            sampler = diffusion.create_sampler("ddpm", 1000, "linear", "epsilon", "learned_range", False, True, False, [steps])
            case.y = measure(operator.forward)

            def noise(times: list[int], y: Tensor) -> Iterator[Tensor]:
                for t in times:
                    yield draw(0, t)
                    yield torch.zeros_like(y)  # of the noisy measurement, which ps does not use

            def condition(**kwargs: Tensor) -> tuple[Tensor, Tensor]:
                x, distance = method.conditioning(**kwargs)
                case.record(x)
                return x, distance

            with mock.patch.object(torch, "randn_like", returns(noise(schedule.respaced(steps), case.y))):
                try:
                    sampler.p_sample_loop(model, start(), case.y, condition, False, "")
                except Enough:
                    yield case


# DAPS.


class Denoiser(nn.Module):
    """The bundled prior as DAPS calls it: the score of x + sigma n."""

    def __init__(self) -> None:
        super().__init__()
        self.network = bundled()
        self.unused = nn.Parameter(torch.zeros(1))  # DAPS asks a parameter for its device
        self.levels = noise_levels()

    def score(self, x: Tensor, sigma: Tensor) -> Tensor:
        t = nearest(self.levels, float(sigma))
        return -self.network.noise(x / (1 + sigma**2).sqrt(), torch.tensor([t])) / sigma


def noise_levels() -> np.ndarray:
    """sqrt((1-abar_t)/abar_t) for t = 0 .. T-1."""
    abar = schedule.alpha_bar()
    return np.sqrt((1 - abar) / abar)


def nearest(levels: np.ndarray, sigma: float) -> int:
    return int(np.abs(np.log(levels / sigma)).argmin())


def noise_times(sigmas: list[float]) -> list[int]:
    """The time in the key of each step's noise."""
    times = [nearest(noise_levels(), sigma) for sigma in sigmas]
    if len(set(times)) < len(times):
        raise ValueError("two steps have one time")
    return times


def euler(f: Callable[[Tensor, Tensor], Tensor], x: Tensor, times: Tensor, **_: object) -> Tensor:
    """torchdiffeq.odeint with the method euler."""
    out = [x]
    for now, then in zip(times[:-1], times[1:]):
        out.append(out[-1] + (then - now) * f(now, out[-1]))
    return torch.stack(out)


class Uniform:
    """The uniform number that decides on a proposal. Other programs round its threshold otherwise, so it must be far away."""

    def __init__(self, value: Tensor) -> None:
        self.value, self.shape = value, value.shape

    def log(self) -> Uniform:
        return Uniform(self.value.log())

    def __lt__(self, threshold: Tensor) -> Tensor:
        margin = (self.value - threshold).abs().min().item()
        if margin < 0.01:
            raise ValueError(f"a proposal is decided by {margin:.2g}: choose another step size")
        return self.value < threshold


def daps(folder: str) -> Iterator[Case]:
    """The sampler DAPS in pixel space with each of its Markov chains."""
    ode = types.ModuleType("torchdiffeq")
    ode.odeint = ode.odeint_adjoint = euler
    with environment(folder, "tqdm", torchdiffeq=ode):
        sampler = importlib.import_module("sampler")
        operators = importlib.import_module("forward_operator")
        model, steps = Denoiser(), 12
        mask = random_mask(np.random.default_rng(17), SIDE, SIDE)
        hmc = {"lr": 9.75e-6, "lr_min_ratio": 0.019, "momentum": 0.73}
        for name, task, operator, chain in (
            ("langevin", "gaussian_deblur", operators.GaussianBlur(7, 0.375, "cpu"), {"lr": 2e-5}),
            ("hmc", "phase_retrieval", operators.PhaseRetrieval(2.0, SIDE), hmc),
            ("mh", "inpaint_random", operators.Inpainting("random", None, (0.7, 0.7), SIDE, "cpu"), {"lr": 1e-6, "tau": 0.05}),
        ):
            count = 12
            settings = {"lr_min_ratio": 0.01, "tau": 0.01} | chain
            ours = {"lr_ratio" if key == "lr_min_ratio" else key: value for key, value in settings.items()}
            case = Case(f"daps_{name}", task, {"method": "daps", "steps": steps, "chain": name, "chain_steps": count} | ours)
            if task == "inpaint_random":
                case.mask = mask
                operator.mask = torch.from_numpy(mask)[None]
            levels = {"name": "edm", "timestep": "poly-7"}
            method = sampler.get_sampler(
                latent=False,
                annealing_scheduler_config=levels | {"num_steps": steps, "sigma_max": 100, "sigma_min": 0.1},
                diffusion_scheduler_config=levels | {"num_steps": 5, "sigma_min": 0.01},
                mcmc_sampler_config={"num_steps": count, "mc_algo": name, "prior_solver": "gaussian"} | settings,
            )
            case.y = measure(operator)
            if case.mask is not None:
                case.y = case.y * operator.mask
            times = noise_times([float(v) for v in method.annealing_scheduler.sigma_steps[:steps]])

            def normals(name: str, count: int, times: list[int]) -> Iterator[Tensor]:
                for t in times:
                    if name == "hmc":
                        yield draw(1, t)
                    for i in range(count):
                        yield draw(2, t, i)
                    yield draw(0, t)

            def uniforms(times: list[int]) -> Iterator[Uniform]:
                for t in times:
                    for z in draw(3, t).flatten()[:count]:
                        yield Uniform(torch.special.ndtr(z)[None])

            def record(xt: Tensor, *_: object) -> None:
                case.record(xt)

            method._record = record  # it gets every state
            likes = mock.patch.multiple(torch, randn_like=returns(normals(name, count, times)), rand_like=returns(uniforms(times)))
            with likes:
                try:
                    method.sample(model, start() * method.annealing_scheduler.get_prior_sigma(), operator, case.y, record=True)
                except Enough:
                    yield case


# DiffPIR.


class Unconditional(nn.Module):
    """The bundled prior as guided diffusion calls it."""

    def __init__(self) -> None:
        super().__init__()
        self.network = bundled()

    def forward(self, x: Tensor, t: Tensor) -> Tensor:
        eps = self.network.noise(x, t)
        return torch.cat([eps, -torch.ones_like(eps)], 1)

    def load_state_dict(self, *_: object) -> None:
        pass


def diffpir(folder: str) -> Iterator[Case]:
    """The program main_ddpir_inpainting.py, with its exact solution of the data term."""
    steps, weight, zeta = 12, 2.0, 0.6
    mask = random_mask(np.random.default_rng(18), SIDE, SIDE)
    settings = {"method": "diffpir", "steps": steps, "lambda": weight, "zeta": zeta, "noise_std": SIGMA}
    case = Case("diffpir_inpaint_random", "inpaint_random", settings, mask=mask)
    with environment(folder, "cv2", "torchvision", "torchvision.utils", "matplotlib", "matplotlib.pyplot"):
        util = importlib.import_module("utils.utils_image")
        models = importlib.import_module("utils.utils_model")
        scripts = importlib.import_module("guided_diffusion.script_util")
        diffusion = scripts.create_gaussian_diffusion(steps=schedule.TRAIN_STEPS, learn_sigma=True, noise_schedule="linear")
        photograph = np.round((truth()[0].permute(1, 2, 0).numpy() + 1) / 2 * 255).astype(np.uint8)
        picture_of_mask = np.repeat(mask.transpose(1, 2, 0), 3, 2) * 255
        evaluate, tensor = models.model_fn, util.single2tensor4
        times = [schedule.TRAIN_STEPS - 1 - int(math.sqrt(v)) for v in np.linspace(0, schedule.TRAIN_STEPS**2, steps)]

        calls = itertools.count()

        def network(x: Tensor, **kwargs: object) -> Tensor:
            if next(calls) > 0:  # the input of the first call is the start
                case.record(x)
            return evaluate(x, **kwargs)

        def measured(image: np.ndarray) -> Tensor:
            out = tensor(image)
            if case.y is None:  # the first image is y in [0, 1]
                case.y = (out * 2 - 1) * torch.from_numpy(mask)
            return out

        def noise() -> Iterator[Tensor]:
            nothing = torch.zeros(1, 3, SIDE, SIDE)
            yield start()
            for t in times:
                yield from (nothing, nothing, draw(0, t))  # of p_sample, of eta = 0, and of zeta

        stand_ins = (
            mock.patch.multiple(
                util, get_image_paths=lambda _: ["picture.png"], mkdir=lambda _: None, single2tensor4=measured,
                imread_uint=lambda path, n_channels: photograph if path == "picture.png" else picture_of_mask,
            ),
            mock.patch.multiple(models, model_fn=network),
            mock.patch.multiple(scripts, create_model_and_diffusion=lambda **_: (Unconditional(), diffusion)),
            mock.patch.object(importlib.import_module("utils.utils_logger"), "logger_info", lambda *_, **__: None),
            mock.patch.multiple(torch, load=lambda *_, **__: {}, randn_like=returns(noise())),
        )  # fmt: skip
        # SIGMA is that of images in [-1, 1], the program's that of images in [0, 1].
        program = {
            "noise_level_img": SIGMA / 2, "iter_num": steps, "lambda_": weight, "zeta": zeta, "load_mask": True, "calc_LPIPS": False,
            "skip_type": "quad", "generate_mode": "DiffPIR",
        }  # fmt: skip
        text = (pathlib.Path(folder) / "main_ddpir_inpainting.py").read_text()
        for name, value in program.items():
            text, found = re.subn(rf"(?m)^    {name} +=.*$", f"    {name} = {value!r}", text, count=1)
            if not found:
                raise ValueError(f"main_ddpir_inpainting.py has no setting {name}")
        with contextlib.ExitStack() as stack:
            for s in stand_ins:
                stack.enter_context(s)
            try:
                exec(compile(text, "main_ddpir_inpainting.py", "exec"), {"__name__": "__main__"})
            except Enough:
                yield case


class Progress:
    """A progress bar that shows nothing."""

    def __init__(self, items: object, **_: object) -> None:
        self.items = items

    def __iter__(self) -> Iterator[object]:
        return iter(self.items)

    def set_postfix(self, *_: object, **__: object) -> None:
        pass


PUBLICATIONS = {"dps": dps, "daps": daps, "diffpir": diffpir}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("publication", choices=PUBLICATIONS)
    parser.add_argument("folder", help="a copy of the authors' repository")
    parser.add_argument("outdir", type=pathlib.Path)
    args = parser.parse_args()
    torch.set_num_threads(1)  # the order of sums, and thus the last bit, depends on the number of threads
    for case in PUBLICATIONS[args.publication](args.folder):
        case.write(args.outdir)
    return 0


if __name__ == "__main__":
    sys.exit(main())
