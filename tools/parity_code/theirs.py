"""The released code's side: its operators and its loop, with the measurement, the mask or kernel, the start and the noise of an item."""

from __future__ import annotations

import hashlib
import pathlib
import sys

import numpy as np
import torch
from method_vectors.author_code import PRIOR
from method_vectors.ddiff import Blur
from method_vectors.ddiff_code import TASKS, Code
from torch import Tensor

from parity_code.ours import SIGMA, Item, digest

AGREE = 1e-5  # largest difference of both A(x), as a share of the largest entry of A(x)
SIDE = 256  # for which the code states its step sizes
FOLDER = pathlib.Path(__file__).parents[1]
RUNS_WITH = ("method_vectors/author_code.py", "method_vectors/ddiff_code.py", "ddiff_torch/onnx_prior.py", "ddiff_torch/wiener.py", "ddiff_torch/schedule.py")


def operator(code: Code, item: Item) -> object:
    """What the code's loop needs to evaluate A. ValueError: A(x) is not that of the item."""
    x = item.truth()
    if item.task in ("inpaint_box", "inpaint_random"):
        given: object = item.array("mask")[:, None].expand(item.shape()).contiguous()
    elif item.task == "nonlinear_deblur":
        given = {"blur_model": Blur(), "random_kernel": item.array("kernel")}
    elif item.task in ("gaussian_deblur", "motion_deblur"):
        # As code.forward at 256x256; ddiff scales kernels with the image.
        share = item.fields["height"] / SIDE
        given = code["Blurkernel"](blur_type="gaussian", kernel_size=2 * int(30 * share) + 1, std=3.0 * share, device="cpu")
        if item.task == "motion_deblur":
            given.update_weights(item.array("kernel"))
    else:
        given = code.forward(x, item.task)[1]
    with torch.no_grad():
        a = code["forward_grad_like"](x, TASKS[item.task][0], given)
    ours = item.clean()
    if item.task.startswith("inpaint"):
        ours = ours * given  # dropped pixels have noise and no weight
    error = float((a - ours).abs().max() / ours.abs().max())
    if not error <= AGREE:
        raise ValueError(f"{item.task} of {item.photograph}: A(x) of the code and of ddiff differ by {error:.1e} of the largest entry")
    return given


def solve(code: Code, folder: str, item: Item, cache: pathlib.Path) -> Tensor:
    """The state after all steps, [1, 3, height, width], unclipped. It is stored below cache, under the digest of all that determines it."""
    given = operator(code, item)
    path = cache / f"theirs-{_identity(folder, item)[:24]}.npy"
    if path.exists():
        return torch.from_numpy(np.load(path))
    # gamma0 is stated for 256x256 images and has the unit of an image's norm.
    scale = item.setting("gamma0") * (item.fields["height"] * item.fields["width"]) ** 0.5 / SIDE
    report = Progress(f"{item.task} {item.photograph}")
    x = code.run(item.task, item.start(), item.array("measurement"), given, scale, int(item.setting("t0")), item.noise, record=report)
    part = path.with_suffix(".part.npy")
    np.save(part, x.numpy())
    part.rename(path)
    return x


def _identity(folder: str, item: Item) -> str:
    """The digest of the code, what it runs with, and the item's measurement and draws."""
    h = hashlib.sha256()
    files = sorted(p for p in pathlib.Path(folder).rglob("*.py") if ".git" not in p.parts)
    for p in [*files, *(FOLDER / name for name in RUNS_WITH), PRIOR, *sorted(item.folder.glob("*.npy"))]:
        h.update(f"{p.name} {digest(p)}\n".encode())
    for draw in (item.start(), item.noise(500)):
        h.update(draw.numpy().tobytes())
    h.update(f"{item.task} {item.setting('gamma0')} {item.setting('t0')} {torch.__version__}".encode())
    return h.hexdigest()


class Progress:
    """Prints every hundredth step on standard error."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __call__(self, time: int, _: Tensor) -> None:
        if time % 100 == 0:
            print(f"{self.name}: time {time}", file=sys.stderr, flush=True)
