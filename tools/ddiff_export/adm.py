"""The U-Net of guided diffusion (ADM) and of latent diffusion, with its published configurations.

Parameters are named by position, input_blocks.I.J, middle_block.J, output_blocks.I.J: J counts
the residual block, the attention and the resampling of one step.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor, nn

from .adm_blocks import GROUPS, Attention, Downsample, Residual, Transformer, Upsample, timestep_embedding
from .checkpoint import State, fit, without_init
from .errors import ExportError


@dataclass(frozen=True)
class Config:
    """Configuration of a published U-Net."""

    image_size: int
    width: int
    multipliers: tuple[float, ...]
    blocks: int  # residual blocks per resolution
    attention: tuple[int, ...]  # downsampling factors with attention
    heads: int = 1
    head_width: int = 0  # channels per head, instead of a number of heads
    channels: int = 3
    learned_variance: bool = True
    scale_shift: bool = True
    resample_blocks: bool = True  # residual blocks that resample, instead of convolutions
    newer_order: bool = False
    classes: int = 0
    context: int = 0  # width of the context tokens of transformers, instead of attention
    depth: tuple[int, ...] = ()  # transformer blocks at each resolution; (): one
    condition: int = 0  # width of a condition that is added to the time embedding, see ldm.unprompted
    schedule: str = "linear:1e-4:0.02:1000"
    license: str = "MIT"
    published: str = ""  # file name

    @property
    def multiple(self) -> int:
        """Both sides of an image must be a multiple of this number."""
        return 2 ** (len(self.multipliers) - 1)

    def number_of_heads(self, channels: int) -> int:
        return channels // self.head_width if self.head_width else self.heads

    def tiny(self) -> Config:
        """The same structure with the narrowest widths that group norm permits."""
        head = min(self.head_width, 16) if self.head_width else 0
        narrow = min(self.multipliers) < 1
        factors = tuple(m if m < 1 else 1 if narrow else min(m, 1 + i % 2) for i, m in enumerate(self.multipliers))
        width = int(GROUPS / min(factors))
        return replace(
            self, width=width, multipliers=factors, head_width=head, classes=min(self.classes, 7), context=min(self.context, 24),
            depth=tuple(min(d, 2) for d in self.depth),
        )  # fmt: skip


def _openai(size: int, width: int, blocks: int = 2, **more: object) -> Config:
    multipliers = {64: (1, 2, 3, 4), 128: (1, 1, 2, 3, 4), 256: (1, 1, 2, 2, 4, 4), 512: (0.5, 1, 1, 2, 2, 4, 4)}[size]
    settings: dict = {"head_width": 64, "attention": tuple(size // r for r in (32, 16, 8))} | more
    return Config(size, width, multipliers, blocks, **settings)


CONFIGS: dict[str, Config] = {
    "ffhq_10m": _openai(
        256, 128, 1, attention=(16,), license="the file was published without a licence; its code has none", published="ffhq_10m.pt"
    ),
    "imagenet_64": _openai(64, 192, 3, newer_order=True, classes=1000, schedule="cosine:1000", published="64x64_diffusion.pt"),
    "imagenet_128": _openai(128, 256, heads=4, head_width=0, classes=1000, published="128x128_diffusion.pt"),
    "imagenet_256": _openai(256, 256, classes=1000, published="256x256_diffusion.pt"),
    "imagenet_256_uncond": _openai(256, 256, published="256x256_diffusion_uncond.pt"),
    "imagenet_512": _openai(512, 256, classes=1000, published="512x512_diffusion.pt"),
    "lsun_bedroom": _openai(256, 256, published="lsun_bedroom.pt"),
    "lsun_cat": _openai(256, 256, published="lsun_cat.pt"),
    "lsun_horse": _openai(256, 256, published="lsun_horse.pt"),
    "lsun_horse_nodropout": _openai(256, 256, published="lsun_horse_nodropout.pt"),
}


class Step(nn.Sequential):
    """A list of layers; residual blocks also get the time embedding."""

    def forward(self, h: Tensor, e: Tensor) -> Tensor:
        for layer in self:
            h = layer(h, e) if isinstance(layer, Residual) else layer(h)
        return h


class UNet(nn.Module):
    """eps(x, t) for x [N, C, H, W] and t [N]; 2C output channels with a learned variance."""

    def __init__(self, c: Config) -> None:
        super().__init__()
        self.config = c
        embedding = 4 * c.width
        self.time_embed = nn.Sequential(nn.Linear(c.width, embedding), nn.SiLU(), nn.Linear(embedding, embedding))
        if c.classes:
            self.label_emb = nn.Embedding(c.classes, embedding)
        if c.condition:
            self.label_emb = nn.Sequential(nn.Sequential(nn.Linear(c.condition, embedding), nn.SiLU(), nn.Linear(embedding, embedding)))
        widths = [int(m * c.width) for m in c.multipliers]

        def residual(inside: int, outside: int, resample: str = "") -> Residual:
            return Residual(inside, outside, embedding, c.scale_shift, resample)

        def attention(channels: int, factor: int) -> nn.Module:
            if c.context:
                return Transformer(channels, c.number_of_heads(channels), c.context, c.depth[factor.bit_length() - 1] if c.depth else 1)
            return Attention(channels, c.number_of_heads(channels), c.newer_order)

        def level(inside: int, outside: int, factor: int) -> list[nn.Module]:
            return [residual(inside, outside)] + ([attention(outside, factor)] if factor in c.attention else [])

        width, factor, last = widths[0], 1, len(widths) - 1
        self.input_blocks = nn.ModuleList([Step(nn.Conv2d(c.channels, width, 3, padding=1))])
        kept = [width]
        for i, outside in enumerate(widths):
            for _ in range(c.blocks):
                self.input_blocks.append(Step(*level(width, outside, factor)))
                width = outside
                kept.append(width)
            if i < last:
                self.input_blocks.append(Step(residual(width, width, "down") if c.resample_blocks else Downsample(width)))
                kept.append(width)
                factor *= 2
        self.middle_block = Step(residual(width, width), attention(width, factor), residual(width, width))
        self.output_blocks = nn.ModuleList()
        for i in reversed(range(len(widths))):
            for j in range(c.blocks + 1):
                layers = level(width + kept.pop(), widths[i], factor)
                width = widths[i]
                if i > 0 and j == c.blocks:
                    layers.append(residual(width, width, "up") if c.resample_blocks else Upsample(width))
                    factor //= 2
                self.output_blocks.append(Step(*layers))
        outputs = c.channels * (2 if c.learned_variance else 1)
        self.out = nn.Sequential(nn.GroupNorm(GROUPS, width), nn.SiLU(), nn.Conv2d(widths[0], outputs, 3, padding=1))

    def settle_condition(self, condition: Tensor) -> None:
        """Fixes the condition, a vector of the width condition."""
        last = self.time_embed[2]
        last.bias.data = last.bias.data + self.label_emb(condition)
        del self.label_emb

    def forward(self, x: Tensor, t: Tensor) -> Tensor:
        e = self.time_embed(timestep_embedding(t, self.config.width))
        h, kept = x, []
        for step in self.input_blocks:
            h = step(h, e)
            kept.append(h)
        h = self.middle_block(h, e)
        for step in self.output_blocks:
            h = step(torch.cat([h, kept.pop()], dim=1), e)
        return self.out(h)


def build(config: Config) -> UNet:
    """Builds the module with uninitialised weights."""
    with without_init():
        return UNet(config)


def load(config: Config, state: State, source: str, label: int | None = None) -> UNet:
    """Builds the module and loads the weights that a prior needs: the channels of the noise and
    one class. label None omits the class: nothing is added to the time embedding, unlike in the
    training of a class-conditional network."""
    network = build(config)
    fit(network, state, source)
    if label is not None and not 0 <= label < config.classes:
        raise ExportError(f"--class: {label} is outside 0..{config.classes - 1}" if config.classes else "--class: this network has no classes")
    if config.classes:
        if label is not None:
            last = network.time_embed[2]
            last.bias.data = last.bias.data + network.label_emb.weight.data[label]
        del network.label_emb
    if config.learned_variance:
        last = network.out[2]
        last.weight.data, last.bias.data = last.weight.data[: config.channels], last.bias.data[: config.channels]
        last.out_channels = config.channels
    return network
