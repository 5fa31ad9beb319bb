"""Networks of EDM (Karras et al. 2022): pickles of modules, with the U-Nets DDPM++ and ADM.

The network F sees c_in (x + sigma n) and ln(sigma)/4; ddiff applies c_in, c_skip and c_out.

    block  y = (skip(x) + c1(silu(gn1(c0(silu(gn0(x))) + e))))/s, then perhaps attention, (y + proj(a))/s
           with the embedding e of the noise level, in ADM as gn1(.)(1 + scale) + shift

A pickle holds objects with their source code. The reader builds neither: it keeps the class name and
the state of every object, in which the weights are.
"""

from __future__ import annotations

import io
import math
import pickle
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from . import pickles
from .adm_blocks import attend, timestep_embedding
from .checkpoint import State, fit, without_init
from .errors import ExportError
from .flow import LEVELS

SCHEDULE = f"sigma:{LEVELS}"


class Object:
    """An object of a pickle: its class name and its state."""

    class_name = ""

    def __setstate__(self, state: Any) -> None:
        self.state = state


def _persistent(meta: Mapping[str, Any]) -> Object:
    """An object of torch_utils.persistence."""
    found = Object()
    found.class_name, found.state = str(meta["class_name"]), meta["state"]
    return found


class _Unpickler(pickles.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        if (module, name) == ("torch_utils.persistence", "_reconstruct_persistent_obj"):
            return _persistent
        if (module, name) == ("torch.storage", "_load_from_bytes"):
            return lambda data: pickles.read_older(io.BytesIO(data))
        if (module, name) == ("dnnlib.util", "EasyDict"):
            return dict
        if module.startswith("torch.nn.modules."):
            return type(name, (Object,), {"class_name": name})
        return super().find_class(module, name)


def read(path: Path) -> Object:
    """The network of a pickle. Raises ExportError for another file, or one that would run code."""
    if not path.is_file():
        raise ExportError(f"{path}: no such file")
    try:
        with path.open("rb") as file:
            found = _Unpickler(file).load()
    except ExportError as err:
        raise ExportError(f"{path}: refused: {err}") from None
    except Exception as err:  # a damaged pickle can raise any exception
        raise ExportError(f"{path}: truncated, or not a pickle ({path.stat().st_size} bytes): {str(err).splitlines()[:1]}; download the file again") from None
    if isinstance(found, dict):
        found = found.get("ema")
    if not isinstance(found, Object) or found.class_name != "EDMPrecond":
        raise ExportError(f"{path}: it holds a {getattr(found, 'class_name', type(found).__name__)}, only EDMPrecond is supported")
    return found


def weights(found: Object, deep: int = 8) -> State:
    """The named tensors of a module and of its parts, which contain each other up to a depth: shared parts would take endless time."""
    if deep == 0:
        raise ValueError("its modules are nested too deep")
    out: State = {}
    for kind in ("_parameters", "_buffers"):
        out |= {name: value.detach() for name, value in found.state[kind].items() if isinstance(value, Tensor)}
    for name, part in found.state["_modules"].items():
        if part is not None:
            out |= {f"{name}.{inner}": value for inner, value in weights(part, deep - 1).items()}
    return out


@dataclass(frozen=True)
class Config:
    """The arguments of a U-Net, with the defaults of DDPM++."""

    img_resolution: int
    in_channels: int
    out_channels: int
    label_dim: int = 0
    augment_dim: int = 0
    model_channels: int = 128
    channel_mult: tuple[int, ...] = (1, 2, 2, 2)
    channel_mult_emb: int = 4
    num_blocks: int = 4
    attn_resolutions: tuple[int, ...] = (16,)
    adm: bool = False

    @property
    def multiple(self) -> int:
        """Both sides of an image must be a multiple of this number."""
        return 2 ** (len(self.channel_mult) - 1)


ADM = {"model_channels": 192, "channel_mult": (1, 2, 3, 4), "num_blocks": 3, "attn_resolutions": (32, 16, 8), "adm": True}

# Arguments that change nothing without training, and the supported values of others: those of DDPM++, not of NCSN++.
IGNORED = ("dropout", "label_dropout")
ONLY = {"embedding_type": "positional", "channel_mult_noise": 1, "encoder_type": "standard", "decoder_type": "standard", "resample_filter": [1, 1]}


def config(class_name: str, arguments: Mapping[str, Any], source: str) -> Config:
    """Reads the arguments of a U-Net; ExportError names an unsupported one."""
    if class_name not in ("SongUNet", "DhariwalUNet"):
        raise ExportError(f"{source}: the U-Net is a {class_name}, only SongUNet and DhariwalUNet are supported")
    fields: dict[str, Any] = dict(ADM) if class_name == "DhariwalUNet" else {}
    for name, value in arguments.items():
        if name in ONLY and value != ONLY[name]:
            raise ExportError(f"{source}: {name} is {value!r}, only {ONLY[name]!r} is supported")
        if name in Config.__dataclass_fields__ and name != "adm":
            fields[name] = tuple(value) if isinstance(value, (list, tuple)) else value
        elif name not in ONLY and name not in IGNORED:
            raise ExportError(f"{source}: the U-Net has the unknown argument {name}")
    return Config(**fields)


def _norm(c: Config, channels: int) -> nn.GroupNorm:
    return nn.GroupNorm(min(32, channels // 4), channels, eps=1e-5 if c.adm else 1e-6)


class Block(nn.Module):
    """A residual block with the embedding; it may halve or double the resolution, and end with attention."""

    def __init__(self, c: Config, inside: int, outside: int, resample: str = "", attention: bool = False) -> None:
        super().__init__()
        self.inside, self.resample, self.adm = inside, resample, c.adm
        self.heads = (outside // 64 if c.adm else 1) if attention else 0
        self.scale = 1.0 if c.adm else math.sqrt(0.5)
        self.norm0, self.norm1 = _norm(c, inside), _norm(c, outside)
        self.conv0, self.conv1 = nn.Conv2d(inside, outside, 3, padding=1), nn.Conv2d(outside, outside, 3, padding=1)
        self.affine = nn.Linear(c.model_channels * c.channel_mult_emb, outside * (2 if c.adm else 1))
        self.skip = nn.Conv2d(inside, outside, 1) if inside != outside or resample and not c.adm else None
        if self.heads:
            self.norm2 = _norm(c, outside)
            self.qkv, self.proj = nn.Conv2d(outside, 3 * outside, 1), nn.Conv2d(outside, outside, 1)

    def _resampled(self, h: Tensor) -> Tensor:
        if self.resample == "down":
            return F.avg_pool2d(h, 2, count_include_pad=False)  # this option avoids a Pad in the export
        return F.interpolate(h, scale_factor=2.0, mode="nearest") if self.resample else h

    def forward(self, x: Tensor, e: Tensor) -> Tensor:
        h = self.conv0(self._resampled(F.silu(self.norm0(x))))
        e = self.affine(e)[:, :, None, None]
        if self.adm:
            scale, shift = e.chunk(2, dim=1)
            h = self.norm1(h) * (1 + scale) + shift
        else:
            h = self.norm1(h + e)
        x = self._resampled(x)
        h = (self.conv1(F.silu(h)) + (x if self.skip is None else self.skip(x))) * self.scale
        if self.heads:
            n, channels, height, width = h.shape
            q, k, v = self.qkv(self.norm2(h)).reshape(n, self.heads, channels // self.heads, 3, height * width).unbind(3)
            h = (h + self.proj(attend(q, k, v).reshape(n, channels, height, width))) * self.scale
        return h


class UNet(nn.Module):
    """F(x, c) for x [N, C, H, W] and c [N]."""

    def __init__(self, c: Config) -> None:
        super().__init__()
        self.config, width = c, c.model_channels
        embedding, last = width * c.channel_mult_emb, len(c.channel_mult) - 1
        self.map_layer0, self.map_layer1 = nn.Linear(width, embedding), nn.Linear(embedding, embedding)
        if c.label_dim:
            self.map_label = nn.Linear(c.label_dim, embedding if c.adm else width, bias=not c.adm)
        outside = width * c.channel_mult[0] if c.adm else width
        sides = [f"{c.img_resolution >> i}x{c.img_resolution >> i}" for i in range(last + 1)]
        attended = [c.img_resolution >> i in c.attn_resolutions for i in range(last + 1)]
        self.enc, self.dec = nn.ModuleDict({f"{sides[0]}_conv": nn.Conv2d(c.in_channels, outside, 3, padding=1)}), nn.ModuleDict()
        kept = [outside]
        for i, factor in enumerate(c.channel_mult):
            if i > 0:
                self.enc[f"{sides[i]}_down"] = Block(c, outside, outside, "down")
                kept.append(outside)
            for j in range(c.num_blocks):
                self.enc[f"{sides[i]}_block{j}"] = Block(c, outside, width * factor, attention=attended[i])
                outside = width * factor
                kept.append(outside)
        for i in reversed(range(last + 1)):
            if i == last:
                self.dec[f"{sides[i]}_in0"] = Block(c, outside, outside, attention=True)
                self.dec[f"{sides[i]}_in1"] = Block(c, outside, outside)
            else:
                self.dec[f"{sides[i]}_up"] = Block(c, outside, outside, "up")
            for j in range(c.num_blocks + 1):
                attention = attended[i] and (c.adm or j == c.num_blocks)
                self.dec[f"{sides[i]}_block{j}"] = Block(c, outside + kept.pop(), width * c.channel_mult[i], attention=attention)
                outside = width * c.channel_mult[i]
        ends = _norm(c, outside), nn.Conv2d(outside, c.out_channels, 3, padding=1)
        if c.adm:
            self.out_norm, self.out_conv = ends
        else:
            self.dec[f"{sides[0]}_aux_norm"], self.dec[f"{sides[0]}_aux_conv"] = ends
        self.label: Tensor | None = None

    def settle(self, label: int | None) -> None:
        """Fixes the class, or none."""
        c = self.config
        if label is not None and not 0 <= label < c.label_dim:
            raise ExportError(f"--class: {label} is outside 0..{c.label_dim - 1}" if c.label_dim else "--class: this network has no classes")
        if c.label_dim:
            chosen = torch.zeros(1, c.label_dim)
            if label is not None:
                chosen[0, label] = 1 if c.adm else math.sqrt(c.label_dim)
            self.label = self.map_label(chosen).detach()

    def forward(self, x: Tensor, t: Tensor) -> Tensor:
        c = self.config
        label = 0 if self.label is None else self.label
        e = timestep_embedding(t, c.model_channels, sine_first=not c.adm, shift=0 if c.adm else 1)
        if c.adm:
            e = F.silu(self.map_layer1(F.silu(self.map_layer0(e))) + label)
        else:
            e = F.silu(self.map_layer1(F.silu(self.map_layer0(e + label))))
        h, kept = x, []
        for block in self.enc.values():
            h = block(h, e) if isinstance(block, Block) else block(h)
            kept.append(h)
        for block in self.dec.values():
            if isinstance(block, Block):
                h = block(h if h.shape[1] == block.inside else torch.cat([h, kept.pop()], dim=1), e)
        norm, conv = (self.out_norm, self.out_conv) if c.adm else list(self.dec.values())[-2:]
        return conv(F.silu(norm(h)))


def load(path: Path, label: int | None = None) -> tuple[UNet, float]:
    """The U-Net of a pickle, and the standard deviation of its training images."""
    found = read(path)
    try:
        inner = found.state["_modules"]["model"]
        c = config(inner.class_name, inner.state["_init_kwargs"], str(path))
        state, deviation = weights(inner), float(found.state["sigma_data"])
        with without_init():
            network = UNet(c)
    except (KeyError, TypeError, AttributeError, ValueError, IndexError, ZeroDivisionError) as err:
        raise ExportError(f"{path}: its EDMPrecond lacks a field, or one has another type: {err}") from None
    fit(network, {name: value for name, value in state.items() if not name.endswith("resample_filter")}, str(path), ("map_augment.",))
    network.settle(label)
    return network, deviation
