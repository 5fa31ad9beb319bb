"""Unconditional pixel U-Nets of a local directory in the diffusers layout.

The directory contains config.json, the weights and scheduler_config.json; or, as in a stored
pipeline, the folders unet and scheduler with these files.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from .adm_blocks import attend, timestep_embedding
from .checkpoint import State, fit, read, without_init
from .errors import ExportError
from .layout import fields, scheduler

WEIGHTS = (
    "diffusion_pytorch_model.safetensors", "diffusion_pytorch_model.bin", "model.safetensors", "pytorch_model.bin",
    "diffusion_pytorch_model.fp16.safetensors", "model.fp16.safetensors",
)  # fmt: skip
DOWN, UP = ("DownBlock2D", "AttnDownBlock2D"), ("UpBlock2D", "AttnUpBlock2D")

# Names of attention weights in older files.
OLDER = {"query": "to_q", "key": "to_k", "value": "to_v", "proj_attn": "to_out.0"}


@dataclass(frozen=True)
class Config:
    """The relevant fields of config.json, with their defaults."""

    in_channels: int = 3
    out_channels: int = 3
    freq_shift: int = 0
    flip_sin_to_cos: bool = True
    down_block_types: tuple[str, ...] = ("DownBlock2D", *["AttnDownBlock2D"] * 3)
    up_block_types: tuple[str, ...] = (*["AttnUpBlock2D"] * 3, "UpBlock2D")
    block_out_channels: tuple[int, ...] = (224, 448, 672, 896)
    layers_per_block: int = 2
    mid_block_scale_factor: float = 1
    downsample_padding: int = 1
    attention_head_dim: int | None = 8
    norm_num_groups: int = 32
    norm_eps: float = 1e-5
    resnet_time_scale_shift: str = "default"
    center_input_sample: bool = False
    time_embedding_type: str = "positional"
    add_attention: bool = True
    act_fn: str = "silu"

    @property
    def multiple(self) -> int:
        """Both sides of an image must be a multiple of this number."""
        return 2 ** (len(self.block_out_channels) - 1)


# Supported values of fields; other values need blocks that are not implemented here.
ONLY = {
    "time_embedding_type": ("positional",), "resnet_time_scale_shift": ("default", "scale_shift"), "act_fn": ("silu", "swish"),
    "class_embed_type": (None,), "num_class_embeds": (None,), "mid_block_type": ("UNetMidBlock2D",),
    "downsample_type": ("conv",), "upsample_type": ("conv",), "attn_norm_num_groups": (None,), "time_embedding_dim": (None,),
}  # fmt: skip


def config(fields: Mapping[str, Any], source: str) -> Config:
    """Reads config.json's fields; ExportError names the unsupported fields."""
    if fields.get("_class_name", "UNet2DModel") != "UNet2DModel":
        raise ExportError(f"{source}: _class_name is {fields['_class_name']}, only UNet2DModel is supported; for Stable Diffusion use: ldm --config sd15")
    for name, values in ONLY.items():
        if name in fields and fields[name] not in values:
            raise ExportError(f"{source}: {name} is {fields[name]!r}, only {' or '.join(map(str, values))} is supported")
    known = {k: tuple(v) if isinstance(v, list) else v for k, v in fields.items() if k in Config.__dataclass_fields__}
    c = Config(**known)
    for names, allowed in ((c.down_block_types, DOWN), (c.up_block_types, UP)):
        strange = [n for n in names if n not in allowed]
        if strange or len(names) != len(c.block_out_channels):
            raise ExportError(f"{source}: block types {list(names)}: one of {', '.join(allowed)} per resolution is supported")
    return c


