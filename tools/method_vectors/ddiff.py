"""Ten steps of DDiff at several times, with the code of SoniaMinseoKim/ddiff-cvpr at ae3ce1f.

Each case is a task, with the values of run_ffhq.sh. Its loop starts in the middle, at the times of Segments.times: each segment has a start
of its own, u = 0, and ten consecutive times. Two networks make the steps: the bundled prior, and the code's own class of network with the
weights of random_network. The measurement operators are those of the code's function forward: the blurs with 61x61 kernels, the resampling,
the clipping, and the Fourier transform with its padding of 64 pixels, which makes 64x64 the smallest image that Go's operator can have. Two
stand-ins: masks, because forward draws them for 256x256 images, and the network of BKSE with random weights, which is not part of the code.

The code states gamma_0 for images of 256x256 pixels and divides the gradient by its norm over the whole image: here it is gamma_0*side/256.
"""

from __future__ import annotations

import contextlib
import io
import json
import pathlib
import re
from collections.abc import Iterator
from dataclasses import dataclass, field

import learned_blur
import numpy as np
import torch
from ddiff_export import bkse
from ddiff_torch import schedule
from ddiff_torch.random_inputs import box_mask, random_mask
from PIL import Image
from torch import Tensor

from method_vectors.author_code import Unconditional
from method_vectors.case import SIGMA, STEPS
from method_vectors.ddiff_code import TASKS, Code, ddiff_code
from method_vectors.noise import KEY, START, STEP, normal
from method_vectors.random_network import draw_weights, small

NETWORKS = ("bundled", "random")
PHOTOGRAPH = pathlib.Path(__file__).parents[2] / "examples/images/astronaut.png"
PICTURE = 128  # side of the stored picture; smaller ones are its centre
SIDES = {"phase_retrieval": 64, "nonlinear_deblur": bkse.MULTIPLE}  # others: 32
STRIDES = {32: 1, 64: 5, 128: 17}  # of the stored values, by side: odd, so that they are in all rows and columns
# Parameters of Go's operators that equal those of the code: a standard deviation of 3 pixels, truncated at 12, and a padding of 64.
PARAMETERS = {"gaussian_deblur": {"size": 200, "std": 24}, "phase_retrieval": {"oversample": 8, "signed": 1}}


@dataclass
class Segments:
    """The folder of a task: the states after the first and the last step of each segment, for each network."""

    task: str
    side: int
    times: list[int]  # the first of each segment
    picture: Image.Image
    y: np.ndarray  # float16, which both programs read as float32
    given: dict[str, np.ndarray]  # a mask or a kernel
    states: list[list[list[np.ndarray]]] = field(default_factory=list)  # [network][segment][first and last]

    def write(self, outdir: pathlib.Path) -> None:
        folder = outdir / self.task
        folder.mkdir(parents=True, exist_ok=True)
        described = {
            "task": self.task, "preset": "ffhq", "params": PARAMETERS.get(self.task, {}), "key": KEY, "side": self.side, "networks": NETWORKS,
            "times": self.times, "steps": [1, STEPS], "stride": STRIDES[self.side],
        }  # fmt: skip
        (folder / "case.json").write_text(json.dumps(described, indent=1) + "\n")
        np.save(folder / "y.npy", self.y)
        np.save(folder / "x.npy", np.array(self.states, np.float32))
        for name, values in self.given.items():
            np.save(folder / f"{name}.npy", values)
        self.picture.save(outdir / "picture.png")
        for network, segments in zip(NETWORKS, self.states):
            print(self.task, network, *(f"{t}: {np.abs(first).max():.3f} {np.abs(last).max():.3f}" for t, (first, last) in zip(self.times, segments)))


class Blur:
    """The network of BKSE as the code calls it: images in [0, 1]. It is that of restore/operator/testdata/bkse.onnx."""

    def __init__(self) -> None:
        self.wizard = learned_blur.wizard().eval()

    def adaptKernel(self, x: Tensor, kernel: Tensor) -> Tensor:
        w = self.wizard
        return x + w.recon_trunk(w.adapter.model(w.feature_extractor(x), kernel))


