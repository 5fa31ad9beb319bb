"""A reader of PyTorch checkpoints that runs no code from the file.

A checkpoint is a pickle, and a pickle can name any function of any module to be called during
reading. This reader looks every name up in a short table and never imports other names. Names
of training frameworks become inert StandIns, because training checkpoints store the state of
callbacks with the weights; any other name is an error. torch.load is not used: its treatment
of pickles depends on the version.

There are two formats. The current format is a zip archive with PREFIX/data.pkl and one file
PREFIX/data/KEY per storage. The older format is a sequence of pickles: magic number, version,
information about the machine, the object, and the list of storage keys; then, for each
storage, the number of elements (eight bytes) and the elements.
"""

from __future__ import annotations

import io
import pickle
import struct
import zipfile
from collections import OrderedDict
from pathlib import Path
from typing import Any, BinaryIO

import torch
from torch import Tensor

from .errors import ExportError

# Modules that a training checkpoint may name.
TOLERATED = ("pytorch_lightning.", "lightning.", "lightning_fabric.", "omegaconf.", "numpy.")

MAGIC = 0x1950A86A20F9469CFC6C
VERSION = 1001

STORAGES = {
    "FloatStorage": torch.float32, "DoubleStorage": torch.float64, "HalfStorage": torch.float16, "BFloat16Storage": torch.bfloat16,
    "LongStorage": torch.int64, "IntStorage": torch.int32, "ShortStorage": torch.int16, "CharStorage": torch.int8,
    "ByteStorage": torch.uint8, "BoolStorage": torch.bool,
}  # fmt: skip


class Damaged(Exception):
    """The file is truncated or of another kind."""


class StandIn:
    """Replaces an object that is not built; stores its name."""

    name = "?"

    def __new__(cls, *args: Any, **kwargs: Any) -> StandIn:
        return object.__new__(cls)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        pass

    def __setstate__(self, state: Any) -> None:
        pass

    def __hash__(self) -> int:
        return id(self)

    def append(self, item: Any) -> None:
        """Ignores an item of a list-like object."""

    def extend(self, items: Any) -> None:
        """Ignores items of a list-like object."""

    def __setitem__(self, key: Any, value: Any) -> None:
        """Ignores an entry of a dictionary-like object."""


def _tensor(storage: Tensor, offset: int, size: tuple[int, ...], stride: tuple[int, ...], *rest: Any) -> Tensor:
    return torch.as_strided(storage, tuple(size), tuple(stride), offset)


def _parameter(value: Tensor, *rest: Any) -> Tensor:
    return value


ALLOWED: dict[tuple[str, str], Any] = {
    ("collections", "OrderedDict"): OrderedDict,
    ("torch._utils", "_rebuild_tensor"): _tensor,
    ("torch._utils", "_rebuild_tensor_v2"): _tensor,
    ("torch._utils", "_rebuild_parameter"): _parameter,
    ("torch", "Size"): torch.Size,
    **{("torch", name): dtype for name, dtype in STORAGES.items()},
    **{(module, kind.__name__): kind for module in ("builtins", "__builtin__") for kind in (set, list, dict, tuple)},
}


class Unpickler(pickle.Unpickler):
    """Looks every name up in ALLOWED; subclasses create the storages."""

    def __init__(self, file: BinaryIO) -> None:
        super().__init__(file, encoding="utf-8")
        self.storages: dict[str, Tensor] = {}

    def find_class(self, module: str, name: str) -> Any:
        if (module, name) in ALLOWED:
            return ALLOWED[module, name]
        if (module + ".").startswith(TOLERATED):
            return type("StandIn", (StandIn,), {"name": f"{module}.{name}"})
        raise ExportError(f"the file names {module}.{name}, which no file of weights needs; it was not run")

    def persistent_load(self, pid: Any) -> Tensor:
        if not isinstance(pid, tuple) or len(pid) < 5 or pid[0] != "storage" or not isinstance(pid[1], torch.dtype):
            raise Damaged("an entry is not a storage")
        if len(pid) > 5 and pid[5] is not None:
            raise Damaged("a view of a storage, which only very old versions wrote")
        key = str(pid[2])
        if key not in self.storages:
            self.storages[key] = self.make(key, pid[1], int(pid[4]))
        return self.storages[key]

    def make(self, key: str, dtype: torch.dtype, count: int) -> Tensor:
        """Creates the storage of a key as a flat tensor."""
        raise Damaged("a storage in a pickle that has none")


class _Archive(Unpickler):
    def __init__(self, archive: zipfile.ZipFile, prefix: str) -> None:
        super().__init__(io.BytesIO(archive.read(prefix + "data.pkl")))
        self.archive, self.prefix = archive, prefix

    def make(self, key: str, dtype: torch.dtype, count: int) -> Tensor:
        info = self.archive.getinfo(f"{self.prefix}data/{key}")
        size = count * _width(dtype)
        if info.file_size < size:
            raise Damaged(f"storage {key} has {info.file_size} of {size} bytes")
        with self.archive.open(info) as file:
            return _elements(file, dtype, count)


class _Older(Unpickler):
    def make(self, key: str, dtype: torch.dtype, count: int) -> Tensor:
        return torch.zeros(count, dtype=dtype)  # read_older fills it later


def _width(dtype: torch.dtype) -> int:
    return torch.empty(0, dtype=dtype).element_size()


def _elements(file: BinaryIO, dtype: torch.dtype, count: int) -> Tensor:
    """Reads a flat tensor without a second copy."""
    flat = torch.empty(count, dtype=dtype)
    view = memoryview(flat.view(torch.uint8).numpy() if count else b"")
    at = 0
    while at < len(view):
        got = file.readinto(view[at:])  # type: ignore[attr-defined]
        if not got:
            raise Damaged(f"the last {len(view) - at} bytes of a storage are missing")
        at += got
    return flat


def read(path: Path) -> Any:
    """Reads the object of a checkpoint. Raises Damaged, or ExportError for a forbidden name."""
    try:
        with path.open("rb") as file:
            if file.read(4) == b"PK\x03\x04":
                return _read_archive(path)
            file.seek(0)
            return read_older(file)
    except (ExportError, Damaged):
        raise
    except Exception as err:  # a damaged pickle can raise any exception
        raise Damaged((str(err) or type(err).__name__).splitlines()[0][:100]) from None


def _read_archive(path: Path) -> Any:
    with zipfile.ZipFile(path) as archive:
        names = archive.namelist()
        found = [name for name in names if name.endswith("/data.pkl")]
        if not found or any(name.endswith("/constants.pkl") for name in names):
            raise Damaged("a zip archive, but not a checkpoint; perhaps a TorchScript program")
        prefix = found[0][: -len("data.pkl")]
        if prefix + "byteorder" in names and archive.read(prefix + "byteorder") != b"little":
            raise Damaged("the numbers are big-endian")
        return _Archive(archive, prefix).load()


def read_older(file: BinaryIO) -> Any:
    """Reads the object of a checkpoint in the older format."""
    if Unpickler(file).load() != MAGIC or Unpickler(file).load() != VERSION:
        raise Damaged("not a checkpoint")
    Unpickler(file).load()
    main = _Older(file)
    found = main.load()
    for key in Unpickler(file).load():
        head = file.read(8)
        if len(head) < 8:
            raise Damaged("the storages are missing")
        storage = main.storages[str(key)]
        (count,) = struct.unpack("<q", head)
        if count != len(storage):
            raise Damaged(f"storage {key} has {count} elements instead of {len(storage)}")
        storage.copy_(_elements(file, storage.dtype, count))
    return found
