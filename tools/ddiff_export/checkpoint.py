"""Reading files of weights: PyTorch checkpoints and safetensors, and fitting them to modules."""

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

# Where training programs keep the weights of a checkpoint that holds more.
WRAPPERS = ("state_dict", "params_ema", "params", "model")

SAFETENSORS = {
    "F64": torch.float64, "F32": torch.float32, "F16": torch.float16, "BF16": torch.bfloat16,
    "I64": torch.int64, "I32": torch.int32, "I16": torch.int16, "I8": torch.int8, "U8": torch.uint8,
    "BOOL": torch.bool,
}  # fmt: skip


def read(path: str | Path) -> State:
    """The named tensors of a file, on the CPU.

    A checkpoint of a training program is searched for its state dict. Raises ExportError for
    a file that is missing, cut short, of another kind, or that asks for code to be run.
    """
    path = Path(path)
    if not path.is_file():
        raise ExportError(f"{path}: there is no such file")
    if path.suffix == ".safetensors":
        state = read_safetensors(path)
    else:
        state = _weights(path, _unpickle(path))
    if not state:
        raise ExportError(f"{path}: it holds no tensors")
    prefix = "module."  # nn.DataParallel puts it before every name
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
        raise ExportError(f"{path}: cut short, or no PyTorch checkpoint ({size} bytes): {err}; fetch it again") from None


def _weights(path: Path, found: Any) -> State:
    """The state dict of what was unpickled."""
    for key in WRAPPERS:
        if isinstance(found, Mapping) and isinstance(found.get(key), Mapping):
            found = found[key]
            break
    if not isinstance(found, Mapping):
        raise ExportError(f"{path}: no state dict: it holds a {type(found).__name__}")
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
            raise ExportError(f"{path}: cut short, or no safetensors file ({size} bytes); fetch it again")
        try:
            header = json.loads(file.read(length))
        except ValueError:
            raise ExportError(f"{path}: no safetensors file: its header is no JSON") from None
        header.pop("__metadata__", None)
        state: State = {}
        for name, entry in header.items():
            begin, end = entry["data_offsets"]
            if 8 + length + end > size:
                raise ExportError(f"{path}: cut short: {name} ends at byte {8 + length + end} of {size}; fetch it again")
            if entry["dtype"] not in SAFETENSORS:
                raise ExportError(f"{path}: {name} has elements of type {entry['dtype']}, which is not read")
            file.seek(8 + length + begin)
            raw = bytearray(file.read(end - begin))
            value = torch.frombuffer(raw, dtype=SAFETENSORS[entry["dtype"]]) if raw else torch.empty(0)
            state[name] = value.reshape(entry["shape"])
    return state


def write_safetensors(state: Mapping[str, Tensor], path: Path) -> None:
    """Writes float32 tensors in the same format."""
    header, blobs, at = {}, [], 0
    for name, value in state.items():
        raw = value.detach().float().contiguous().numpy().tobytes()
        header[name] = {"dtype": "F32", "shape": list(value.shape), "data_offsets": [at, at + len(raw)]}
        blobs.append(raw)
        at += len(raw)
    text = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + b"".join(blobs))


def part(state: Mapping[str, Tensor], prefix: str) -> State:
    """The entries below a prefix, without it."""
    return {name[len(prefix) :]: value for name, value in state.items() if name.startswith(prefix)}


@contextlib.contextmanager
def without_init() -> Iterator[None]:
    """Modules that are made inside get uninitialised memory: no time, and no pages, are spent
    on values that a checkpoint will replace."""
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
    """Puts the tensors into the module, as float32, without copying those that are.

    Names and shapes must agree; names that begin with one of ignore may be left over. Raises
    ExportError that names the first missing, unexpected or misshapen one and counts them, and
    the first that is not finite.
    """
    own = dict(module.named_parameters()) | {n: b for n, b in module.named_buffers() if n in module.state_dict()}
    missing = [name for name in own if name not in state]
    extra = [name for name in state if name not in own and not name.startswith(ignore)]
    if missing or extra:
        parts = [f"{len(names)} {what} (first: {names[0]})" for names, what in ((missing, "missing"), (extra, "unexpected")) if names]
        raise ExportError(
            f"{source}: another architecture than the one chosen: of {len(own)} names, {', '.join(parts)}; choose another --config"
        )
    wrong = [name for name, value in own.items() if tuple(state[name].shape) != tuple(value.shape)]
    if wrong:
        first = wrong[0]
        raise ExportError(
            f"{source}: another architecture than the one chosen: {len(wrong)} of {len(own)} shapes differ"
            f" (first: {first} is {list(state[first].shape)}, expected {list(own[first].shape)}); choose another --config"
        )
    for name, value in own.items():
        given = state[name]
        if given.is_floating_point() and not bool(torch.isfinite(given).all()):
            count = int((~torch.isfinite(given)).sum())
            raise ExportError(f"{source}: {name} has {count} values that are NaN or infinite; fetch the file again")
        value.data = given.to(value.dtype)
    return module.eval().requires_grad_(False)
