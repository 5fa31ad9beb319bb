"""The program in the wheel, and the libraries of other wheels that it loads."""

from __future__ import annotations

import os
import re
import sys
from importlib import metadata, util
from pathlib import Path

PROGRAM = Path(__file__).parent / "bin" / "ddiff"


def environment() -> dict[str, str]:
    """Returns the environment of the program: that of this process, with the libraries of `onnxruntime` or `onnxruntime-gpu`,
    `openvino` and NVIDIA's packages that pip installed. Variables that are set stay."""
    env = dict(os.environ)
    if (library := _onnxruntime()) is not None:
        env.setdefault("DDIFF_ONNXRUNTIME", str(library))
    if (vino := _newest("openvino", "libs/libopenvino_c.so*")) is not None:
        env.setdefault("DDIFF_OPENVINO", str(vino))
    if (nvidia := _folder("nvidia")) is not None:
        folders = [str(p) for p in sorted(nvidia.glob("*/lib"))] + [p for p in [env.get("LD_LIBRARY_PATH")] if p]
        env["LD_LIBRARY_PATH"] = os.pathsep.join(folders)
    return env


def _onnxruntime() -> Path | None:
    try:  # Both packages have the same folder, and libraries that are named after their versions.
        return _newest("onnxruntime", f"capi/libonnxruntime.so.{metadata.version('onnxruntime-gpu')}")
    except metadata.PackageNotFoundError:
        return _newest("onnxruntime", "capi/libonnxruntime.*.dylib" if sys.platform == "darwin" else "capi/libonnxruntime.so.*")


def _folder(package: str) -> Path | None:
    spec = util.find_spec(package)
    places = list(spec.submodule_search_locations or []) if spec else []
    return Path(places[0]) if places else None


def _newest(package: str, pattern: str) -> Path | None:
    folder = _folder(package)
    found = list(folder.glob(pattern)) if folder else []
    return max(found, key=lambda p: [int(n) for n in re.findall(r"\d+", p.name)], default=None)


def main() -> None:
    """Is the command `ddiff`."""
    os.execve(PROGRAM, ["ddiff", *sys.argv[1:]], environment())
