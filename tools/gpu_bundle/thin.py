"""Zeroes the GPU code of other architectures in a library of CUDA kernels.

The library then compresses to a fraction and has its size and layout: the driver finds the code of its architecture by the headers of the entries in the
section .nv_fatbin, which stay, and reads no other code.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator

MAGIC = 0xBA55ED50  # of a group of entries
BINARY = 2  # kind of an entry; 1 is PTX, text that the driver compiles


def section(data: bytes, name: str) -> tuple[int, int]:
    """Offset and length of a section of a 64-bit ELF file. Raises ValueError without it."""
    if data[:4] != b"\x7fELF":
        raise ValueError("no ELF file")
    (headers,) = struct.unpack_from("<Q", data, 0x28)
    size, count, names = struct.unpack_from("<HHH", data, 0x3A)

    def header(i: int) -> tuple[int, int, int]:
        name, _, _, _, offset, length = struct.unpack_from("<IIQQQQ", data, headers + i * size)
        return name, offset, length

    texts = header(names)[1]
    for i in range(count):
        at, offset, length = header(i)
        if data[texts + at : data.index(b"\0", texts + at)].decode() == name:
            return offset, length
    raise ValueError(f"no section {name}: the library has no GPU code")


def entries(data: bytes) -> Iterator[tuple[int, int, int, int]]:
    """Offset and size of the code of each entry, its kind, and its architecture, such as 90 for compute capability 9.0."""
    at, length = section(data, ".nv_fatbin")
    end = at + length
    while at + 16 <= end:
        magic, _, header, size = struct.unpack_from("<IHHQ", data, at)
        if magic != MAGIC:
            at += 8
            continue
        at, stop = at + header, at + header + size
        while at < stop:
            kind, _, header, size = struct.unpack_from("<HHIQ", data, at)
            (architecture,) = struct.unpack_from("<I", data, at + 28)
            if header == 0 or size == 0 or at + header + size > stop:
                raise ValueError(f"the entry at {at:#x} has {header} and {size} bytes: an unknown form of GPU code")
            yield at + header, size, kind, architecture
            at += header + size


def thin(data: bytes, architecture: int) -> bytes:
    """The library with the code of one architecture. Raises ValueError if it has none."""
    out, kept = bytearray(data), 0
    known = set()
    for at, size, kind, arch in entries(data):
        known.add(arch)
        if kind == BINARY and arch == architecture:
            kept += size
        else:
            out[at : at + size] = bytes(size)
    if not kept:
        raise ValueError(f"the library has no code for {architecture}; it has {', '.join(map(str, sorted(known)))}")
    return bytes(out)
