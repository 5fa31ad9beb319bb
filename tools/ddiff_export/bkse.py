"""The learned blur of BKSE (blur kernel space exploring).

    y = x + trunk(adapter(features(x), k)),  images in [0, 1]

features halves the resolution twice; adapter is a U-Net with the code k as an input of its
innermost level, at 1/128 of the image's sides; trunk doubles the resolution twice. The
operator's images are in [-1, 1] and y is clipped to this range. The checkpoint also contains
the network that estimates codes from pairs of images, which is loaded and not used.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from .checkpoint import State, fit, without_init


@dataclass(frozen=True)
class Config:
    """Configuration of a published blur model."""

    width: int = 64
    front: int = 10  # residual blocks of the features
    back: int = 20  # residual blocks of the trunk
    code: int = 512  # channels of a code
    vae: bool = True  # the extractor predicts a mean and a deviation
    extractor_blocks: int = 4
    trunk: int = 64  # width of the trunk's last layers
    license: str = "BSD-3-Clause"
    published: str = ""

    def tiny(self) -> Config:
        """The same structure, narrower."""
        return Config(8, 1, 1, 64, self.vae, 1, 8, self.license)


CONFIGS = {
    "gopro_wvae": Config(published="GOPRO_wVAE.pth"),
    "gopro_wovae": Config(vae=False, published="GOPRO_woVAE.pth"),
    "reds_wovae": Config(vae=False, published="REDS_woVAE.pth"),
    "mix_wovae": Config(vae=False, published="mix_woVAE.pth"),
}

MULTIPLE = 128  # image side over code side
CODE_STD = 1.2  # standard deviation of the codes in restoration benchmarks


class Block(nn.Module):
    """x + c2(relu(c1(x)))."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.conv1, self.conv2 = (nn.Conv2d(width, width, 3, padding=1) for _ in range(2))

    def forward(self, x: Tensor) -> Tensor:
        return x + self.conv2(F.relu(self.conv1(x)))


class Level(nn.Module):
    """A level of the adapter: down, inner level, up, and a skip connection."""

    def __init__(self, outside: int, inside: int, inner: nn.Module | None, code: int = 0, outermost: bool = False) -> None:
        super().__init__()
        down = nn.Conv2d(outside, inside, 4, stride=2, padding=1, bias=False)
        up = nn.ConvTranspose2d(inside + (code or inside), outside, 4, stride=2, padding=1, bias=outermost)
        self.outermost = outermost
        # Identities replace normalisations that this model lacks; they preserve the published names.
        if outermost:
            self.down = nn.Sequential(down)
        else:
            self.down = nn.Sequential(nn.LeakyReLU(0.2), down, *([nn.Identity()] if inner else []))
        if inner is not None:
            self.submodule = inner
        self.up = nn.Sequential(nn.ReLU(), up, nn.Tanh() if outermost else nn.Identity())

    def forward(self, x: Tensor, k: Tensor) -> Tensor:
        h = self.down(x)
        h = self.submodule(h, k) if hasattr(self, "submodule") else torch.cat([h, k], dim=1)
        h = self.up(h)
        return h if self.outermost else torch.cat([h, x], dim=1)


class Extractor(nn.Module):
    """Estimates a code from a sharp and a blurred image; only its parameter names are used here."""

    def __init__(self, c: Config) -> None:
        super().__init__()
        out = c.code * (2 if c.vae else 1)
        layers: list[nn.Module] = [nn.ReflectionPad2d(3), nn.Conv2d(2 * c.width, c.width, 7, bias=False), nn.Identity(), nn.ReLU()]
        for i in range(5):
            inside, outside = (min(c.width * 2**j, out) for j in (i, i + 1))
            layers += [nn.Conv2d(inside, outside, 3, stride=2, padding=1, bias=False), nn.Identity(), nn.ReLU()]
        for _ in range(c.extractor_blocks):
            block = nn.Module()
            convolutions = [nn.Conv2d(out, out, 3, bias=False) for _ in range(2)]
            block.conv_block = nn.Sequential(
                nn.ReflectionPad2d(1), convolutions[0], nn.Identity(), nn.ReLU(), nn.ReflectionPad2d(1), convolutions[1], nn.Identity()
            )
            layers.append(block)
        self.model = nn.Sequential(*layers)


class Wizard(nn.Module):
    """The published module."""

    def __init__(self, c: Config) -> None:
        super().__init__()
        w, act = c.width, nn.LeakyReLU(0.1)
        self.feature_extractor = nn.Sequential(
            nn.Conv2d(3, w, 3, padding=1), act, nn.Conv2d(w, w, 3, stride=2, padding=1), act,
            nn.Conv2d(w, w, 3, stride=2, padding=1), act, *[Block(w) for _ in range(c.front)],
        )  # fmt: skip
        self.kernel_extractor = Extractor(c)
        inner: nn.Module | None = None
        for outside, inside in ((8, 8), (4, 8), (2, 4), (1, 2)):
            inner = Level(outside * w, inside * w, inner, code=c.code if inner is None else 0)
        self.adapter = nn.Module()
        self.adapter.model = Level(w, w, inner, outermost=True)
        self.recon_trunk = nn.Sequential(
            *[Block(w) for _ in range(c.back)],
            nn.Conv2d(w, 4 * w, 3, padding=1), nn.PixelShuffle(2), act,
            nn.Conv2d(w, 4 * c.trunk, 3, padding=1), nn.PixelShuffle(2), act,
            nn.Conv2d(c.trunk, c.trunk, 3, padding=1), act, nn.Conv2d(c.trunk, 3, 3, padding=1),
        )  # fmt: skip


class Operator(nn.Module):
    """y = A(x; k) for x [N, 3, H, W] in [-1, 1] and codes k [N, C, H/128, W/128]."""

    def __init__(self, wizard: Wizard) -> None:
        super().__init__()
        self.wizard = wizard

    def forward(self, x: Tensor, k: Tensor) -> Tensor:
        x = x * 0.5 + 0.5
        h = self.wizard.feature_extractor(x)
        y = x + self.wizard.recon_trunk(self.wizard.adapter.model(h, k))
        return (y * 2 - 1).clamp(-1, 1)


def build(c: Config) -> Wizard:
    """Builds the module with uninitialised weights."""
    with without_init():
        return Wizard(c)


def load(c: Config, state: State, source: str) -> Operator:
    """Builds the operator and loads the weights."""
    wizard = build(c)
    fit(wizard, state, source)
    return Operator(wizard).eval()
