"""Operators of one's own: PyTorch modules as ONNX files."""

from __future__ import annotations

import copy
import json
import re
import subprocess
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from ._program import PROGRAM, environment, install

_SAME = 1e-4  # relative error of float32


@dataclass(frozen=True)
class Operator:
    """A forward operator y = A(x) for images of one size; see operator()."""

    path: Path  #: ONNX file, also for `ddiff run --operator`. In it, unlike in the module, black is -1.
    shape: tuple[int, ...]  #: Of the measurement of one image.
    linear: bool  #: A is linear, or linear but for a constant.
    gradient_error: float  #: Relative error of the gradient against finite differences.
    adjoint_error: float | None  #: |<Ax, w> - <x, A'w>| over the product of the norms; None if A is not linear.
    _apply: Any = field(repr=False)
    _folder: Any = field(repr=False)  # exists as long as the operator

    def __call__(self, x: Any) -> np.ndarray:
        """Returns A(x) of an image, height x width x 3 from 0 to 1, as float32 of `shape`."""
        return self._apply(_batch(x)).numpy()[0]


def operator(module: Any, example: Any, path: str | Path | None = None) -> Operator:
    """Exports a PyTorch module as an operator for Session.restore, and checks it. Needs the packages of the extra `export`.

    module: A, from images of (1, 3, height, width) with black at 0 and white at 1 to real measurements of (1, ...), of up to 4 dimensions; or a physics
        of DeepInverse, whose A is taken, without its noise.
    example: an image of the size, height x width x 3, or (1, 3, height, width) as a tensor.
    path: of the ONNX file to write. Default: a temporary file, which lasts as long as the operator.

    Raises ValueError with the reason if the module is random, or has an operation that the program cannot run or differentiate, and if its file
    computes something else, has a wrong gradient, or, of a linear module, a wrong adjoint.
    """
    try:
        import torch
        from ddiff_export import onnx_file, write
    except ModuleNotFoundError as err:
        raise ModuleNotFoundError(f"{err}; {install('export')}") from err
    module = copied(module).cpu().eval()  # what is exported stays what it is
    apply = module.A if hasattr(module, "A") and hasattr(module, "noise_model") else module
    x = _batch(example)

    class Whole(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.module = module

        def forward(self, x: Any) -> Any:
            return apply((x + 1) / 2)

    whole = Whole()
    with torch.no_grad():
        y = apply(x)
        if not isinstance(y, torch.Tensor) or y.is_complex() or y.shape[:1] != (1,):
            kind = f"{y.dtype} of {tuple(y.shape)}" if isinstance(y, torch.Tensor) else type(y).__name__
            raise ValueError(f"the module returns {kind} for one image; return one real tensor of (1, ...)")
        if not torch.equal(y, apply(x)):
            raise ValueError("the module is random: two calls differ; leave the noise out")
        a, b, zero = torch.rand_like(x), torch.rand_like(x), torch.zeros_like(x)
        parts, total = apply(a) + apply(b), apply(a + b) + apply(zero)
    linear = bool((parts - total).norm() <= _SAME * max(parts.norm(), total.norm()))
    folder = tempfile.TemporaryDirectory(prefix="ddiff-") if path is None else None
    name = re.sub(r"\W", "", type(module).__name__.lower()) or "operator"
    file = Path(folder.name) / f"{name}.onnx" if folder else Path(path)  # type: ignore[arg-type]
    card = {"ddiff.kind": "operator", "ddiff.linear": "affine" if linear else "false"}
    try:
        write.module(
            whole, write.Ports({"x": tuple(x.shape)}, {"y": tuple(y.shape)}), lambda which: {"x": 2 * (x if which == 0 else a) - 1},
            lambda model: onnx_file.set_metadata(model, card), file, write.Options(),
        )  # fmt: skip
    except Exception as err:  # of any kind: the exporter runs the module with other types of numbers
        raise ValueError(f"{type(module).__name__}: PyTorch cannot export it: {str(err).strip().splitlines()[0]}") from err
    checked = subprocess.run([PROGRAM, "operator", "check", file, "--json"], env=environment(), capture_output=True, text=True, check=False)
    if checked.returncode != 0:
        last = (checked.stderr.strip().splitlines() or ["it said nothing"])[-1]
        raise ValueError(f"{type(module).__name__}: {last.removeprefix('ddiff: ')}")
    report = json.loads(checked.stdout)
    return Operator(file, tuple(y.shape[1:]), linear, report["gradient"]["error"], report.get("adjoint"), torch.no_grad()(apply), folder)


def copied(module: Any) -> Any:
    """Returns a copy of a module. Generators of random numbers, which PyTorch cannot always copy, are those of the module."""
    import torch

    same = {id(v): v for part in module.modules() for v in vars(part).values() if isinstance(v, torch.Generator)}
    return copy.deepcopy(module, same)


def _batch(image: Any) -> Any:
    """Returns an image as a tensor (1, channels, height, width)."""
    import torch

    if isinstance(image, torch.Tensor):
        x = image.detach().float().cpu()
    else:
        x = torch.from_numpy(np.ascontiguousarray(np.asarray(image, "f4").transpose(2, 0, 1)))[None]
    if x.ndim != 4 or len(x) != 1:
        raise ValueError(f"the image has the shape {tuple(x.shape)}; give (height, width, 3), or a tensor of (1, 3, height, width)")
    return x
