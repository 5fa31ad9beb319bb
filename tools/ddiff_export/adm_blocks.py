"""Blocks of the U-Nets of guided diffusion and latent diffusion.

    residual   y = skip(x) + c2(silu(gn2(c1(silu(gn1(x))))))
               with the time embedding e after c1, added or as gn2(.)(1 + s) + b
    attention  y = x + proj(softmax(q^T k / sqrt(c)) v),  q, k, v from one 1x1 convolution
    transformer y = x + proj_out(blocks(proj_in(gn(x)))), see Transformer

Attention over the pixels uses four-dimensional normalisations, which the Go side expects, and
supports any height and width.
"""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn

GROUPS = 32


def timestep_embedding(t: Tensor, width: int, sine_first: bool = False, shift: float = 0.0) -> Tensor:
    """[cos(t f), sin(t f)] with frequencies f_i = 10000^(-i/(width/2 - shift))."""
    half = width // 2
    frequency = torch.exp(torch.arange(half, dtype=torch.float32) * (-math.log(10000.0) / (half - shift)))
    angle = t.float()[:, None] * frequency[None]
    parts = [angle.sin(), angle.cos()] if sine_first else [angle.cos(), angle.sin()]
    if width % 2:
        parts.append(torch.zeros_like(angle[:, :1]))
    return torch.cat(parts, dim=1)


class Conv1x1(nn.Module):
    """A 1x1 convolution with the weight shape of a one-dimensional convolution, [out, in, 1]."""

    def __init__(self, inside: int, outside: int) -> None:
        super().__init__()
        plain = nn.Conv1d(inside, outside, 1)
        self.weight, self.bias = plain.weight, plain.bias

    def forward(self, x: Tensor) -> Tensor:
        return F.conv2d(x, self.weight[..., None], self.bias)


class Residual(nn.Module):
    """A residual block with the time embedding; it may halve or double the resolution."""

    def __init__(
        self, inside: int, outside: int, embedding: int, scale_shift: bool = False, resample: str = ""
    ) -> None:
        super().__init__()
        self.scale_shift, self.resample = scale_shift, resample
        self.in_layers = nn.Sequential(nn.GroupNorm(GROUPS, inside), nn.SiLU(), nn.Conv2d(inside, outside, 3, padding=1))
        self.emb_layers = nn.Sequential(nn.SiLU(), nn.Linear(embedding, outside * (2 if scale_shift else 1)))
        # Identity replaces the dropout of the training; it preserves the published names.
        self.out_layers = nn.Sequential(
            nn.GroupNorm(GROUPS, outside), nn.SiLU(), nn.Identity(), nn.Conv2d(outside, outside, 3, padding=1)
        )
        self.skip_connection = nn.Identity() if inside == outside else nn.Conv2d(inside, outside, 1)

    def _resampled(self, h: Tensor) -> Tensor:
        if self.resample == "down":
            return F.avg_pool2d(h, 2, count_include_pad=False)  # this option avoids a Pad in the export
        if self.resample == "up":
            return F.interpolate(h, scale_factor=2.0, mode="nearest")
        return h

    def forward(self, x: Tensor, e: Tensor) -> Tensor:
        norm, act, conv = self.in_layers
        h = conv(self._resampled(act(norm(x))))
        e = self.emb_layers(e)[:, :, None, None]
        norm, act, _, conv = self.out_layers
        if self.scale_shift:
            scale, shift = e.chunk(2, dim=1)
            h = norm(h) * (1 + scale) + shift
        else:
            h = norm(h + e)
        return self.skip_connection(self._resampled(x)) + conv(act(h))


class Attention(nn.Module):
    """Self-attention over the pixels. The older channel order is q, k, v per head; the newer order
    is all q, then all k, then all v."""

    def __init__(self, channels: int, heads: int, newer_order: bool = False) -> None:
        super().__init__()
        self.heads, self.newer_order = heads, newer_order
        self.norm = nn.GroupNorm(GROUPS, channels)
        self.qkv = Conv1x1(channels, 3 * channels)
        self.proj_out = Conv1x1(channels, channels)

    def forward(self, x: Tensor) -> Tensor:
        n, c, height, width = x.shape
        each = c // self.heads
        qkv = self.qkv(self.norm(x))
        if self.newer_order:
            q, k, v = qkv.reshape(n, 3, self.heads, each, height * width).unbind(1)
        else:
            q, k, v = qkv.reshape(n, self.heads, 3, each, height * width).unbind(2)
        h = attend(q, k, v).reshape(n, c, height, width)
        return x + self.proj_out(h)


