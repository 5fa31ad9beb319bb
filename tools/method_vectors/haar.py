"""The latent prior of internal/restore/haar: the bundled prior between two Haar transforms."""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from method_vectors.author_code import alpha_bar, bundled
from method_vectors.noise import SIDE

BLOCK = 4  # side of the transformed blocks
LATENT = (1, 3 * BLOCK**2, SIDE // BLOCK, SIDE // BLOCK)


def basis(n: int) -> Tensor:
    """The orthonormal Haar vectors of length n: the mean, then the differences from the largest to the smallest support."""
    rows, support = [torch.ones(n)], n
    while support >= 2:
        for begin in range(0, n, support):
            row = torch.zeros(n)
            row[begin : begin + support // 2], row[begin + support // 2 : begin + support] = 1, -1
            rows.append(row)
        support //= 2
    return torch.stack([row / math.sqrt(float(row.abs().sum())) for row in rows])


# The basis images of a block, for each of three channels.
KERNELS = torch.einsum("ay,bx->abyx", basis(BLOCK), basis(BLOCK)).reshape(-1, 1, BLOCK, BLOCK).repeat(3, 1, 1, 1)


def encode(x: Tensor) -> Tensor:
    """The latent of an image."""
    return F.conv2d(x, KERNELS, stride=BLOCK, groups=3)


def decode(z: Tensor) -> Tensor:
    """The image of a latent: the inverse and the transpose of encode."""
    return F.conv_transpose2d(z, KERNELS, stride=BLOCK, groups=3)


class Latents(nn.Module):
    """The prior as the codes of latent diffusion call it.

    The schedule has an entry before the first time, where abar = 1: the time t of the code is the time t - 1 of the prior.
    """

    device = torch.device("cpu")

    def __init__(self) -> None:
        super().__init__()
        self.network = bundled()
        self.alphas_cumprod = alpha_bar()
        self.alphas_cumprod_prev = torch.cat([torch.ones(1), self.alphas_cumprod[:-1]])
        self.betas = 1 - self.alphas_cumprod / self.alphas_cumprod_prev
        self.num_timesteps = len(self.betas)

    def noise(self, z: Tensor, t: Tensor) -> Tensor:
        return encode(self.network.noise(decode(z), t))

    def apply_model(self, z: Tensor, t: Tensor, _: object) -> Tensor:
        return self.noise(z, t - 1)

    def encode_first_stage(self, x: Tensor) -> Tensor:
        return encode(x)

    def get_first_stage_encoding(self, z: Tensor) -> Tensor:
        return z

    def decode_first_stage(self, z: Tensor) -> Tensor:
        return decode(z)

    differentiable_decode_first_stage = decode_first_stage


def strides(steps: int) -> tuple[int, list[int]]:
    """The steps to ask of DDIM's code for the times of this project, and these times in the order of the steps.

    DDIM's code divides the schedule of Latents, and often has one step more than asked.
    """
    distance, rest = divmod(999, steps - 1)
    asked = 1001 // distance
    if rest or 1001 // asked != distance:
        raise ValueError(f"{steps} steps: DDIM's times are others")
    return asked, list(range(999, -1, -distance))
