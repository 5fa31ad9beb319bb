"""Measurement operators A, implemented from their definitions and differentiated by autograd.

All take images x of shape (N, C, H, W) in [-1, 1], float32 or float64:

    super_resolution  y[j] = sum_i w[i - f*j] x[i] per axis, cubic w stretched by f
    gaussian_deblur   y = k * x, k = truncated Gaussian, border reflected
    motion_deblur     y[p] = sum_q k[q] x[p + q - centre], border reflected
    inpaint           y = m * x
    phase_retrieval   y = |F pad(x/2 + 1/2)|, or |F pad(x)| if signed, F centred and orthonormal
    nonlinear_deblur  y = curve(clip(gain * blur(linear_light(x))))
    hdr               y = clip(scale * x, -1, 1)
    denoise           y = x
    super_resolution_area  y = mean of each square of f*f pixels
    colorize          y = r x_0 + g x_1 + b x_2, one channel, with weights of sum 1
    demosaic          y = the sample of one colour per pixel of a Bayer filter, one channel

The data term of an image is the un-squared norm ||w (y - A(v))||_2 over all channels and
pixels of its measurement; w is the mask for inpaint and 1 otherwise.
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass
from typing import Callable, Mapping, Optional

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

Forward = Callable[[Tensor], Tensor]

# The parameters of each task with their values at 256x256.
DEFAULTS: dict[str, dict[str, float]] = {
    "super_resolution": {"factor": 4},
    "gaussian_deblur": {"std": 3.0, "size": 61},
    "motion_deblur": {},
    "inpaint": {},
    "phase_retrieval": {"oversample": 2, "signed": 0},
    "nonlinear_deblur": {"gain": 1.2, "gamma": 2.2, "toe": 0.01},
    "hdr": {"scale": 2.0},
    "denoise": {},
    "super_resolution_area": {"factor": 4},
    "colorize": {"red": 0.299, "green": 0.587, "blue": 0.114},
    "demosaic": {"red_row": 0, "red_column": 0},
}
NEEDS_KERNEL = ("motion_deblur", "nonlinear_deblur")
NEEDS_MASK = ("inpaint",)
LINEAR = (
    "super_resolution",
    "gaussian_deblur",
    "motion_deblur",
    "inpaint",
    "denoise",
    "super_resolution_area",
    "colorize",
    "demosaic",
)


@dataclass(frozen=True)
class Measurement:
    """An operator with all parameters except the image fixed, and the weight w of its data term."""

    forward: Forward
    weight: Optional[Tensor] = None


def measurement(
    task: str,
    params: Mapping[str, float],
    *,
    mask: Optional[Tensor] = None,
    kernel: Optional[Tensor] = None,
) -> Measurement:
    """Fixes the parameters of a task; missing parameters have the value in DEFAULTS.

    mask is (N or 1, 1, H, W) of 0 and 1; kernel is (N or 1, 1, K, K), (N, K, K) or (K, K).
    """
    if task not in DEFAULTS:
        raise ValueError(f"task: {task!r} is not one of {', '.join(DEFAULTS)}")
    unknown = sorted(set(params) - set(DEFAULTS[task]))
    if unknown:
        raise ValueError(f"params: {task} has no parameter {unknown[0]!r}, only {sorted(DEFAULTS[task])}")
    p = {**DEFAULTS[task], **params}
    if task in NEEDS_KERNEL and kernel is None:
        raise ValueError(f"kernel: {task} needs a kernel")
    if task in NEEDS_MASK and mask is None:
        raise ValueError(f"mask: {task} needs a mask")
    if task == "super_resolution":
        return Measurement(functools.partial(super_resolution, factor=int(p["factor"])))
    if task == "gaussian_deblur":
        return Measurement(functools.partial(gaussian_deblur, std=p["std"], size=int(p["size"])))
    if task == "motion_deblur":
        return Measurement(functools.partial(motion_deblur, kernel=kernel))
    if task == "inpaint":
        return Measurement(functools.partial(inpaint, mask=mask), weight=mask)
    if task == "phase_retrieval":
        return Measurement(functools.partial(phase_retrieval, oversample=int(p["oversample"]), signed=p["signed"] == 1))
    if task == "nonlinear_deblur":
        return Measurement(functools.partial(nonlinear_deblur, kernel=kernel, **p))
    if task == "denoise":
        return Measurement(torch.clone)
    if task == "super_resolution_area":
        return Measurement(functools.partial(super_resolution_area, factor=int(p["factor"])))
    if task == "colorize":
        return Measurement(functools.partial(colorize, **p))
    if task == "demosaic":
        return Measurement(functools.partial(demosaic, red_row=int(p["red_row"]), red_column=int(p["red_column"])))
    return Measurement(functools.partial(hdr, scale=p["scale"]))


def super_resolution(x: Tensor, factor: int = 4) -> Tensor:
    """Antialiased bicubic downsampling by an integer factor, (N,C,H,W) -> (N,C,H/f,W/f).

    Output pixel j is centred at f*j + (f-1)/2 in input pixels; its weights are the cubic
    kernel (a = -0.5) stretched by f, normalised to sum 1. The border is mirrored with the
    edge pixel repeated.
    """
    n, c, height, width = x.shape
    if height % factor or width % factor:
        raise ValueError(f"super_resolution: {height}x{width} is not a multiple of the factor {factor}")
    first, weights = cubic_taps(factor)
    before, after = -first, first + len(weights) - factor
    w = torch.tensor(weights, dtype=x.dtype, device=x.device)
    y = x.reshape(n * c, 1, height, width)
    y = F.conv2d(_mirror(y, 3, before, after), w.view(1, 1, 1, -1), stride=(1, factor))
    y = F.conv2d(_mirror(y, 2, before, after), w.view(1, 1, -1, 1), stride=(factor, 1))
    return y.reshape(n, c, height // factor, width // factor)


@functools.lru_cache(maxsize=None)
def cubic_taps(factor: int) -> tuple[int, tuple[float, ...]]:
    """Index of the first input pixel with a weight in output pixel 0, and the weights from this pixel on."""

    def cubic(d: float, a: float = -0.5) -> float:
        d = abs(d)
        if d < 1:
            return (a + 2) * d**3 - (a + 3) * d**2 + 1
        return a * (d**3 - 5 * d**2 + 8 * d - 4) if d < 2 else 0.0

    centre = (factor - 1) / 2
    first = math.floor(centre - 2 * factor) + 1
    last = math.ceil(centre + 2 * factor) - 1
    weights = [cubic((i - centre) / factor) for i in range(first, last + 1)]
    total = sum(weights)
    return first, tuple(w / total for w in weights)


def _mirror(x: Tensor, dim: int, before: int, after: int) -> Tensor:
    """Extends an axis by its mirror image with a repeated edge pixel (numpy's 'symmetric')."""
    side = x.shape[dim]
    if max(before, after) > side:
        raise ValueError(f"super_resolution: a side of {side} px is shorter than the border of {max(before, after)}")
    head = x.narrow(dim, 0, before).flip(dim)
    tail = x.narrow(dim, side - after, after).flip(dim)
    return torch.cat([head, x, tail], dim)


def gaussian_deblur(x: Tensor, std: float, size: int) -> Tensor:
    """Blur by gaussian_kernel(std, size), channel by channel, with a reflected border."""
    kernel = torch.from_numpy(gaussian_kernel(std, size)).to(dtype=x.dtype, device=x.device)
    return correlate(x, kernel)


@functools.lru_cache(maxsize=None)
def gaussian_kernel(std: float, size: int) -> np.ndarray:
    """A unit impulse on a size x size grid, filtered by a Gaussian truncated at 4 std."""
    from scipy.ndimage import gaussian_filter  # imported here: only this task needs it

    if size % 2 == 0:
        raise ValueError(f"gaussian_deblur: size {size} is even; the size of a kernel must be odd")
    impulse = np.zeros((size, size))
    impulse[size // 2, size // 2] = 1
    return gaussian_filter(impulse, std, truncate=4.0)


def motion_deblur(x: Tensor, kernel: Tensor) -> Tensor:
    """Blur by a given kernel: one for all images or one per image."""
    return correlate(x, kernel)


def correlate(x: Tensor, kernel: Tensor) -> Tensor:
    """Correlation of every channel with an odd kernel; reflected border, edge not repeated.

    kernel is (K, L), (N or 1, K, L) or (N or 1, 1, K, L).
    """
    n, c, height, width = x.shape
    k = kernel.reshape(-1, 1, *kernel.shape[-2:]).to(dtype=x.dtype, device=x.device)
    rows, cols = k.shape[-2:]
    if rows % 2 == 0 or cols % 2 == 0:
        raise ValueError(f"kernel: {rows}x{cols} has an even side; the sides of a kernel must be odd")
    if k.shape[0] not in (1, n):
        raise ValueError(f"kernel: {k.shape[0]} kernels for {n} images")
    if rows // 2 >= height or cols // 2 >= width:
        raise ValueError(f"kernel: {rows}x{cols} is too large for the reflected border of a {height}x{width} image")
    padded = F.pad(x, (cols // 2, cols // 2, rows // 2, rows // 2), mode="reflect")
    if k.shape[0] == 1:
        stacked = padded.reshape(n * c, 1, *padded.shape[-2:])
        return F.conv2d(stacked, k).reshape(n, c, height, width)
    grouped = padded.reshape(1, n * c, *padded.shape[-2:])
    y = F.conv2d(grouped, k.repeat_interleave(c, dim=0), groups=n * c)
    return y.reshape(n, c, height, width)


def inpaint(x: Tensor, mask: Tensor) -> Tensor:
    """Sets all channels to 0 at the pixels where mask (N or 1, 1, H, W) is 0."""
    return mask * x


def phase_retrieval(x: Tensor, oversample: int = 2, signed: bool = False) -> Tensor:
    """Modulus of the centred orthonormal DFT of x/2 + 1/2, or of x if signed, each side padded by side*oversample//8.

    Both ends are padded: H becomes H + 2*(H*oversample//8). The gradient at modulus 0 is
    defined as 0, as torch.abs of a complex number does.
    """
    height, width = x.shape[-2:]
    ph, pw = height * oversample // 8, width * oversample // 8
    v = F.pad(x if signed else x / 2 + 0.5, (pw, pw, ph, ph))
    v = torch.fft.ifftshift(v, dim=(-2, -1))
    v = torch.fft.fft2(v, norm="ortho")
    return torch.fft.fftshift(v, dim=(-2, -1)).abs()


def nonlinear_deblur(
    x: Tensor,
    kernel: Tensor,
    gain: float = 1.2,
    gamma: float = 2.2,
    toe: float = 0.01,
    blur: Callable[[Tensor, Tensor], Tensor] = correlate,
) -> Tensor:
    """Blur in linear light, exposure gain, saturation, display curve.

    blur(l, kernel) computes the correlation; bench passes a faster equivalent.
    With c = toe^(1/gamma) and D = (1 + toe)^(1/gamma) - c:
        p = clip(x/2 + 1/2, 0, 1)       l = (p*D + c)^gamma - toe
        s = clip(gain * blur(l), 0, 1)  y = 2 * ((s + toe)^(1/gamma) - c)/D - 1
    """
    c = toe ** (1 / gamma)
    d = (1 + toe) ** (1 / gamma) - c
    p = (x / 2 + 0.5).clamp(0, 1)
    light = (p * d + c) ** gamma - toe
    s = (gain * blur(light, kernel)).clamp(0, 1)
    return 2 * ((s + toe) ** (1 / gamma) - c) / d - 1


def hdr(x: Tensor, scale: float = 2.0) -> Tensor:
    """Overexposure: clip(scale * x, -1, 1)."""
    return (scale * x).clamp(-1, 1)


def super_resolution_area(x: Tensor, factor: int = 4) -> Tensor:
    """The mean of each square of factor*factor pixels, (N,C,H,W) -> (N,C,H/f,W/f)."""
    height, width = x.shape[-2:]
    if height % factor or width % factor:
        raise ValueError(f"super_resolution_area: {height}x{width} is not a multiple of the factor {factor}")
    return F.avg_pool2d(x, factor)


def colorize(x: Tensor, red: float = 0.299, green: float = 0.587, blue: float = 0.114) -> Tensor:
    """The weighted mean of red, green and blue, (N,3,H,W) -> (N,1,H,W)."""
    weights = torch.tensor([red, green, blue], dtype=x.dtype, device=x.device)
    return torch.einsum("nchw,c->nhw", x, weights / weights.sum())[:, None]


def demosaic(x: Tensor, red_row: int = 0, red_column: int = 0) -> Tensor:
    """The samples of a Bayer filter, (N,3,H,W) -> (N,1,H,W).

    Red lies at the rows and columns with the parities red_row and red_column, blue where both differ, green elsewhere.
    """
    y = x[:, 1:2].clone()
    for channel, row, column in ((0, red_row, red_column), (2, 1 - red_row, 1 - red_column)):
        y[:, 0, row::2, column::2] = x[:, channel, row::2, column::2]
    return y


def data_norm(residual: Tensor, weight: Optional[Tensor] = None) -> Tensor:
    """Per-image ||w * residual||_2 of shape (N,), with gradient 0 where the norm is 0."""
    if weight is not None:
        residual = weight * residual
    square = residual.square().flatten(1).sum(1)
    zero = square == 0
    return torch.where(zero, square, torch.where(zero, torch.ones_like(square), square).sqrt())


def norm_gradient(forward: Forward, v: Tensor, y: Tensor, weight: Optional[Tensor] = None) -> Tensor:
    """Gradient of the per-image norm ||w * (y - A(v))||_2 with respect to v."""
    with torch.enable_grad():
        v = v.detach().requires_grad_(True)
        total = data_norm(y - forward(v), weight).sum()
    return torch.autograd.grad(total, v)[0]


def unit_gradient(forward: Forward, v: Tensor, y: Tensor, weight: Optional[Tensor] = None) -> Tensor:
    """norm_gradient of each image, divided by its norm over the image; a zero gradient stays zero."""
    g = norm_gradient(forward, v, y, weight)
    return g / data_norm(g).clamp_min(1e-12).reshape(-1, 1, 1, 1)


def squared_gradient(forward: Forward, v: Tensor, y: Tensor, weight: Optional[Tensor] = None) -> Tensor:
    """Gradient of the sum of squares ||w * (y - A(v))||_2^2 with respect to v."""
    with torch.enable_grad():
        v = v.detach().requires_grad_(True)
        residual = y - forward(v)
        if weight is not None:
            residual = weight * residual
        total = residual.square().sum()
    return torch.autograd.grad(total, v)[0]


def adjoint(forward: Forward, shape: tuple[int, ...], w: Tensor) -> Tensor:
    """A^T w of a linear operator on images of the given shape."""
    with torch.enable_grad():
        x = torch.zeros(shape, dtype=w.dtype, device=w.device, requires_grad=True)
        inner = (forward(x) * w).sum()
    return torch.autograd.grad(inner, x)[0]