def attend(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Attention of heads [N, heads, channels, pixels]. q and k are both scaled, so that half
    precision does not overflow."""
    scale = q.shape[2] ** -0.25
    weight = torch.softmax((q * scale).transpose(2, 3) @ (k * scale), dim=-1)
    return v @ weight.transpose(2, 3)


class Downsample(nn.Module):
    """A convolution with stride 2."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.op = nn.Conv2d(channels, channels, 3, stride=2, padding=1)

    def forward(self, x: Tensor) -> Tensor:
        return self.op(x)


class Upsample(nn.Module):
    """Nearest-neighbour doubling, then a convolution."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.conv = nn.Conv2d(channels, channels, 3, padding=1)

    def forward(self, x: Tensor) -> Tensor:
        return self.conv(F.interpolate(x, scale_factor=2.0, mode="nearest"))


class TokenAttention(nn.Module):
    """Attention of tokens [N, L, C], multi-head, with the output projection."""

    def __init__(self, width: int, heads: int, context: int | None = None) -> None:
        super().__init__()
        self.heads = heads
        self.to_q = nn.Linear(width, width, bias=False)
        self.to_k = nn.Linear(context or width, width, bias=False)
        self.to_v = nn.Linear(context or width, width, bias=False)
        self.to_out = nn.Sequential(nn.Linear(width, width), nn.Identity())

    def forward(self, x: Tensor, context: Tensor) -> Tensor:
        return self.attend(x, self.split(self.to_k(context)), self.split(self.to_v(context)))

    def split(self, h: Tensor) -> Tensor:
        """[N, L, C] to heads [N, heads, C/heads, L]."""
        n, length, width = h.shape
        return h.reshape(n, length, self.heads, width // self.heads).permute(0, 2, 3, 1)

    def attend(self, x: Tensor, k: Tensor, v: Tensor) -> Tensor:
        n, length, width = x.shape
        return self.to_out(attend(self.split(self.to_q(x)), k, v).permute(0, 3, 1, 2).reshape(n, length, width))


class GatedMLP(nn.Module):
    """W2 (a * gelu(b)), [a; b] = W1 x."""

    def __init__(self, width: int) -> None:
        super().__init__()
        gate = nn.Module()
        gate.proj = nn.Linear(width, 8 * width)
        self.net = nn.Sequential(gate, nn.Identity(), nn.Linear(4 * width, width))

    def forward(self, x: Tensor) -> Tensor:
        a, b = self.net[0].proj(x).chunk(2, dim=-1)
        return self.net[2](a * F.gelu(b))


class TransformerBlock(nn.Module):
    """Self-attention, attention to the context and the gated MLP, each as x + f(norm(x))."""

    def __init__(self, width: int, heads: int, context: int) -> None:
        super().__init__()
        self.attn1 = TokenAttention(width, heads)
        self.ff = GatedMLP(width)
        self.attn2 = TokenAttention(width, heads, context)
        self.norm1, self.norm2, self.norm3 = nn.LayerNorm(width), nn.LayerNorm(width), nn.LayerNorm(width)
        # For a fixed context: keys and values of attn2 [1, heads, C/heads, L], or its output for a context of one token. The
        # softmax over a single key is 1, so that output does not depend on x.
        self.keys: Tensor | None = None
        self.values: Tensor | None = None
        self.constant: Tensor | None = None

    def settle(self, context: Tensor) -> None:
        """Fixes the context to tokens [L, C]."""
        a = self.attn2
        if len(context) == 1:
            self.constant = a.to_out(a.to_v(context[0])).detach()
        else:
            self.keys, self.values = (a.split(f(context[None])).detach() for f in (a.to_k, a.to_v))

    def forward(self, x: Tensor) -> Tensor:
        h = self.norm1(x)
        x = x + self.attn1(h, h)
        if self.keys is not None and self.values is not None:
            x = x + self.attn2.attend(self.norm2(x), self.keys, self.values)
        elif self.constant is not None:
            x = x + self.constant
        else:
            raise ValueError("the context is not set; call settle first")
        return x + self.ff(self.norm3(x))


class Transformer(nn.Module):
    """Transformer blocks over the pixels of an image."""

    def __init__(self, channels: int, heads: int, context: int, depth: int) -> None:
        super().__init__()
        self.norm = nn.GroupNorm(GROUPS, channels, eps=1e-6)
        self.proj_in = nn.Conv2d(channels, channels, 1)
        self.transformer_blocks = nn.ModuleList(TransformerBlock(channels, heads, context) for _ in range(depth))
        self.proj_out = nn.Conv2d(channels, channels, 1)

    def forward(self, x: Tensor) -> Tensor:
        n, c, height, width = x.shape
        h = self.proj_in(self.norm(x)).reshape(n, c, height * width).transpose(1, 2)
        for block in self.transformer_blocks:
            h = block(h)
        return x + self.proj_out(h.transpose(1, 2).reshape(n, c, height, width))
