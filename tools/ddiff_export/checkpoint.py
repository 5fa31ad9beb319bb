"""Reads files of weights (PyTorch checkpoints and safetensors) and loads them into modules."""

from __future__ import annotations

import contextlib
import json
import struct
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from . import pickles
from .errors import ExportError

State = dict[str, Tensor]

# Keys under which training checkpoints store the weights.
WRAPPERS = ("state_dict", "params_ema", "params", "ema_model", "ema", "model")

SAFETENSORS = {
    "F64": torch.float64, "F32": torch.float32, "F16": torch.float16, "BF16": torch.bfloat16,
    "I64": torch.int64, "I32": torch.int32, "I16": torch.int16, "I8": torch.int8, "U8": torch.uint8,
    "BOOL": torch.bool,
}  # fmt: skip


def read(path: str | Path) -> State:
    """The named tensors of a file, on the CPU.

    Finds the state dict of a training checkpoint. Raises ExportError if the file is missing,
    truncated, of another kind, or would run code.
    """
    path = Path(path)
    if not path.is_file():
        raise ExportError(f"{path}: no such file")
    if path.suffix == ".safetensors":
        state = read_safetensors(path)
    else:
        state = _weights(path, _unpickle(path))
    if not state:
        raise ExportError(f"{path}: the file holds no tensors")
    prefix = "module."  # nn.DataParallel adds it to every name
    if all(name.startswith(prefix) for name in state):
        state = {name[len(prefix) :]: value for name, value in state.items()}
    return state


def _unpickle(path: Path) -> Any:
    try:
        return pickles.read(path)
    except ExportError as err:
        raise ExportError(f"{path}: refused: {err}") from None
    except pickles.Damaged as err:
        size = path.stat().st_size
        raise ExportError(f"{path}: truncated, or not a PyTorch checkpoint ({size} bytes): {err}; download the file again") from None


def _weights(path: Path, found: Any) -> State:
    """The state dict of an unpickled object."""
    for key in WRAPPERS:
        if isinstance(found, Mapping) and isinstance(found.get(key), Mapping):
            found = found[key]
            break
    if not isinstance(found, Mapping):
        raise ExportError(f"{path}: no state dict: the file holds a {type(found).__name__}")
    state: State = {}
    for name, value in found.items():
        if isinstance(value, pickles.StandIn):
            raise ExportError(f"{path}: refused: entry {name} is a {value.name}, not a tensor")
        if isinstance(value, Tensor) and isinstance(name, str):
            state[name] = value.detach()
    return state


def read_safetensors(path: Path) -> State:
    """The tensors of a .safetensors file: a JSON header with offsets, then the values."""
    size = path.stat().st_size
    with path.open("rb") as file:
        head = file.read(8)
        length = struct.unpack("<Q", head)[0] if len(head) == 8 else 0
        if not 2 <= length <= min(size - 8, 100 << 20):
            raise ExportError(f"{path}: truncated, or not a safetensors file ({size} bytes); download the file again")
        try:
            header = json.loads(file.read(length))
        except ValueError:
            raise ExportError(f"{path}: not a safetensors file: its header is not JSON") from None
        header.pop("__metadata__", None)
        state: State = {}
        for name, entry in header.items():
            begin, end = entry["data_offsets"]
            if 8 + length + end > size:
                raise ExportError(f"{path}: truncated: {name} ends at byte {8 + length + end} of {size}; download the file again")
            if entry["dtype"] not in SAFETENSORS:
                raise ExportError(f"{path}: {name} has the unsupported element type {entry['dtype']}")
            file.seek(8 + length + begin)
            raw = bytearray(file.read(end - begin))
            value = torch.frombuffer(raw, dtype=SAFETENSORS[entry["dtype"]]) if raw else torch.empty(0)
            state[name] = value.reshape(entry["shape"])
    return state


def write_safetensors(state: Mapping[str, Tensor], path: Path) -> None:
    """Writes tensors as float32 to a .safetensors file."""
    header, blobs, at = {}, [], 0
    for name, value in state.items():
        raw = value.detach().float().contiguous().numpy().tobytes()
        header[name] = {"dtype": "F32", "shape": list(value.shape), "data_offsets": [at, at + len(raw)]}
        blobs.append(raw)
        at += len(raw)
    text = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + b"".join(blobs))


def part(state: Mapping[str, Tensor], prefix: str) -> State:
    """The entries whose names start with prefix, without the prefix."""
    return {name[len(prefix) :]: value for name, value in state.items() if name.startswith(prefix)}


@contextlib.contextmanager
def without_init() -> Iterator[None]:
    """Modules built in this context have uninitialised weights, which saves time and memory:
    a checkpoint replaces the values."""
    names = [n for n in dir(nn.init) if n.endswith("_") and not n.startswith("_")]
    saved = {n: getattr(nn.init, n) for n in names}
    try:
        for n in names:
            setattr(nn.init, n, lambda tensor, *args, **kwargs: tensor)
        yield
    finally:
        for n, f in saved.items():
            setattr(nn.init, n, f)


def fit(module: nn.Module, state: Mapping[str, Tensor], source: str | Path, ignore: tuple[str, ...] = ()) -> nn.Module:
    """Loads the tensors into the module as float32; float32 tensors are not copied.

    Names and shapes must agree; unused names may start with a prefix of ignore. Raises
    ExportError with the count and the first name of missing, unexpected or misshapen tensors,
    or with the first tensor that is not finite.
    """
    own = dict(module.named_parameters()) | {n: b for n, b in module.named_buffers() if n in module.state_dict()}
    missing = [name for name in own if name not in state]
    extra = [name for name in state if name not in own and not name.startswith(ignore)]
    if missing or extra:
        parts = [f"{len(names)} {what} (first: {names[0]})" for names, what in ((missing, "missing"), (extra, "unexpected")) if names]
        raise ExportError(
            f"{source}: another architecture than --config: of {len(own)} names, {', '.join(parts)}; choose another --config"
        )
    wrong = [name for name, value in own.items() if tuple(state[name].shape) != tuple(value.shape)]
    if wrong:
        first = wrong[0]
        raise ExportError(
            f"{source}: another architecture than --config: {len(wrong)} of {len(own)} shapes differ"
            f" (first: {first} is {list(state[first].shape)}, expected {list(own[first].shape)}); choose another --config"
        )
    for name, value in own.items():
        given = state[name]
        if given.is_floating_point() and not bool(torch.isfinite(given).all()):
            count = int((~torch.isfinite(given)).sum())
            raise ExportError(f"{source}: {name} has {count} values that are NaN or infinite; download the file again")
        value.data = given.to(value.dtype)
    return module.eval().requires_grad_(False)
