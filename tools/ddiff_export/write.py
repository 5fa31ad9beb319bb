"""Writes one network: graph, card, precision, files and reference vectors."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from onnx import ModelProto

from . import card, half, onnx_file
from .onnx_file import Dims

if TYPE_CHECKING:
    from torch import Tensor, nn


@dataclass(frozen=True)
class Options:
    """Options of all commands."""

    half: bool = False
    external: bool = False
    vectors: bool = True
    seed: int = 0

    @property
    def precision(self) -> str:
        return "float16" if self.half else "float32"


@dataclass(frozen=True)
class Ports:
    """Inputs and outputs of a file: dimensions by name, in the order of the module's arguments."""

    inputs: Mapping[str, Dims]
    outputs: Mapping[str, Dims]


def module(
    network: nn.Module,
    ports: Ports,
    example: Callable[[int], Mapping[str, Tensor]],
    label: Callable[[ModelProto], None],
    out: Path,
    options: Options,
) -> list[Path]:
    """Writes a module. example(0) returns the inputs for tracing, example(1) inputs of another
    shape for the vectors; label adds the metadata to the graph."""
    import torch

    from . import vectors

    network.eval()
    given = example(0)
    model = onnx_file.trace(network, {name: (given[name], dims) for name, dims in ports.inputs.items()}, ports.outputs)
    del given
    label(model)
    files = model_file(model, out, options)
    if options.vectors:
        inputs = example(1)
        with torch.no_grad():
            results = network(*(inputs[name] for name in ports.inputs))
        vectors.write(files[0], options.precision, inputs, {next(iter(ports.outputs)): results})
    return files


def model_file(model: ModelProto, out: Path, options: Options) -> list[Path]:
    """Writes a graph with the precision and storage of the options."""
    if options.half:
        model = copy.deepcopy(model) if onnx_file.size(model) < 1 << 28 else model
        half.convert(model)
    return onnx_file.save(model, out, options.external)


TIME: Dims = ("batch",)


def prior(
    network: nn.Module, described: card.Card, out: Path, options: Options, size: int = 64, steps: int = 1000,
    times: tuple[float, float] | None = None,
) -> list[Path]:
    """Writes a module (x, t) as a prior. size is the minimum side of the images of the vectors;
    they are wider than high, so that a fixed shape is detected. times are two of a continuous
    network, which replace time indices."""
    import torch

    channels, m = described.channels, described.multiple_of
    image: Dims = ("batch", channels, "height", "width")
    side = max(m, -(-size // m) * m)

    def example(which: int) -> Mapping[str, Tensor]:
        generator = torch.Generator().manual_seed(options.seed + which)
        shape = (1 + which, channels, side, side + which * m)
        t = torch.linspace(*times, 1 + which) if times else torch.linspace(0.01 * steps, 0.9 * steps, 1 + which).long()
        return {"x": torch.randn(shape, generator=generator), "t": t}

    output = "eps" if described.prediction == "epsilon" else described.prediction.split(":")[0]
    ports = Ports({"x": image, "t": TIME}, {output: image})
    return module(network, ports, example, lambda model: card.write(model, described), out, options)
