"""A case: the settings of a run, its measurement, and the states after its first steps."""

from __future__ import annotations

import json
import pathlib
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
import torch
from ddiff_torch.random_inputs import picture
from torch import Tensor

from method_vectors.noise import KEY, SIDE, START, normal

STEPS, SIGMA = 10, 0.05


class Enough(Exception):
    """Ends a run after the recorded steps."""


@dataclass
class Case:
    """One folder."""

    name: str
    task: str
    settings: dict[str, object]
    y: Tensor | None = None
    mask: np.ndarray | None = None
    states: list[Tensor] = field(default_factory=list)
    recorded: list[int] | None = None  # the steps after which the states are, if not the first ones

    def record(self, x: Tensor) -> None:
        """Adds a state; the run ends after STEPS of them."""
        self.states.append(x.detach().clone())
        if len(self.states) == STEPS:
            raise Enough

    def write(self, outdir: pathlib.Path) -> None:
        folder = outdir / self.name
        folder.mkdir(parents=True, exist_ok=True)
        described = {"task": self.task, "key": KEY, "sigma": SIGMA, "settings": self.settings}
        if self.recorded:
            described["recorded"] = self.recorded
        (folder / "case.json").write_text(json.dumps(described, indent=1) + "\n")
        np.save(folder / "y.npy", self.y.detach().numpy())
        np.save(folder / "x.npy", torch.cat(self.states).numpy())
        if self.mask is not None:
            np.save(folder / "mask.npy", self.mask[0])
        print(f"{self.name}: {len(self.states)} steps, the last in [{self.states[-1].min():.3f}, {self.states[-1].max():.3f}]")


def truth() -> Tensor:
    """The picture that is measured, [1, 3, SIDE, SIDE]."""
    return torch.from_numpy(picture(np.random.default_rng(15), 1, SIDE, SIDE))


def start() -> Tensor:
    """The initial state, N(0, I)."""
    return normal((1, 3, SIDE, SIDE), START, 0)


def measure(forward: Callable[[Tensor], Tensor]) -> Tensor:
    """A measurement of the picture with noise."""
    y = forward(truth()).detach()
    return y + SIGMA * torch.from_numpy(np.random.default_rng(16).standard_normal(tuple(y.shape)).astype(np.float32))
