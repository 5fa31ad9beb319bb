"""Names the platform of the wheel by the program in it."""

import re
from pathlib import Path

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

PROGRAM = Path(__file__).parent.parent / "bin" / "wheel" / "ddiff"
MACHINES = {62: "x86_64", 183: "aarch64"}  # of ELF files


class Platform(BuildHookInterface):
    def initialize(self, version: str, build_data: dict) -> None:
        program = PROGRAM.read_bytes()
        if program[:4] == b"\x7fELF":
            major, minor = max((int(a), int(b)) for a, b in re.findall(rb"GLIBC_(\d+)\.(\d+)", program))
            platform = f"manylinux_{major}_{minor}_{MACHINES[int.from_bytes(program[18:20], 'little')]}"
        elif program[:8] == b"\xcf\xfa\xed\xfe\x0c\0\0\1":  # Mach-O of arm64
            platform = "macosx_14_0_arm64"  # as ONNX Runtime's
        else:
            raise RuntimeError(f"{PROGRAM} is no program of Linux or macOS on arm64; run: make wheel")
        build_data["tag"] = f"py3-none-{platform}"
        build_data["pure_python"] = False
