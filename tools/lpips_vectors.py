#!/usr/bin/env python3
"""Write the golden vectors of LPIPS: distances by the reference implementation, and a small network for the tests in Go.

The reference is the package lpips with its weights of the linear layers; random numbers replace the weights of the
classifiers, which are not needed to compare implementations. Needs NumPy, Pillow, PyTorch, torchvision and lpips (pip install
lpips==0.1.4). The distances are computed on the picture pairs of internal/restore/metric/testdata.

    python3 tools/lpips_vectors.py --reference tools/tests/lpips
    python3 tools/lpips_vectors.py --small internal/restore/metric/testdata
"""

from __future__ import annotations

import argparse
import json
import pathlib
import sys
import zlib

import numpy as np
import torch
from PIL import Image

PICTURES = pathlib.Path(__file__).resolve().parent.parent / "internal" / "restore" / "metric" / "testdata"
PAIRS = ("equal", "noise", "odd", "pooled")
NETWORKS = ("alex", "vgg", "squeeze")


def pair(name: str) -> tuple[torch.Tensor, torch.Tensor]:
    """A pair of pictures [1, 3, H, W] in [-1, 1]."""
    pictures = []
    for side in "xy":
        path = PICTURES / f"{'equal_x' if name == 'equal' else f'{name}_{side}'}.png"
        array = np.asarray(Image.open(path).convert("RGB"), dtype=np.float32)
        pictures.append(torch.from_numpy(array / 255 * 2 - 1).permute(2, 0, 1)[None].contiguous())
    return pictures[0], pictures[1]


def weights(name: str, shape: tuple[int, ...]) -> torch.Tensor:
    """Random weights that depend on name and shape only."""
    numbers = np.random.Generator(np.random.PCG64(zlib.crc32(name.encode())))
    if len(shape) == 1:
        return torch.from_numpy(numbers.uniform(-0.1, 0.1, shape).astype(np.float32))
    scale = np.sqrt(2 / np.prod(shape[1:]))
    return torch.from_numpy((scale * numbers.standard_normal(shape)).astype(np.float32))


def backbone(state: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """The state with random weights of the classifier; names are those of its published file."""
    out = {}
    for name, value in state.items():
        parts = name.split(".")
        plain = ".".join(["features", *parts[2:]]) if parts[0] == "net" else name
        out[name] = weights(plain, tuple(value.shape)) if plain.startswith("features.") else value
    return out


def reference(out: pathlib.Path) -> None:
    """Distances by the package lpips, and its weights of the linear layers."""
    import lpips

    distances = {}
    out.mkdir(parents=True, exist_ok=True)
    for network in NETWORKS:
        module = lpips.LPIPS(net=network, pnet_rand=True, verbose=False).eval()
        module.load_state_dict(backbone(module.state_dict()))
        with torch.no_grad():
            distances[network] = {name: float(module(*pair(name))) for name in PAIRS}
        linear = pathlib.Path(lpips.__file__).parent / "weights" / "v0.1" / f"{network}.pth"
        (out / linear.name).write_bytes(linear.read_bytes())
    (out / "distances.json").write_text(json.dumps({"package": "lpips 0.1.4", "distances": distances}, indent=2) + "\n")


def small(out: pathlib.Path) -> None:
    """A network of the same form with few channels, and its distances."""
    from ddiff_export import commands, lpips
    from ddiff_export.write import Options

    module = lpips.LPIPS("alex", 8).eval()
    state = backbone(module.state_dict())
    state = {name: v if name.startswith("features.") else weights(name, tuple(v.shape)).abs() for name, v in state.items()}
    module.load_state_dict(state)
    file = out / "lpips_alex.pth"
    torch.save(state, file)
    try:
        commands.perceptual("alex", [file], out / "lpips_alex.onnx", "small random LPIPS", "CC0-1.0", 8, Options(vectors=False))
    finally:
        file.unlink()
    with torch.no_grad():
        distances = {name: float(module(*pair(name))) for name in PAIRS}
    (out / "lpips.json").write_text(json.dumps(distances, indent=2) + "\n")


def main(args: list[str]) -> None:
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument("--reference", type=pathlib.Path, metavar="FOLDER", help="write the distances of the package lpips")
    p.add_argument("--small", type=pathlib.Path, metavar="FOLDER", help="write the small network")
    o = p.parse_args(args)
    if o.reference:
        reference(o.reference)
    if o.small:
        small(o.small)


if __name__ == "__main__":
    main(sys.argv[1:])
