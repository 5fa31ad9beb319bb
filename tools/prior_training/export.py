"""Exports a trained network as an ONNX file with its model card and weights in half precision."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
import onnx
import torch
from onnx import TensorProto, helper, numpy_helper

from ddiff_torch.onnx_prior import UNet

OPSET = 16

TRAINING = (
    "tools/train_prior.py, {hours:.2f} h on {where}, {iterations} iterations; procedural dead leaves and {photographs} photographs "
    "in the public domain, CC0 or CC-BY (docs/prior.md and tools/prior_training/photographs.py name their authors)"
)


def card(hours: float, where: str, iterations: int, photographs: int, name: str = "leaves-and-photographs", more: str = "") -> dict[str, str]:
    """The model card's entries; more ends the sentence about the training."""
    return {
        "ddiff.card": "1",
        "ddiff.name": name,
        "ddiff.prediction": "sample",
        "ddiff.schedule": "linear:1e-4:0.02:1000",
        "ddiff.timestep": "int64 index 0..999",
        "ddiff.range": "-1..1",
        "ddiff.channels": "3",
        "ddiff.multiple_of": "8",
        "ddiff.learned_variance": "false",
        "ddiff.license": "CC-BY-4.0",
        "ddiff.training": TRAINING.format(hours=hours, where=where, iterations=iterations, photographs=photographs) + more,
    }


def export(network: UNet, path: Path, entries: dict[str, str]) -> int:
    """Writes the network and returns the file's size; raises ValueError on NaN weights."""
    for name, value in network.state_dict().items():
        if not torch.isfinite(value).all():
            raise ValueError(f"export: weight {name} is not finite")
    buffer = io.BytesIO()
    dynamic = {0: "batch", 2: "height", 3: "width"}
    torch.onnx.export(
        network,
        (torch.zeros(1, 3, 64, 64), torch.zeros(1, dtype=torch.int64)),
        buffer,
        input_names=["x", "t"],
        output_names=["z"],
        dynamic_axes={"x": dynamic, "t": {0: "batch"}, "z": dynamic},
        opset_version=OPSET,
        **({"dynamo": False} if "dynamo" in torch.onnx.export.__code__.co_varnames else {}),
    )
    model = onnx.load_from_string(buffer.getvalue())
    separate(model)
    halve(model)
    for key, value in entries.items():
        entry = model.metadata_props.add()
        entry.key, entry.value = key, value
    onnx.checker.check_model(model)
    data = model.SerializeToString()
    path.write_bytes(data)
    return len(data)


def separate(model: onnx.ModelProto) -> None:
    """Restores a separate constant for each weight: the exporter merges equal weights."""
    shared = {i.name: i for i in model.graph.initializer}
    nodes = []
    for node in model.graph.node:
        if node.op_type == "Identity" and node.input[0] in shared:
            copy = model.graph.initializer.add()
            copy.CopyFrom(shared[node.input[0]])
            copy.name = node.output[0]
        else:
            nodes.append(node)
    del model.graph.node[:]
    model.graph.node.extend(nodes)


def halve(model: onnx.ModelProto) -> None:
    """Stores matrices and kernels as float16 constants NAME_fp16; a Cast to float32 produces NAME."""
    kept, casts = [], []
    for tensor in model.graph.initializer:
        if tensor.data_type == TensorProto.FLOAT and len(tensor.dims) in (2, 4):
            half = numpy_helper.to_array(tensor).astype(np.float16)
            kept.append(numpy_helper.from_array(half, tensor.name + "_fp16"))
            casts.append(helper.make_node("Cast", [tensor.name + "_fp16"], [tensor.name], to=TensorProto.FLOAT))
        else:
            kept.append(tensor)
    nodes = [*casts, *model.graph.node]
    del model.graph.initializer[:], model.graph.node[:]
    model.graph.initializer.extend(kept)
    model.graph.node.extend(nodes)
