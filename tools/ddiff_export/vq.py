"""First stage of latent diffusion: encoder, codebook, decoder.

    z = quant_conv(encoder(x))    q = nearest code of z, pixel by pixel
    x = decoder(post_quant_conv(z or q))

A first stage of the kind kl has no codebook. Its encoder returns mean and logarithm of the variance
of z, of which the export keeps the mean.

Encoder and decoder are residual networks without time, with attention at the lowest resolution.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from .adm_blocks import GROUPS, attend
from .errors import ExportError


@dataclass(frozen=True)
class Config:
    """Configuration of a published first stage."""

    width: int = 128
    multipliers: tuple[int, ...] = (1, 2, 4)
    blocks: int = 2
    latent: int = 3  # channels of the latent
    codes: int = 8192
    channels: int = 3
    kind: str = "vq"  # or "kl"

    @property
    def encoded(self) -> int:
        """Channels of the encoder's result."""
        return 2 * self.latent if self.kind == "kl" else self.latent

    @property
    def factor(self) -> int:
        """Image side over latent side."""
        return 2 ** (len(self.multipliers) - 1)

    def tiny(self) -> Config:
        """The same structure, narrower."""
        return replace(self, width=GROUPS, multipliers=(1,) * (len(self.multipliers) - 1) + (2,), codes=64)


def norm(channels: int) -> nn.GroupNorm:
    return nn.GroupNorm(GROUPS, channels, eps=1e-6)


class Residual(nn.Module):
    """skip(x) + c2(silu(gn2(c1(silu(gn1(x))))))."""

    def __init__(self, inside: int, outside: int) -> None:
        super().__init__()
        self.norm1, self.conv1 = norm(inside), nn.Conv2d(inside, outside, 3, padding=1)
        self.norm2, self.conv2 = norm(outside), nn.Conv2d(outside, outside, 3, padding=1)
        if inside != outside:
            self.nin_shortcut = nn.Conv2d(inside, outside, 1)

    def forward(self, x: Tensor) -> Tensor:
        h = self.conv2(F.silu(self.norm2(self.conv1(F.silu(self.norm1(x))))))
        return (self.nin_shortcut(x) if hasattr(self, "nin_shortcut") else x) + h


