"""DRUNet, a denoiser D(x, sigma) of images; a map of the noise level is an additional channel.

    D = tail(up1(up2(up3(body(x4) + x4) + x3) + x2) + x1),  x1 = head([x, sigma]), x_i+1 = down_i(x_i)

Convolutions have no bias; blocks are x + c2(relu(c1(x))). Images are in [0, 1].
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from .checkpoint import State, fit, without_init


@dataclass(frozen=True)
class Config:
    """Configuration of a published DRUNet."""

    channels: int = 3
    widths: tuple[int, ...] = (64, 128, 256, 512)
    blocks: int = 4
    sigma: tuple[float, float] = (0.0, 50 / 255)  # range in training, for images in [0, 1]
    license: str = "MIT"
    published: str = ""

    @property
    def multiple(self) -> int:
        """Both sides of an image must be a multiple of this number."""
        return 2 ** (len(self.widths) - 1)

    def tiny(self) -> Config:
        """The same structure, narrower."""
        return Config(self.channels, (8, 8, 16, 16), 1, self.sigma, self.license)


CONFIGS = {
    "drunet_color": Config(published="drunet_color.pth"),
    "drunet_gray": Config(channels=1, published="drunet_gray.pth"),
}


class Block(nn.Module):
    """x + c2(relu(c1(x)))."""

    def __init__(self, width: int) -> None:
        super().__init__()

        def convolution() -> nn.Conv2d:
            return nn.Conv2d(width, width, 3, padding=1, bias=False)

        self.res = nn.Sequential(convolution(), nn.ReLU(), convolution())

    def forward(self, x: Tensor) -> Tensor:
        return x + self.res(x)


class DRUNet(nn.Module):
    """The denoised image for x [N, C, H, W] in [0, 1] and sigma [N]."""

    def __init__(self, c: Config) -> None:
        super().__init__()
        w = c.widths
        self.m_head = nn.Conv2d(c.channels + 1, w[0], 3, padding=1, bias=False)

        def blocks(width: int) -> list[nn.Module]:
            return [Block(width) for _ in range(c.blocks)]

        for i in (1, 2, 3):
            down = nn.Conv2d(w[i - 1], w[i], 2, stride=2, bias=False)
            up = nn.ConvTranspose2d(w[i], w[i - 1], 2, stride=2, bias=False)
            setattr(self, f"m_down{i}", nn.Sequential(*blocks(w[i - 1]), down))
            setattr(self, f"m_up{i}", nn.Sequential(up, *blocks(w[i - 1])))
        self.m_body = nn.Sequential(*blocks(w[3]))
        self.m_tail = nn.Conv2d(w[0], c.channels, 3, padding=1, bias=False)

    def forward(self, x: Tensor, sigma: Tensor) -> Tensor:
        level = sigma[:, None, None, None] + torch.zeros_like(x[:, :1])
        x1 = self.m_head(torch.cat([x, level], dim=1))
        x2 = self.m_down1(x1)
        x3 = self.m_down2(x2)
        x4 = self.m_down3(x3)
        h = self.m_up3(self.m_body(x4) + x4)
        h = self.m_up2(h + x3)
        h = self.m_up1(h + x2)
        return self.m_tail(h + x1)


def load(c: Config, state: State, source: str) -> nn.Module:
    """Builds the module and loads the weights."""
    with without_init():
        network = DRUNet(c)
    return fit(network, state, source)
