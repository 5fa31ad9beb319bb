"""Priors: the bundled ONNX score model as a native torch module, and a Gaussian prior in closed form.

The network predicts the clean image z from (x_t, t). It is a U-Net on 2x2 blocks of pixels. It gets the linear estimate
z_lin of Wiener as an input and predicts the error of eps_lin, in units of its expected size:

    emb   = silu(W2 silu(W1 [sin(t f); cos(t f)]))
    block = skip(h) + c2(silu(gn(c1(silu(gn(h)))) * (1 + scale) + shift)),  [scale; shift] = e(emb)
    rest  = shuffle(out(silu(gn(up(mid(down(inp(unshuffle([x; z_lin])))))))))
    z     = z_lin - sqrt((1-abar_t)/abar_t) left(t) rest,   eps = eps_lin + left(t) rest

Computing z from eps would lose two digits to rounding at the highest noise. Files without a linear estimate are supported
too; they predict eps = rest from x alone. For x_0 ~ N(m, s2 I) the noise estimate is linear, with abar the cumulative schedule:

    eps(x_t, t) = sqrt(1-abar_t) (x_t - sqrt(abar_t) m) / (abar_t s2 + 1 - abar_t)
"""

from __future__ import annotations

import math
import re
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from .schedule import alpha_bar
from .wiener import BANDS, Wiener

GROUPS = 8


class Block(nn.Module):
    """Residual block: two group-normalised convolutions, scaled and shifted by the time."""

    def __init__(self, inside: int, outside: int, embedding: int) -> None:
        super().__init__()
        self.n1 = nn.GroupNorm(GROUPS, inside)
        self.c1 = nn.Conv2d(inside, outside, 3, padding=1)
        self.e = nn.Linear(embedding, 2 * outside)
        self.n2 = nn.GroupNorm(GROUPS, outside)
        self.c2 = nn.Conv2d(outside, outside, 3, padding=1)
        if inside != outside:
            self.sk = nn.Conv2d(inside, outside, 1)

    def forward(self, h: Tensor, emb: Tensor) -> Tensor:
        r = self.c1(F.silu(self.n1(h)))
        scale, shift = self.e(emb)[:, :, None, None].chunk(2, dim=1)
        r = self.c2(F.silu(self.n2(r) * (1 + scale) + shift))
        return (self.sk(h) if hasattr(self, "sk") else h) + r


class UNet(nn.Module):
    """The score network; parameters are named like the ONNX initialisers."""

    def __init__(
        self, widths: list[int], depth: int, middle: int, embedding: int, frequencies: int, wiener: Wiener | None = None
    ) -> None:
        super().__init__()
        self.wiener = wiener
        levels = range(len(widths))
        self.register_buffer("frequencies", torch.zeros(frequencies))
        self.emb = nn.Sequential(
            nn.Linear(2 * frequencies, embedding), nn.SiLU(), nn.Linear(embedding, embedding), nn.SiLU()
        )
        self.inp = nn.Conv2d(24 if wiener else 12, widths[0], 3, padding=1)
        self.down, self.up = nn.ModuleList(), nn.ModuleList()
        kept, width = [widths[0]], widths[0]
        for i in levels:
            level = nn.ModuleList()
            for _ in range(depth):
                level.append(Block(width, widths[i], embedding))
                width = widths[i]
                kept.append(width)
            self.down.append(level)
            if i != levels[-1]:
                kept.append(width)
        self.ds = nn.ModuleList(nn.Conv2d(w, w, 3, stride=2, padding=1) for w in widths[:-1])
        self.mid = nn.ModuleList(Block(width, width, embedding) for _ in range(middle))
        for i in reversed(levels):
            level = nn.ModuleList()
            for _ in range(depth + 1):
                level.append(Block(width + kept.pop(), widths[i], embedding))
                width = widths[i]
            self.up.append(level)
        self.us = nn.ModuleList(nn.Conv2d(w, w, 3, padding=1) for w in reversed(widths[1:]))
        self.on = nn.GroupNorm(GROUPS, widths[0])
        self.out = nn.Conv2d(widths[0], 12, 3, padding=1)

    def forward(self, x: Tensor, t: Tensor) -> Tensor:
        """The output of the file: z, or eps if the network has no linear estimate."""
        return self.noise(x, t) if self.wiener is None else self.image(x, t)

    def noise(self, x: Tensor, t: Tensor) -> Tensor:
        """Estimate of eps with the shape of x, [batch, 3, height, width]; t is [batch]."""
        if self.wiener is None:
            return self.rest(x, t)
        eps, z = self.wiener(x, t)
        return eps + self.wiener.left[t][:, None, None, None] * self.rest(torch.cat([x, z], dim=1), t)

    def image(self, x: Tensor, t: Tensor) -> Tensor:
        """Estimate of the clean image, not clipped."""
        if self.wiener is None:
            abar = torch.from_numpy(alpha_bar())[t][:, None, None, None].to(x.dtype)
            return (x - (1 - abar).sqrt() * self.noise(x, t)) / abar.sqrt()
        z = self.wiener.image(x, t)
        return z - self.wiener.error[t][:, None, None, None] * self.rest(torch.cat([x, z], dim=1), t)

    def rest(self, x: Tensor, t: Tensor) -> Tensor:
        """The U-Net itself, on [batch, 3 or 6, height, width]."""
        angle = t.to(x.dtype)[:, None] * self.frequencies
        emb = self.emb(torch.cat([angle.sin(), angle.cos()], dim=1))
        h = self.inp(F.pixel_unshuffle(x, 2))
        kept = [h]
        for i, level in enumerate(self.down):
            for block in level:
                h = block(h, emb)
                kept.append(h)
            if i < len(self.ds):
                h = self.ds[i](h)
                kept.append(h)
        for block in self.mid:
            h = block(h, emb)
        for i, level in enumerate(self.up):
            for block in level:
                h = block(torch.cat([h, kept.pop()], dim=1), emb)
            if i < len(self.us):
                h = self.us[i](F.interpolate(h, scale_factor=2.0, mode="nearest"))
        return F.pixel_shuffle(self.out(F.silu(self.on(h))), 2)


