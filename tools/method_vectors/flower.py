"""Steps of Flower, with the code of mehrsapo/Flower at 6b9eaca, whose network and operators are those of pnp_flow."""

from __future__ import annotations

import importlib
from collections.abc import Iterator

from torch import Tensor

from method_vectors.author_code import environment
from method_vectors.case import SIGMA, STEPS, Case, start
from method_vectors.noise import draw
from method_vectors.pnp_flow import EMPTY, Velocity, arguments, run, tasks


def flower(folder: str) -> Iterator[Case]:
    """The class FLOWER, without a draw around the minimum."""
    steps = STEPS + 1

    def noise() -> Iterator[Tensor]:
        yield start()
        yield from (draw(0, t) for t in reversed(range(steps)))

    with environment(folder, *EMPTY):
        code = importlib.import_module("pnpflow.methods.flower")
        for task, degradation, mask in tasks():
            case = Case(f"flower_{task}", task, {"method": "flower", "steps": steps, "noise_std": SIGMA}, mask=mask)
            args = arguments(method="flower", steps=steps, num_samples=1)
            yield run(case, code.FLOWER(Velocity(), "cpu", args), "model_forward", degradation, noise)
