"""SiT: transformers of flow matching over patches of latents, with a class.

    c = mlp(embedding of s) + class
    block   x + g1 attention(norm(x) (1 + a1) + b1), then x + g2 mlp(norm(x) (1 + a2) + b2); all six from c
    last    linear(norm(x) (1 + a) + b), a patch of pixels for each token; its channels of a learned variance are dropped

The network predicts x - n at s of x_s = s x + (1 - s) n, as those of flow, for latents of one size.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from .adm_blocks import timestep_embedding
from .errors import ExportError
from .flow import LEVELS

FREQUENCIES = 256  # width of the embedding of s


@dataclass(frozen=True)
class Config:
    """Configuration of a published transformer."""

    width: int = 1152
    depth: int = 28
    heads: int = 16
    patch: int = 2
    size: int = 32  # side of the latents
    channels: int = 4
    classes: int = 1000
    learned_variance: bool = True
    schedule: str = f"flow:{LEVELS}"
    license: str = "MIT"
    context: int = 0  # of no use here, see adm.Config

    @property
    def multiple(self) -> int:
        """Both sides of the latents are this number."""
        return self.size

    def tiny(self) -> Config:
        """The same structure, narrower."""
        return replace(self, width=48, depth=2, heads=4, size=8, classes=6)


class Attention(nn.Module):
    """Attention of tokens [N, L, C]."""

    def __init__(self, c: Config) -> None:
        super().__init__()
        self.heads = c.heads
        self.qkv, self.proj = nn.Linear(c.width, 3 * c.width), nn.Linear(c.width, c.width)

    def forward(self, x: Tensor) -> Tensor:
        n, length, width = x.shape
        q, k, v = self.qkv(x).reshape(n, length, 3, self.heads, width // self.heads).permute(2, 0, 3, 1, 4).unbind(0)
        scale = q.shape[3] ** -0.25  # on both sides, so that half precision does not overflow
        weight = torch.softmax((q * scale) @ (k * scale).transpose(2, 3), dim=-1)
        return self.proj((weight @ v).transpose(1, 2).reshape(n, length, width))


def _modulation(width: int, count: int) -> nn.Sequential:
    return nn.Sequential(nn.SiLU(), nn.Linear(width, count * width))


class Norm(nn.Module):
    """Layer normalisation without weights; PyTorch 1.13 exports none without a weight, and ONNX Runtime crashes without a bias."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.register_buffer("one", torch.ones(width), persistent=False)
        self.register_buffer("zero", torch.zeros(width), persistent=False)

    def forward(self, x: Tensor) -> Tensor:
        return F.layer_norm(x, self.one.shape, self.one, self.zero, eps=1e-6)


class Block(nn.Module):
    def __init__(self, c: Config) -> None:
        super().__init__()
        self.norm1, self.norm2 = Norm(c.width), Norm(c.width)
        self.attn = Attention(c)
        self.mlp = nn.Module()
        self.mlp.fc1, self.mlp.fc2 = nn.Linear(c.width, 4 * c.width), nn.Linear(4 * c.width, c.width)
        self.adaLN_modulation = _modulation(c.width, 6)

    def forward(self, x: Tensor, c: Tensor) -> Tensor:
        shift, scale, gate, shift2, scale2, gate2 = self.adaLN_modulation(c)[:, None].chunk(6, dim=2)
        x = x + gate * self.attn(self.norm1(x) * (1 + scale) + shift)
        h = self.mlp.fc1(self.norm2(x) * (1 + scale2) + shift2)
        return x + gate2 * self.mlp.fc2(F.gelu(h, approximate="tanh"))


class Last(nn.Module):
    def __init__(self, c: Config, channels: int) -> None:
        super().__init__()
        self.norm_final = Norm(c.width)
        self.linear, self.adaLN_modulation = nn.Linear(c.width, c.patch**2 * channels), _modulation(c.width, 2)

    def forward(self, x: Tensor, c: Tensor) -> Tensor:
        shift, scale = self.adaLN_modulation(c)[:, None].chunk(2, dim=2)
        return self.linear(self.norm_final(x) * (1 + scale) + shift)


class SiT(nn.Module):
    """v(x, s) for latents x [N, C, size, size] and s [N]."""

    def __init__(self, c: Config) -> None:
        super().__init__()
        self.config = c
        self.x_embedder, self.t_embedder, self.y_embedder = nn.Module(), nn.Module(), nn.Module()
        self.x_embedder.proj = nn.Conv2d(c.channels, c.width, c.patch, stride=c.patch)
        self.t_embedder.mlp = nn.Sequential(nn.Linear(FREQUENCIES, c.width), nn.SiLU(), nn.Linear(c.width, c.width))
        self.y_embedder.embedding_table = nn.Embedding(c.classes + 1, c.width)  # the last one is no class
        self.pos_embed = nn.Parameter(torch.zeros(1, (c.size // c.patch) ** 2, c.width))
        self.blocks = nn.ModuleList(Block(c) for _ in range(c.depth))
        self.final_layer = Last(c, c.channels * (2 if c.learned_variance else 1))

    def settle(self, label: int) -> None:
        """Fixes the class, and drops the channels of the variance."""
        c, last, linear = self.config, self.t_embedder.mlp[2], self.final_layer.linear
        if not 0 <= label <= c.classes:
            raise ExportError(f"--class: {label} is outside 0..{c.classes - 1}")
        last.bias.data = last.bias.data + self.y_embedder.embedding_table.weight.data[label]
        del self.y_embedder
        for p in (linear.weight, linear.bias):
            p.data = p.data.unflatten(0, (c.patch**2, -1))[:, : c.channels].flatten(0, 1).contiguous()
        linear.out_features = len(linear.bias)

    def forward(self, x: Tensor, s: Tensor) -> Tensor:
        c = self.config
        side = c.size // c.patch
        h = self.x_embedder.proj(x).reshape(-1, c.width, side * side).transpose(1, 2) + self.pos_embed
        e = self.t_embedder.mlp(timestep_embedding(s, FREQUENCIES))
        for block in self.blocks:
            h = block(h, e)
        h = self.final_layer(h, e).reshape(-1, side, side, c.patch, c.patch, c.channels)
        return h.permute(0, 5, 1, 3, 2, 4).reshape(-1, c.channels, c.size, c.size)