class NetworkPrior:
    """The U-Net as a solver prior: one index t for the whole batch."""

    def __init__(self, network: UNet) -> None:
        self.network = network

    @torch.no_grad()
    def __call__(self, x: Tensor, t: int) -> Tensor:
        return self.network.noise(x, torch.full((x.shape[0],), t, dtype=torch.int64))

    @torch.no_grad()
    def image(self, x: Tensor, t: int) -> Tensor:
        return self.network.image(x, torch.full((x.shape[0],), t, dtype=torch.int64))


class GaussianPrior:
    """The exact noise estimate if every pixel of the clean image is N(mean, var)."""

    def __init__(self, mean: float, var: float) -> None:
        if not (var > 0 and math.isfinite(var) and math.isfinite(mean)):
            raise ValueError(f"prior: gaussian with mean {mean} and var {var}: both must be finite, var above 0")
        self.mean, self.var = mean, var
        self._abar = alpha_bar()

    def __call__(self, x: Tensor, t: int) -> Tensor:
        abar = float(self._abar[t])
        return (x - math.sqrt(abar) * self.mean) * (math.sqrt(1 - abar) / (abar * self.var + 1 - abar))


def load(path: str | Path) -> UNet:
    """Reads an ONNX score model into the native module, ready for inference on the CPU.

    Weights are copied by name. Raises ValueError that names the first parameter that is missing
    or has another shape: the file then has another architecture.
    """
    weights = _read_weights(path)
    network = UNet(**_architecture(weights, path))
    state = {}
    for name, expected in network.state_dict().items():
        if name not in weights:
            raise ValueError(f"prior: {path} has no weight {name!r}: another architecture than the U-Net of this module")
        value = weights[name].astype(np.float32)
        if value.shape != tuple(expected.shape):
            raise ValueError(f"prior: weight {name!r} of {path} is {value.shape}, expected {tuple(expected.shape)}")
        state[name] = torch.from_numpy(value)
    network.load_state_dict(state)
    return network.eval().requires_grad_(False)


def _read_weights(path: str | Path) -> dict[str, np.ndarray]:
    """All constants of the file under the names of the torch parameters.

    An export preserves the names of convolutions and linear layers, with a suffix for weights
    stored in half precision. It does not preserve the names of a group norm's scale and shift:
    they are the constants of the nodes in the norm's scope ("/down.0.0/n1/...").
    """
    import onnx  # imported here: jobs with a Gaussian prior do not need it
    from onnx import numpy_helper

    try:
        graph = onnx.load(str(path)).graph
    except OSError as err:
        raise ValueError(f"prior: read {path}: {err.strerror}") from err
    except Exception as err:  # protobuf's DecodeError has no stable home
        raise ValueError(f"prior: {path} is not an ONNX file: {err}") from err

    constants = {i.name: numpy_helper.to_array(i) for i in graph.initializer}
    for node in graph.node:
        if node.op_type == "Constant" and node.attribute[0].name == "value":
            constants[node.output[0]] = numpy_helper.to_array(node.attribute[0].t)
    weights = {name.removesuffix("_fp16"): value for name, value in constants.items()}

    producer = {out: node for node in graph.node for out in node.output}
    for node in graph.node:
        norm = re.fullmatch(r"/((?:.+/)?(?:n1|n2|on))/[^/]+", node.output[0])
        held = [constants[name].reshape(-1) for name in node.input if name in constants]
        if norm and held:
            scope = norm.group(1).replace("/", ".")
            if node.op_type == "GroupNormalization":
                weights[f"{scope}.weight"], weights[f"{scope}.bias"] = held
            elif node.op_type in ("Mul", "Add"):
                weights[f"{scope}.{'weight' if node.op_type == 'Mul' else 'bias'}"] = held[0]
        if node.op_type == "Sin" and node.input[0] in producer:
            for name in producer[node.input[0]].input:
                if name in constants:
                    weights["frequencies"] = constants[name].reshape(-1)
    return weights


def _architecture(weights: dict[str, np.ndarray], path: str | Path) -> dict[str, object]:
    """Derives the constructor arguments of UNet from the names and shapes of the weights."""

    def count(pattern: str) -> int:
        return len({m.group(1) for m in (re.fullmatch(pattern, name) for name in weights) if m})

    levels = count(r"down\.(\d+)\.0\.c1\.weight")
    if levels == 0 or "emb.0.weight" not in weights:
        raise ValueError(f"prior: {path} has no weights named 'down.0.0.c1' and 'emb.0': another architecture")
    embedding, twice = weights["emb.0.weight"].shape
    return {
        "widths": [weights[f"down.{i}.0.c1.weight"].shape[0] for i in range(levels)],
        "depth": count(r"down\.0\.(\d+)\.c1\.weight"),
        "middle": count(r"mid\.(\d+)\.c1\.weight"),
        "embedding": embedding,
        "frequencies": twice // 2,
        "wiener": Wiener(0.0, *[(1.0,) * BANDS] * 3) if "wiener.spectrum" in weights else None,  # overwritten by load
    }