class Residual(nn.Module):
    """(skip(x) + c2(silu(gn2(c1(silu(gn1(x)))))))/s, with the time embedding after c1."""

    def __init__(self, c: Config, inside: int, outside: int, scale: float = 1) -> None:
        super().__init__()
        self.scale, self.shifted = scale, c.resnet_time_scale_shift == "scale_shift"
        self.norm1 = nn.GroupNorm(c.norm_num_groups, inside, eps=c.norm_eps)
        self.conv1 = nn.Conv2d(inside, outside, 3, padding=1)
        self.time_emb_proj = nn.Linear(4 * c.block_out_channels[0], outside * (2 if self.shifted else 1))
        self.norm2 = nn.GroupNorm(c.norm_num_groups, outside, eps=c.norm_eps)
        self.conv2 = nn.Conv2d(outside, outside, 3, padding=1)
        if inside != outside:
            self.conv_shortcut = nn.Conv2d(inside, outside, 1)

    def forward(self, x: Tensor, e: Tensor) -> Tensor:
        h = self.conv1(F.silu(self.norm1(x)))
        e = self.time_emb_proj(F.silu(e))[:, :, None, None]
        if self.shifted:
            scale, shift = e.chunk(2, dim=1)
            h = self.norm2(h) * (1 + scale) + shift
        else:
            h = self.norm2(h + e)
        h = (self.conv_shortcut(x) if hasattr(self, "conv_shortcut") else x) + self.conv2(F.silu(h))
        return h if self.scale == 1 else h / self.scale


