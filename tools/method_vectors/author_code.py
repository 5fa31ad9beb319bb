"""What the authors' codes run with: the network, the modules that they import, and the noise."""

from __future__ import annotations

import contextlib
import pathlib
import sys
import types
from collections.abc import Callable, Iterator
from unittest import mock

import numpy as np
import torch
import torch.nn.functional as F
from ddiff_torch import onnx_prior, schedule, wiener
from torch import Tensor, nn

PRIOR = pathlib.Path(__file__).parents[2] / "internal/restore/prior/bundled/prior.onnx"


def bundled() -> onnx_prior.UNet:
    """The bundled prior, which can be differentiated."""

    def pad(x: Tensor, rows: int, columns: int) -> Tensor:
        return F.pad(x, (columns, columns, rows, rows), mode="replicate")

    wiener._RepeatEdges.apply = staticmethod(pad)
    return onnx_prior.load(PRIOR)


class Unconditional(nn.Module):
    """The bundled prior as guided diffusion calls it."""

    def __init__(self) -> None:
        super().__init__()
        self.network = bundled()

    def forward(self, x: Tensor, t: Tensor) -> Tensor:
        eps = self.network.noise(x, t)
        return torch.cat([eps, -torch.ones_like(eps)], 1)

    def load_state_dict(self, *_: object) -> None:
        pass


class Anything(types.ModuleType):
    """A module whose names are all classes that accept any call."""

    __path__: list[str] = []

    def __getattr__(self, name: str) -> object:
        if name.startswith("__"):
            raise AttributeError(name)
        return mock.MagicMock()


@contextlib.contextmanager
def environment(folder: str, *empty: str, **modules: types.ModuleType) -> Iterator[None]:
    """Imports come from folder; the named modules are empty or given."""
    stand_ins = {name: Anything(name) for name in empty} | modules
    with mock.patch.dict(sys.modules, stand_ins), mock.patch.object(sys, "path", [folder, *sys.path]):
        yield


def returns(values: Iterator[Tensor]) -> Callable[..., Tensor]:
    """A replacement of torch.randn_like that returns the next of values."""

    def like(x: Tensor, **_: object) -> Tensor:
        v = next(values)
        if v.shape != x.shape:
            raise ValueError(f"noise of shape {tuple(v.shape)} for {tuple(x.shape)}")
        return v

    return like


class Progress:
    """A progress bar that shows nothing."""

    def __init__(self, items: object, **_: object) -> None:
        self.items = items

    def __iter__(self) -> Iterator[object]:
        return iter(self.items)

    def set_postfix(self, *_: object, **__: object) -> None:
        pass


def alpha_bar() -> Tensor:
    """The schedule as the codes of DDIM have it: entry t + 1 is that of time t, and entry 0 is 1."""
    return torch.tensor(np.concatenate([[1.0], schedule.alpha_bar()]), dtype=torch.float32)


def strided(steps: int) -> list[int]:
    return list(range(0, schedule.TRAIN_STEPS, schedule.TRAIN_STEPS // steps))