class Attention(nn.Module):
    """Self-attention over the pixels with one head."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.norm = norm(channels)
        self.q, self.k, self.v, self.proj_out = (nn.Conv2d(channels, channels, 1) for _ in range(4))

    def forward(self, x: Tensor) -> Tensor:
        n, c, height, width = x.shape
        h = self.norm(x)
        q, k, v = (f(h).reshape(n, 1, c, height * width) for f in (self.q, self.k, self.v))
        return x + self.proj_out(attend(q, k, v).reshape(n, c, height, width))


def middle(channels: int) -> nn.Module:
    """The blocks at the lowest resolution."""
    m = nn.Module()
    m.block_1, m.attn_1, m.block_2 = Residual(channels, channels), Attention(channels), Residual(channels, channels)
    return m


def through(m: nn.Module, h: Tensor) -> Tensor:
    return m.block_2(m.attn_1(m.block_1(h)))


def _level(inside: int, outside: int, blocks: int) -> nn.Module:
    level = nn.Module()
    level.block = nn.ModuleList(Residual(inside if i == 0 else outside, outside) for i in range(blocks))
    return level


def _resampling(channels: int, **options: int) -> nn.Module:
    m = nn.Module()
    m.conv = nn.Conv2d(channels, channels, 3, **options)
    return m


class Encoder(nn.Module):
    """Images [N, C, H, W] to features at H/f, W/f."""

    def __init__(self, c: Config) -> None:
        super().__init__()
        widths = [m * c.width for m in c.multipliers]
        self.conv_in = nn.Conv2d(c.channels, c.width, 3, padding=1)
        self.down = nn.ModuleList()
        for i, outside in enumerate(widths):
            level = _level(widths[i - 1] if i else c.width, outside, c.blocks)
            if i < len(widths) - 1:
                level.downsample = _resampling(outside, stride=2)
            self.down.append(level)
        self.mid = middle(widths[-1])
        self.norm_out, self.conv_out = norm(widths[-1]), nn.Conv2d(widths[-1], c.encoded, 3, padding=1)

    def forward(self, x: Tensor) -> Tensor:
        h = self.conv_in(x)
        for level in self.down:
            for block in level.block:
                h = block(h)
            if hasattr(level, "downsample"):
                h = level.downsample.conv(F.pad(h, (0, 1, 0, 1)))
        return self.conv_out(F.silu(self.norm_out(through(self.mid, h))))


class Decoder(nn.Module):
    """Features at H/f, W/f to images [N, C, H, W]."""

    def __init__(self, c: Config) -> None:
        super().__init__()
        widths = [m * c.width for m in c.multipliers]
        self.conv_in = nn.Conv2d(c.latent, widths[-1], 3, padding=1)
        self.mid = middle(widths[-1])
        self.up = nn.ModuleList()
        for i, outside in enumerate(widths):
            level = _level(widths[min(i + 1, len(widths) - 1)], outside, c.blocks + 1)
            if i > 0:
                level.upsample = _resampling(outside, padding=1)
            self.up.append(level)
        self.norm_out, self.conv_out = norm(widths[0]), nn.Conv2d(widths[0], c.channels, 3, padding=1)

    def forward(self, z: Tensor) -> Tensor:
        h = through(self.mid, self.conv_in(z))
        for level in reversed(self.up):
            for block in level.block:
                h = block(h)
            if hasattr(level, "upsample"):
                h = level.upsample.conv(F.interpolate(h, scale_factor=2.0, mode="nearest"))
        return self.conv_out(F.silu(self.norm_out(h)))


class FirstStage(nn.Module):
    """The complete first stage, with the published names."""

    def __init__(self, c: Config) -> None:
        super().__init__()
        if c.kind not in ("vq", "kl"):
            raise ExportError(f"--field: first_stage.kind={c.kind}: want vq or kl")
        self.latent = c.latent
        self.encoder, self.decoder = Encoder(c), Decoder(c)
        if c.kind == "vq":
            self.quantize = nn.Module()
            self.quantize.embedding = nn.Embedding(c.codes, c.latent)
        self.quant_conv, self.post_quant_conv = nn.Conv2d(c.encoded, c.encoded, 1), nn.Conv2d(c.latent, c.latent, 1)


class Encode(nn.Module):
    """x to z before quantisation, or to the mean of z, multiplied by scale."""

    def __init__(self, stage: FirstStage, scale: float = 1.0) -> None:
        super().__init__()
        self.stage, self.scale = stage, scale

    def forward(self, x: Tensor) -> Tensor:
        z = self.stage.quant_conv(self.stage.encoder(x))[:, : self.stage.latent]
        return z if self.scale == 1 else z * self.scale


class Quantize(nn.Module):
    """z to the nearest codes: |z - e|^2 and |e|^2 - 2 z e have the same minimum."""

    def __init__(self, stage: FirstStage, scale: float = 1.0) -> None:
        super().__init__()
        codes = stage.quantize.embedding.weight.detach() * scale
        self.register_buffer("codes", codes)
        self.register_buffer("doubled", 2 * codes.t().contiguous())
        self.register_buffer("squares", codes.square().sum(1))

    def forward(self, z: Tensor) -> Tensor:
        flat = z.permute(0, 2, 3, 1)
        index = (self.squares - flat @ self.doubled).argmin(-1)
        return self.codes[index].permute(0, 3, 1, 2)

    def margin(self, z: Tensor) -> Tensor:
        """Least difference of squared distances between the second nearest and the nearest code. If it is
        small, the nearest code depends on rounding."""
        flat = z.permute(0, 2, 3, 1)
        two = (self.squares - flat @ self.doubled).topk(2, dim=-1, largest=False).values
        return (two[..., 1] - two[..., 0]).min()


class Decode(nn.Module):
    """z or q to x; divides by the scale of the encoder."""

    def __init__(self, stage: FirstStage, scale: float = 1.0) -> None:
        super().__init__()
        self.stage, self.scale = stage, scale

    def forward(self, z: Tensor) -> Tensor:
        if self.scale != 1:
            z = z / self.scale
        return self.stage.decoder(self.stage.post_quant_conv(z))


def margin_latents(quantize: Quantize, shape: tuple[int, int, int, int], seed: int) -> Tensor:
    """Latents near random codes, so that the nearest code does not depend on rounding."""
    generator = torch.Generator().manual_seed(seed)
    n, c, height, width = shape
    index = torch.randint(len(quantize.codes), (n, height, width), generator=generator)
    z = quantize.codes[index].permute(0, 3, 1, 2)
    spacing = torch.cdist(quantize.codes[:512], quantize.codes)
    spacing[spacing == 0] = spacing.max()
    return z + 0.01 * float(spacing.min()) * torch.randn(shape, generator=generator)