class Attention(nn.Module):
    """(x + out(attention(gn(x))))/s over the pixels."""

    def __init__(self, c: Config, channels: int, scale: float = 1, normed: bool = True) -> None:
        super().__init__()
        self.heads, self.scale = channels // (c.attention_head_dim or channels), scale
        self.group_norm = nn.GroupNorm(c.norm_num_groups, channels, eps=c.norm_eps) if normed else None
        self.to_q, self.to_k, self.to_v = (nn.Linear(channels, channels) for _ in range(3))
        self.to_out = nn.ModuleList([nn.Linear(channels, channels)])

    def forward(self, x: Tensor) -> Tensor:
        n, channels, height, width = x.shape
        h = x if self.group_norm is None else self.group_norm(x)

        def project(layer: nn.Linear, h: Tensor) -> Tensor:
            return F.conv2d(h, layer.weight[:, :, None, None], layer.bias)

        q, k, v = (project(f, h).reshape(n, self.heads, channels // self.heads, height * width) for f in (self.to_q, self.to_k, self.to_v))
        h = x + project(self.to_out[0], attend(q, k, v).reshape(n, channels, height, width))
        return h if self.scale == 1 else h / self.scale


class Resample(nn.Module):
    """Halves the resolution by a convolution with stride 2, or doubles it and convolves."""

    def __init__(self, channels: int, up: bool, padding: int = 1) -> None:
        super().__init__()
        self.up, self.uneven = up, not up and padding == 0
        self.conv = nn.Conv2d(channels, channels, 3, stride=1 if up else 2, padding=1 if up else padding)

    def forward(self, x: Tensor) -> Tensor:
        if self.up:
            x = F.interpolate(x, scale_factor=2.0, mode="nearest")
        return self.conv(F.pad(x, (0, 1, 0, 1)) if self.uneven else x)


def _block(c: Config, resnets: list[Residual], attention: bool) -> nn.Module:
    block = nn.Module()
    block.resnets = nn.ModuleList(resnets)
    if attention:
        block.attentions = nn.ModuleList(Attention(c, r.conv2.out_channels) for r in resnets)
    return block


def _apply(block: nn.Module, i: int, h: Tensor, e: Tensor) -> Tensor:
    h = block.resnets[i](h, e)
    return block.attentions[i](h) if hasattr(block, "attentions") else h


class UNet(nn.Module):
    """The prediction for x [N, C, H, W] at t [N]."""

    def __init__(self, c: Config) -> None:
        super().__init__()
        self.config, widths = c, c.block_out_channels
        last = len(widths) - 1
        self.conv_in = nn.Conv2d(c.in_channels, widths[0], 3, padding=1)
        self.time_embedding = nn.Module()
        self.time_embedding.linear_1 = nn.Linear(widths[0], 4 * widths[0])
        self.time_embedding.linear_2 = nn.Linear(4 * widths[0], 4 * widths[0])
        self.down_blocks, self.up_blocks = nn.ModuleList(), nn.ModuleList()
        kept, width = [widths[0]], widths[0]
        for i, outside in enumerate(widths):
            resnets = [Residual(c, width if j == 0 else outside, outside) for j in range(c.layers_per_block)]
            block = _block(c, resnets, c.down_block_types[i].startswith("Attn"))
            width = outside
            kept += [width] * c.layers_per_block
            if i < last:
                block.downsamplers = nn.ModuleList([Resample(width, up=False, padding=c.downsample_padding)])
                kept.append(width)
            self.down_blocks.append(block)
        scale = c.mid_block_scale_factor
        self.mid_block = nn.Module()
        self.mid_block.resnets = nn.ModuleList(Residual(c, width, width, scale) for _ in range(2))
        if c.add_attention:
            self.mid_block.attentions = nn.ModuleList([Attention(c, width, scale, normed=c.resnet_time_scale_shift == "default")])
        for i, outside in enumerate(reversed(widths)):
            resnets = []
            for _ in range(c.layers_per_block + 1):
                resnets.append(Residual(c, width + kept.pop(), outside))
                width = outside
            block = _block(c, resnets, c.up_block_types[i].startswith("Attn"))
            if i < last:
                block.upsamplers = nn.ModuleList([Resample(width, up=True)])
            self.up_blocks.append(block)
        self.conv_norm_out = nn.GroupNorm(c.norm_num_groups, width, eps=c.norm_eps)
        self.conv_out = nn.Conv2d(width, c.out_channels, 3, padding=1)

    def forward(self, x: Tensor, t: Tensor) -> Tensor:
        c = self.config
        if c.center_input_sample:
            x = 2 * x - 1
        e = timestep_embedding(t, c.block_out_channels[0], sine_first=not c.flip_sin_to_cos, shift=c.freq_shift)
        e = self.time_embedding.linear_2(F.silu(self.time_embedding.linear_1(e)))
        h = self.conv_in(x)
        kept = [h]
        for block in self.down_blocks:
            for i in range(len(block.resnets)):
                h = _apply(block, i, h, e)
                kept.append(h)
            if hasattr(block, "downsamplers"):
                h = block.downsamplers[0](h)
                kept.append(h)
        h = self.mid_block.resnets[0](h, e)
        if hasattr(self.mid_block, "attentions"):
            h = self.mid_block.attentions[0](h)
        h = self.mid_block.resnets[1](h, e)
        for block in self.up_blocks:
            for i in range(len(block.resnets)):
                h = _apply(block, i, torch.cat([h, kept.pop()], dim=1), e)
            if hasattr(block, "upsamplers"):
                h = block.upsamplers[0](h)
        return self.conv_out(F.silu(self.conv_norm_out(h)))


def newer_names(state: State) -> State:
    """Renames attention weights of older files; reshapes convolution weights of the oldest files
    to matrices."""
    out: State = {}
    for name, value in state.items():
        words = name.split(".")
        if len(words) > 2 and words[-2] in OLDER:
            name = ".".join([*words[:-2], OLDER[words[-2]], words[-1]])
            if value.dim() > 2:
                value = value.reshape(value.shape[:2])
        out[name] = value
    return out


def build(c: Config) -> UNet:
    """Builds the module with uninitialised weights."""
    with without_init():
        return UNet(c)


def open_directory(directory: Path) -> tuple[UNet, dict[str, Any]]:
    """The network of a directory, and the card's prediction, schedule and number of steps."""
    base = directory / "unet" if (directory / "unet").is_dir() else directory
    source = base / "config.json"
    c = config(fields(source), str(source))
    path = weights(base)
    network = build(c)
    fit(network, newer_names(read(path)), str(path))
    if c.out_channels == 2 * c.in_channels:  # remove the channels of a learned variance
        last = network.conv_out
        last.weight.data, last.bias.data = last.weight.data[: c.in_channels], last.bias.data[: c.in_channels]
        last.out_channels = c.in_channels
    elif c.out_channels != c.in_channels:
        raise ExportError(f"{source}: out_channels is {c.out_channels}, want {c.in_channels} or twice that")
    return network, scheduler(directory, base)


def weights(folder: Path) -> Path:
    """The file of weights in a folder."""
    found = [folder / name for name in WEIGHTS if (folder / name).is_file()]
    if found:
        return found[0]
    if any(folder.glob("*.index.json")):
        raise ExportError(f"{folder}: the weights are in several files; save the model again as one, with max_shard_size='10GB' of save_pretrained")
    raise ExportError(f"{folder}: the directory holds no weights; looked for {', '.join(WEIGHTS)}")