def ddiff(folder: str) -> Iterator[Segments]:
    """All tasks with both networks."""
    hyperparameters = published(folder)
    photograph = Image.open(PHOTOGRAPH).convert("RGB").resize((PICTURE, PICTURE), Image.LANCZOS)
    bundled = Unconditional()
    with ddiff_code(folder, bundled) as code:
        for number, task in enumerate(TASKS):
            side = SIDES.get(task, 32)
            scale, forward_step = hyperparameters[TASKS[task]]
            times = [999, 95, 9] if forward_step == 1 else [999, forward_step + 5, 95, 9]
            truth = centre(photograph, side)
            y, operator, given = measure(code, task, truth, np.random.default_rng(number))
            case = Segments(task, side, sorted(times, reverse=True), photograph, y, given)
            with contextlib.redirect_stdout(io.StringIO()):  # that there are no weights to load
                random = draw_weights(code["create_unet"](**small(side)))
            for network in (bundled, random):
                code.names["model"] = network
                case.states.append([segment(code, case, truth, operator, scale, forward_step, first) for first in case.times])
            yield case


def published(folder: str) -> dict[tuple[str, str], tuple[float, int]]:
    """--scale and --forward_step of run_ffhq.sh, by task and type of mask."""
    out = {}
    for command in (pathlib.Path(folder) / "run_ffhq.sh").read_text().split("python3 ddiff_sample.py")[1:]:
        options = dict(re.findall(r"--(\w+) ([\w.]+)", command))
        out[options["task"], options.get("mask_type", "")] = float(options["scale"]), int(options["forward_step"])
    return out


def centre(photograph: Image.Image, side: int) -> Tensor:
    """The centre of a picture in [-1, 1], [1, 3, side, side]."""
    at = (PICTURE - side) // 2
    pixels = np.asarray(photograph, np.float32)[at : at + side, at : at + side]
    return torch.from_numpy((2 * pixels / 255 - 1).transpose(2, 0, 1)[None].copy())


def measure(code: Code, task: str, x: Tensor, rng: np.random.Generator) -> tuple[np.ndarray, object, dict[str, np.ndarray]]:
    """A measurement with noise everywhere, what the code needs to evaluate A, and the mask or kernel."""
    given: dict[str, np.ndarray] = {}
    operator: object
    if task.startswith("inpaint"):
        mask = (box_mask if task == "inpaint_box" else random_mask)(rng, *x.shape[2:])
        given["mask"], operator = mask[0], torch.from_numpy(mask)
        y = x * operator
    elif task == "nonlinear_deblur":
        blur = Blur()
        kernel = bkse.CODE_STD * rng.standard_normal((1, learned_blur.FIELDS["code"], 1, 1)).astype(np.float32)
        given["kernel"], operator = kernel, {"blur_model": blur, "random_kernel": torch.from_numpy(kernel)}
        y = (2 * blur.adaptKernel((x + 1) / 2, operator["random_kernel"]) - 1).clamp(-1, 1)
    else:
        y, operator = code.forward(x, task)
        if task == "motion_deblur":
            given["kernel"] = operator.get_kernel().float().numpy()
    noisy = y.detach().numpy() + SIGMA * rng.standard_normal(tuple(y.shape))
    return noisy[0].astype(np.float16), operator, given


def segment(code: Code, case: Segments, truth: Tensor, operator: object, scale: float, forward_step: int, first: int) -> list[np.ndarray]:
    """The states after one step and after STEPS from the time first. The start is the picture with the noise of that time."""
    shape, alpha = tuple(truth.shape), schedule.alpha_bar()[first]
    start = np.sqrt(alpha) * truth.double() + np.sqrt(1 - alpha) * normal(shape, START, first).double()
    states: dict[int, Tensor] = {}
    last = code.run(
        case.task, start.float(), torch.from_numpy(case.y[None].astype(np.float32)), operator, scale * case.side / 256, forward_step,
        lambda t: normal(shape, STEP, t), range(first, first - STEPS, -1), lambda t, x: states.update({t: x.clone()}),
    )  # fmt: skip
    return [x.numpy().reshape(-1)[:: STRIDES[case.side]] for x in (states[first - 1], last)]
