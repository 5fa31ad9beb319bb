"""Operators of one's own: PyTorch modules as ONNX files, and the bridge to DeepInverse."""

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
from ._session import Session, restore

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
    module = copy.deepcopy(module).cpu().eval()  # what is exported stays what it is
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


def reconstructor(session: Session | None = None, img_size: tuple[int, int, int] | None = None, **settings: Any) -> Any:
    """Returns a reconstructor f(y, physics) for DeepInverse: restorations of measurements (N, ...) as a tensor (N, 3, height, width).

    session: default: that of ddiff.restore. img_size: (3, height, width), where the physics is not linear.
    settings: of Session.restore, such as method or sigma, the noise of y. Default of sigma: that of the physics.
    """
    import torch

    try:
        from deepinv.models import Reconstructor as Base
    except ModuleNotFoundError:
        Base = torch.nn.Module

    class Reconstructor(Base):  # type: ignore[misc, valid-type]
        def forward(self, y: Any, physics: Any, **_: Any) -> Any:
            with torch.no_grad():
                x = torch.zeros(1, *img_size) if img_size else torch.zeros_like(physics.A_adjoint(y[:1])).cpu()
            A = operator(physics, x)  # whose tensors may have changed since the last call
            chosen = dict(settings)
            if "sigma" not in chosen and (sigma := getattr(physics.noise_model, "sigma", None)) is not None:
                chosen["sigma"] = float(sigma)
            call = session.restore if session else restore
            images = [r.image for r in call([one.detach().cpu().numpy() for one in y], operator=A, **chosen)]
            return torch.from_numpy(np.stack(images).transpose(0, 3, 1, 2).copy()).to(y.device)

    return Reconstructor()


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
