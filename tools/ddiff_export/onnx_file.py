"""Converts PyTorch modules to ONNX graphs; reads and writes ONNX files."""

from __future__ import annotations

import contextlib
import hashlib
import inspect
import io
import logging
import os
import re
import tempfile
import warnings
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import onnx
from onnx import ModelProto, TensorProto, helper

from .errors import ExportError

if TYPE_CHECKING:  # reading and writing files needs no PyTorch
    from torch import Tensor, nn

OPSET = 17
PAGE = 4096
LIMIT = (2 << 30) - (32 << 20)  # bytes of constants in one file; the rest of 2 GiB is for the graph
SMALL = 1024  # bytes; smaller constants stay in the graph
DIGEST = "ddiff.external."  # metadata key: DIGEST + name of the data file; value: its SHA-256

Dims = Sequence[int | str]  # a name for a free dimension
IMAGE: Dims = ("batch", 3, "height", "width")


def trace(module: nn.Module, inputs: Mapping[str, tuple[Tensor, Dims]], outputs: Mapping[str, Dims]) -> ModelProto:
    """Converts a module to a graph. inputs are example values with their dimensions, in the order
    of the module's arguments; outputs are the dimensions of its results."""
    import torch

    free = {name: _free(dims) for name, dims in outputs.items()} | {name: _free(dims) for name, (_, dims) in inputs.items()}
    options: dict = {
        "opset_version": OPSET, "input_names": list(inputs), "output_names": list(outputs),
        "dynamic_axes": {k: v for k, v in free.items() if v}, "do_constant_folding": True,
    }  # fmt: skip
    if "dynamo" in inspect.signature(torch.onnx.export).parameters:
        options["dynamo"] = False  # the exporter of all versions since 1.13
    values = tuple(value for value, _ in inputs.values())
    with tempfile.TemporaryDirectory() as folder, _quiet(), torch.no_grad():
        path = Path(folder, "model.onnx")
        torch.onnx.export(module, values, str(path), **options)
        model = onnx.load(str(path))
    for node in model.graph.node:
        node.ClearField("doc_string")
    _drop_identities(model)
    # Replace the exporter's meaningless names of free dimensions.
    del model.graph.value_info[:]
    dims = dict(outputs) | {name: dims for name, (_, dims) in inputs.items()}
    for port in [*model.graph.input, *model.graph.output]:
        kind = port.type.tensor_type.elem_type
        port.CopyFrom(helper.make_tensor_value_info(port.name, kind, list(dims[port.name])))
    model.producer_name, model.producer_version = "ddiff_export", ""
    model.graph.name = "model"
    return model


def _free(dims: Dims) -> dict[int, str]:
    """The free dimensions by axis, with names that the exporter accepts."""
    return {i: re.sub(r"\W", "_", d) for i, d in enumerate(dims) if isinstance(d, str)}


def _drop_identities(model: ModelProto) -> None:
    """Removes the Identity nodes that the exporter adds for equal weights."""
    graph, other = model.graph, {}
    results = {port.name for port in graph.output}
    kept = []
    for node in graph.node:
        for i, name in enumerate(node.input):
            node.input[i] = other.get(name, name)
        if node.op_type == "Identity" and node.output[0] not in results:
            other[node.output[0]] = node.input[0]
        else:
            kept.append(node)
    del graph.node[:]
    graph.node.extend(kept)


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Suppresses the exporter's warnings about constant shapes."""
    level = logging.root.manager.disable
    logging.disable(logging.WARNING)
    try:
        with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(level)


def metadata(model: ModelProto) -> dict[str, str]:
    """The file's key-value metadata."""
    return {entry.key: entry.value for entry in model.metadata_props}


def set_metadata(model: ModelProto, entries: Mapping[str, str]) -> None:
    """Replaces or adds entries."""
    helper.set_model_props(model, dict(sorted((metadata(model) | dict(entries)).items())))


def size(model: ModelProto) -> int:
    """Size of the constants in bytes."""
    return sum(len(t.raw_data) for t in model.graph.initializer)


def save(model: ModelProto, path: str | Path, external: bool = False) -> list[Path]:
    """Writes the model atomically and returns the files. The constants go to a second file if
    external is set or if they exceed LIMIT. Each constant of the second file starts on a page
    boundary; the metadata of the first file contains the digest of the second."""
    path = Path(path)
    for tensor in model.graph.initializer:
        if not tensor.HasField("raw_data") and tensor.data_type != TensorProto.STRING:
            tensor.CopyFrom(onnx.numpy_helper.from_array(onnx.numpy_helper.to_array(tensor), tensor.name))
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        if not external and size(model) <= LIMIT:
            _replace(path, [model.SerializeToString()])
            return [path]
        data = path.with_name(path.name + ".data")
        digest = _write_external(model, data)
        set_metadata(model, {DIGEST + data.name: digest})
        _replace(path, [model.SerializeToString()])
        return [path, data]
    except OSError as err:
        raise ExportError(f"{path}: cannot write the file: {err.strerror or err}") from None


def _write_external(model: ModelProto, data: Path) -> str:
    """Moves the large constants to the file and returns its digest."""
    hasher, at = hashlib.sha256(), 0

    def chunks() -> Iterator[bytes]:
        nonlocal at
        for tensor in model.graph.initializer:
            raw = tensor.raw_data
            if len(raw) < SMALL:
                continue
            padding = bytes(-at % PAGE)
            hasher.update(padding)
            yield padding
            at += len(padding)
            entries = {"location": data.name, "offset": str(at), "length": str(len(raw))}
            tensor.ClearField("raw_data")
            tensor.data_location = TensorProto.EXTERNAL
            del tensor.external_data[:]
            for key, value in entries.items():
                tensor.external_data.add(key=key, value=value)
            hasher.update(raw)
            yield raw
            at += len(raw)

    _replace(data, chunks())
    return hasher.hexdigest()


def _replace(path: Path, chunks: Sequence[bytes] | Iterator[bytes]) -> None:
    """Writes a temporary file in the same folder and renames it."""
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=".ddiff-")
    try:
        with os.fdopen(handle, "wb") as file:
            for chunk in chunks:
                file.write(chunk)
        os.chmod(name, 0o644)
        os.replace(name, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(name)
        raise


def open_model(path: str | Path) -> ModelProto:
    """Reads a model and its external data, and checks the digest of the data."""
    path = Path(path)
    try:
        model = onnx.load(str(path), load_external_data=False)
    except OSError as err:
        raise ExportError(f"{path}: {err.strerror or err}") from None
    except Exception:  # protobuf's DecodeError has no stable home
        raise ExportError(f"{path}: not an ONNX file, or truncated ({path.stat().st_size} bytes)") from None
    if not model.graph.node:
        raise ExportError(f"{path}: not an ONNX file: it has no graph")
    known = metadata(model)
    locations = {e.value for t in model.graph.initializer for e in t.external_data if e.key == "location"}
    for location in sorted(locations):
        data = path.with_name(location)
        if "/" in location or not data.is_file():
            raise ExportError(f"{path}: the data file {location} is missing; put it into the model's folder")
        want = known.get(DIGEST + location)
        if want and file_digest(data) != want:
            raise ExportError(f"{path}: the data file {location} was altered: its SHA-256 differs from the model's metadata")
    if locations:
        onnx.load_external_data_for_model(model, str(path.parent))
    return model


def file_digest(path: Path) -> str:
    """SHA-256 of a file, in hexadecimal."""
    hasher = hashlib.sha256()
    with path.open("rb") as file:
        for chunk in iter(lambda: file.read(1 << 20), b""):
            hasher.update(chunk)
    return hasher.hexdigest()
