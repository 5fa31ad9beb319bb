"""Reference inputs and outputs of an ONNX file, for checks without PyTorch.

NAME.onnx has a folder NAME.vectors with one float32 .npy file per input and output and
vectors.json:

    {"model": "NAME.onnx", "precision": "float32", "inputs": {"x": "x.npy", "t": "t.npy"},
     "outputs": {"eps": "eps.npy"}, "sha256": {"x.npy": "...", ...}, "torch": "1.13.0"}

The outputs are computed by PyTorch in float32, for any precision of the file.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from .onnx_file import file_digest


def folder(model: Path) -> Path:
    """The folder of a model's vectors."""
    return model.with_name(model.name.removesuffix(".onnx") + ".vectors")


def write(model: Path, precision: str, inputs: Mapping[str, Tensor], outputs: Mapping[str, Tensor]) -> Path:
    """Writes the vectors of a model file. Raises ValueError if an output is not finite."""
    out = folder(model)
    out.mkdir(parents=True, exist_ok=True)
    for name, value in outputs.items():
        if not bool(torch.isfinite(value).all()):
            raise ValueError(f"{model}: the network's values are not finite in {name}")
    for name, value in (inputs | outputs).items():
        np.save(out / f"{name}.npy", np.ascontiguousarray(value.detach().numpy().astype(np.float32)))
    described = {
        "model": model.name,
        "precision": precision,
        "inputs": {name: f"{name}.npy" for name in inputs},
        "outputs": {name: f"{name}.npy" for name in outputs},
        "sha256": {f"{name}.npy": file_digest(out / f"{name}.npy") for name in [*inputs, *outputs]},
        "torch": torch.__version__,
    }
    (out / "vectors.json").write_text(json.dumps(described, indent=1) + "\n")
    return out


def copy(source: Path, target: Path, precision: str) -> None:
    """Copies the vectors of a model file for another file with the same network."""
    old, new = folder(source), folder(target)
    described = json.loads((old / "vectors.json").read_text())
    new.mkdir(parents=True, exist_ok=True)
    for name in described["sha256"]:
        (new / name).write_bytes((old / name).read_bytes())
    described |= {"model": target.name, "precision": precision}
    (new / "vectors.json").write_text(json.dumps(described, indent=1) + "\n")
