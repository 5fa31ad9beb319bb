#!/usr/bin/env python3
"""Compiles the CUDA kernels of the program to PTX, without a GPU: the command behind `make kernels`.

    python3 tools/compile_kernels.py LIBNVRTC

PTX for compute capability 7.5, which the driver compiles for the card. The first line has the SHA-256 of kernels.cu, which a test compares.
"""

from __future__ import annotations

import ctypes
import hashlib
import sys
from pathlib import Path

FOLDER = Path(__file__).resolve().parents[1] / "internal/restore/onnx/onnxruntime"
OPTIONS = [b"--gpu-architecture=compute_75", b"--std=c++17", b"-default-device"]


def text(library: ctypes.CDLL, program: ctypes.c_void_p, kind: str) -> bytes:
    """The log or the PTX of a program."""
    size = ctypes.c_size_t()
    getattr(library, f"nvrtcGet{kind}Size")(program, ctypes.byref(size))
    buffer = ctypes.create_string_buffer(size.value)
    getattr(library, f"nvrtcGet{kind}")(program, buffer)
    return buffer.value


def main() -> int:
    library, program = ctypes.CDLL(sys.argv[1]), ctypes.c_void_p()
    source = (FOLDER / "kernels.cu").read_bytes()
    library.nvrtcCreateProgram(ctypes.byref(program), source, b"kernels.cu", 0, None, None)
    if library.nvrtcCompileProgram(program, len(OPTIONS), (ctypes.c_char_p * len(OPTIONS))(*OPTIONS)):
        sys.exit(f"compile_kernels: {text(library, program, 'ProgramLog').decode()}")
    digest = f"// kernels.cu {hashlib.sha256(source).hexdigest()}\n"
    (FOLDER / "kernels.ptx").write_bytes(digest.encode() + text(library, program, "PTX"))
    return 0


if __name__ == "__main__":
    sys.exit(main())
