"""The weights of internal/restore/onnx/onnxtest, drawn from a seed and their published names: Go and Python make equal networks without a file."""

from __future__ import annotations

import hashlib
import math

import torch
from torch import Tensor, nn

from method_vectors.noise import START, normal

SEED = 0


def small(side: int) -> dict[str, object]:
    """The arguments of guided diffusion's create_model for the network of onnxtest: the FFHQ network with fewer channels and levels."""
    return {
        "image_size": side, "num_channels": 32, "num_res_blocks": 1, "channel_mult": "1,2,2", "learn_sigma": True,
        "attention_resolutions": str(side // 4), "num_heads": 4, "num_head_channels": 64, "use_scale_shift_norm": True, "resblock_updown": True,
    }  # fmt: skip


def draw_weights(network: nn.Module) -> nn.Module:
    """Sets all weights of a network with the names of guided diffusion."""
    shapes = {name: tuple(p.shape) for name, p in network.named_parameters()}
    with torch.no_grad():
        for name, p in network.named_parameters():
            p.copy_(_weight(name, shapes))
    return network.eval()


def _weight(name: str, shapes: dict[str, tuple[int, ...]]) -> Tensor:
    layer, _, kind = name.rpartition(".")
    weight = shapes[f"{layer}.weight"]  # one axis in group normalisations
    mean, deviation = 0.0, 0.02
    if len(weight) == 1:
        mean, deviation = float(kind == "weight"), 0.1
    elif kind == "weight":
        gain = 0.3 if layer.endswith((".out_layers.3", ".proj_out")) else 1.0
        deviation = gain / math.sqrt(math.prod(weight[1:]))
    digest = hashlib.sha256(f"random network {SEED} {name}".encode()).digest()
    key = tuple(int.from_bytes(digest[i : i + 4], "little") for i in (0, 4, 8))
    return normal(shapes[name], START, 0, key, deviation) + mean
