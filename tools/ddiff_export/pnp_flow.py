"""The U-Net of PnP-Flow: a velocity v(x, s), named by level and position in it.

    block      y = skip(x) + c2(silu(gn2(c1(silu(gn1(x))) + e)))
    attention  of one head; at the levels that have its side at the size of the training, and in the middle
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from .adm_blocks import GROUPS, attend, timestep_embedding
from .checkpoint import State, fit, without_init


@dataclass(frozen=True)
class Config:
    """Configuration of a published U-Net."""

    image_size: int
    width: int = 32
    multipliers: tuple[int, ...] = (1, 2, 4, 8)
    blocks: int = 6  # residual blocks per resolution
    attention: tuple[int, ...] = (16, 8)  # sides with attention
    channels: int = 3
    schedule: str = ""
    license: str = "the file was published without a licence; the page of its code names BSD 3-Clause"
    published: str = ""  # all files have the name model_final.pt

    @property
    def multiple(self) -> int:
        """Both sides of an image must be a multiple of this number."""
        return 2 ** (len(self.multipliers) - 1)

    def tiny(self) -> Config:
        """The same structure with fewer channels and blocks."""
        return replace(self, multipliers=tuple(min(m, 2) for m in self.multipliers), blocks=1)


def _norm(channels: int) -> nn.GroupNorm:
    return nn.GroupNorm(GROUPS, channels, eps=1e-6)


class Block(nn.Module):
    """A residual block with the time embedding."""

    def __init__(self, inside: int, outside: int, embedding: int) -> None:
        super().__init__()
        self.temb_proj = nn.Linear(embedding, outside)
        self.norm1, self.conv1 = _norm(inside), nn.Conv2d(inside, outside, 3, padding=1)
        self.norm2, self.conv2 = _norm(outside), nn.Conv2d(outside, outside, 3, padding=1)
        self.shortcut = nn.Identity() if inside == outside else nn.Conv2d(inside, outside, 1)

    def forward(self, x: Tensor, e: Tensor) -> Tensor:
        h = self.conv1(F.silu(self.norm1(x))) + self.temb_proj(F.silu(e))[:, :, None, None]
        return self.shortcut(x) + self.conv2(F.silu(self.norm2(h)))


class Attention(nn.Module):
    """Self-attention over the pixels."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.norm = _norm(channels)
        self.attn_q, self.attn_k, self.attn_v, self.proj_out = (nn.Conv2d(channels, channels, 1) for _ in range(4))

    def forward(self, x: Tensor, _: Tensor) -> Tensor:
        n, c, height, width = x.shape
        h = self.norm(x)
        q, k, v = (layer(h).reshape(n, 1, c, height * width) for layer in (self.attn_q, self.attn_k, self.attn_v))
        return x + self.proj_out(attend(q, k, v).reshape(n, c, height, width))


class UNet(nn.Module):
    """v(x, s) for x [N, C, H, W] and s [N]."""

    def __init__(self, c: Config) -> None:
        super().__init__()
        self.config, embedding = c, 4 * c.width
        self.temb_net = nn.ModuleDict({"main": nn.Sequential(nn.Linear(c.width, embedding), nn.SiLU(), nn.Linear(embedding, embedding))})
        self.begin_conv = nn.Conv2d(c.channels, c.width, 3, padding=1)
        self.down_modules, self.up_modules = nn.ModuleList(), nn.ModuleList()
        width, kept, last = c.width, [c.width], len(c.multipliers) - 1

        def level(i: int, insides: list[int]) -> nn.ModuleDict:
            outside, layers = c.width * c.multipliers[i], nn.ModuleDict()
            for j, inside in enumerate(insides):
                layers[f"{i}a_{j}a_block"] = Block(inside, outside, embedding)
                if c.image_size >> i in c.attention:
                    layers[f"{i}a_{j}b_attn"] = Attention(outside)
            return layers

        for i, factor in enumerate(c.multipliers):
            outside = c.width * factor
            layers = level(i, [width] + [outside] * (c.blocks - 1))
            kept += [outside] * c.blocks
            if i < last:
                layers[f"{i}b_downsample"] = nn.Conv2d(outside, outside, 3, stride=2, padding=1)
                kept.append(outside)
            self.down_modules.append(layers)
            width = outside
        self.mid_modules = nn.ModuleList([Block(width, width, embedding), Attention(width), Block(width, width, embedding)])
        for i in reversed(range(last + 1)):
            outside = c.width * c.multipliers[i]
            layers = level(i, [(outside if j else width) + kept.pop() for j in range(c.blocks + 1)])
            if i > 0:
                layers[f"{i}b_upsample"] = nn.ModuleDict({"up_conv": nn.Conv2d(outside, outside, 3, padding=1)})
            self.up_modules.append(layers)
            width = outside
        self.end_conv = nn.Sequential(_norm(width), nn.SiLU(), nn.Conv2d(width, c.channels, 3, padding=1))

    def forward(self, x: Tensor, s: Tensor) -> Tensor:
        e = self.temb_net["main"](timestep_embedding(s, self.config.width, sine_first=True, shift=1))
        h = self.begin_conv(x)
        kept = [h]
        for layers in self.down_modules:
            for name, layer in layers.items():
                if name.endswith("_attn"):
                    kept[-1] = h = layer(h, e)
                else:
                    h = layer(h, e) if isinstance(layer, Block) else layer(h)
                    kept.append(h)
        for layer in self.mid_modules:
            h = layer(h, e)
        for layers in self.up_modules:
            for layer in layers.values():
                if isinstance(layer, Block):
                    h = layer(torch.cat([h, kept.pop()], dim=1), e)
                elif isinstance(layer, Attention):
                    h = layer(h, e)
                else:
                    h = layer["up_conv"](F.interpolate(h, scale_factor=2.0, mode="nearest"))
        return self.end_conv(h)


def load(config: Config, state: State, source: str) -> UNet:
    """Builds the module and loads its weights."""
    with without_init():
        network = UNet(config)
    fit(network, state, source)
    return network
