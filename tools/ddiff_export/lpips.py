"""LPIPS: the distance between deep features, weighted per channel.

    d(x, y) = sum_l mean_pixels sum_c w_lc (f_lc(x)/|f_l(x)| - f_lc(y)/|f_l(y)|)^2

f_l are activations of a classifier trained on ImageNet, for inputs in [-1, 1] that are shifted
and scaled per colour. The weights w are in a small file, the classifier's weights in another;
one file with both, under the names of the published module, is accepted too.
"""

from __future__ import annotations

import hashlib

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from .checkpoint import State, fit, without_init
from .errors import ExportError

SHIFT = (-0.030, -0.088, -0.188)
SCALE = (0.458, 0.448, 0.450)

# Per network: the layers of the classifier's `features` by index. Numbers are a convolution's
# output width, kernel, stride and padding; "r" is ReLU, "p" pooling, ("f", s, e) a fire module.
# TAPS are the indices of the layers after the features, where the published module cuts the
# layers into slices.
ALEX = [(64, 11, 4, 2), "r", "p", (192, 5, 1, 2), "r", "p", (384, 3, 1, 1), "r", (256, 3, 1, 1), "r", (256, 3, 1, 1), "r"]
VGG_BLOCKS = ((64, 2), (128, 2), (256, 3), (512, 3), (512, 3))
VGG = [layer for width, n in VGG_BLOCKS for layer in [(width, 3, 1, 1), "r"] * n + ["p"]][:-1]
SQUEEZE = [
    (64, 3, 2, 0), "r", "p", ("f", 16, 64), ("f", 16, 64), "p", ("f", 32, 128), ("f", 32, 128), "p",
    ("f", 48, 192), ("f", 48, 192), ("f", 64, 256), ("f", 64, 256),
]  # fmt: skip
LAYERS = {"alex": ALEX, "vgg": VGG, "squeeze": SQUEEZE}
TAPS = {"alex": (2, 5, 8, 10, 12), "vgg": (4, 9, 16, 23, 30), "squeeze": (2, 5, 8, 10, 11, 12, 13)}
TRUNKS = {"alex": "alexnet-owt-7be5be79.pth", "vgg": "vgg16-397923af.pth", "squeeze": "squeezenet1_1-b8a52dc0.pth"}


class Fire(nn.Module):
    """A narrow 1x1 convolution, then a 1x1 and a 3x3 convolution in parallel."""

    def __init__(self, inside: int, squeeze: int, expand: int) -> None:
        super().__init__()
        self.squeeze = nn.Conv2d(inside, squeeze, 1)
        self.expand1x1 = nn.Conv2d(squeeze, expand, 1)
        self.expand3x3 = nn.Conv2d(squeeze, expand, 3, padding=1)

    def forward(self, x: Tensor) -> Tensor:
        h = F.relu(self.squeeze(x))
        return torch.cat([F.relu(self.expand1x1(h)), F.relu(self.expand3x3(h))], dim=1)


class LPIPS(nn.Module):
    """Distances [N] between two batches of images [N, 3, H, W] in [-1, 1]."""

    def __init__(self, network: str, narrow: int = 1) -> None:
        super().__init__()
        self.taps = TAPS[network]
        self.features, widths = _trunk(LAYERS[network], self.taps, pool=2 if network == "vgg" else 3, up=network == "squeeze", narrow=narrow)
        for i, width in enumerate(widths):
            layer = nn.Module()
            # Identity replaces the published module's dropout; it preserves the names.
            layer.model = nn.Sequential(nn.Identity(), nn.Conv2d(width, 1, 1, bias=False))
            setattr(self, f"lin{i}", layer)
        self.register_buffer("shift", torch.tensor(SHIFT)[None, :, None, None], persistent=False)
        self.register_buffer("scale", torch.tensor(SCALE)[None, :, None, None], persistent=False)

    def _features(self, x: Tensor) -> list[Tensor]:
        h, out = (x - self.shift) / self.scale, []
        for i, layer in enumerate(self.features, start=1):
            h = layer(h)
            if i in self.taps:
                out.append(h / (h.square().sum(1, keepdim=True).sqrt() + 1e-10))
        return out

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        total = None
        for i, (a, b) in enumerate(zip(self._features(x), self._features(y))):
            d = getattr(self, f"lin{i}").model(torch.square(a - b)).mean((1, 2, 3))
            total = d if total is None else total + d
        return total


def _trunk(layers: list, taps: tuple[int, ...], pool: int, up: bool, narrow: int) -> tuple[nn.Sequential, list[int]]:
    """The classifier's layers up to the last tap, and the width of each feature."""
    out, width, widths = [], 3, []
    for i, layer in enumerate(layers, start=1):
        if layer == "r":
            out.append(nn.ReLU())
        elif layer == "p":
            out.append(nn.MaxPool2d(pool, 2, ceil_mode=up))
        elif layer[0] == "f":
            squeeze, expand = layer[1] // narrow, layer[2] // narrow
            out.append(Fire(width, squeeze, expand))
            width = 2 * expand
        else:
            outside, kernel, stride, padding = layer
            out.append(nn.Conv2d(width, outside // narrow, kernel, stride, padding))
            width = outside // narrow
        if i in taps:
            widths.append(width)
    return nn.Sequential(*out), widths


def minimum(module: LPIPS) -> int:
    """The smallest side of an image in pixels: each pooling layer needs one whole window."""
    for side in range(8, 65):
        try:
            with torch.no_grad():
                module(torch.zeros(1, 3, side, side), torch.zeros(1, 3, side, side))
        except RuntimeError:
            continue
        return side
    raise ExportError("the network accepts no image of 8 to 64 pixels")


def digest(module: LPIPS) -> str:
    """SHA-256 of all weights by name, which does not depend on the versions of torch and ONNX."""
    hasher = hashlib.sha256()
    for name, value in sorted(module.state_dict().items()):
        hasher.update(name.encode() + b"\0" + str(tuple(value.shape)).encode() + value.float().contiguous().numpy().tobytes())
    return hasher.hexdigest()


def build(network: str, narrow: int = 1) -> LPIPS:
    """Builds the module with uninitialised weights."""
    with without_init():
        return LPIPS(network, narrow)


def names(network: str, state: State, source: str) -> State:
    """Renames a state dict of the classifier's file, of the weights' file, or of the published
    module with both, to the names of this module."""
    out: State = {}
    for name, value in state.items():
        parts = name.split(".")
        if parts[0] == "net" and parts[1].startswith("slice"):
            out["features." + ".".join(parts[2:])] = value
        elif parts[0] == "features" or parts[0].startswith("lin") and parts[0] != "lins":
            out[name] = value
        elif parts[0] not in ("classifier", "scaling_layer", "lins", "avgpool"):
            raise ExportError(f"{source}: {name} belongs neither to {TRUNKS[network]} nor to LPIPS")
    return out


def load(network: str, states: list[tuple[str, State]], narrow: int = 1) -> LPIPS:
    """Builds the module and loads the weights of one or two files."""
    state: State = {}
    for source, given in states:
        state |= names(network, given, source)
    module = build(network, narrow)
    last = len(module.features)
    # The classifiers have more layers after the last tap.
    state = {n: v for n, v in state.items() if not n.startswith("features.") or int(n.split(".")[1]) < last}
    fit(module, state, " and ".join(source for source, _ in states))
    return module
