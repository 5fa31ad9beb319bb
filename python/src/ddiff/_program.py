"""The program in the wheel, and the libraries of other wheels that it loads."""

from __future__ import annotations

import os
import re
import shlex
import site
import sys
from importlib import metadata
from pathlib import Path

PROGRAM = Path(__file__).parent / "bin" / "ddiff"


def environment() -> dict[str, str]:
    """Returns the environment of the program: that of this process, with the libraries of `onnxruntime` or `onnxruntime-gpu`,
    `openvino` and NVIDIA's packages where pip installs. Variables that are set stay."""
    env = dict(os.environ)
    if (library := _onnxruntime()) is not None:
        env.setdefault("DDIFF_ONNXRUNTIME", str(library))
    if (vino := _newest("openvino/libs/libopenvino_c.so*")) is not None:
        env.setdefault("DDIFF_OPENVINO", str(vino))
    folders = [str(p) for p in sorted(_found("nvidia/*/lib"))]
    if folders:
        env["LD_LIBRARY_PATH"] = os.pathsep.join(folders + [p for p in [env.get("LD_LIBRARY_PATH")] if p])
    return env


def _places() -> list[Path]:
    """Returns the folders into which pip installs. sys.path has others too: in a notebook the working directory, whose files may be anybody's."""
    places = [str(Path(__file__).parent.parent), *site.getsitepackages()]
    if site.ENABLE_USER_SITE:
        places.append(site.getusersitepackages())
    return [Path(p) for p in dict.fromkeys(places) if os.path.isabs(p)]


def _found(pattern: str) -> list[Path]:
    """Returns the files that match in the first place that has any."""
    return next((found for place in _places() if (found := list(place.glob(pattern)))), [])


def _newest(pattern: str) -> Path | None:
    return max(_found(pattern), key=lambda p: [int(n) for n in re.findall(r"\d+", p.name)], default=None)


def _onnxruntime() -> Path | None:
    # Both packages have the same folder, and libraries that are named after their versions.
    for gpu in metadata.distributions(name="onnxruntime-gpu", path=[str(p) for p in _places()]):
        return _newest(f"onnxruntime/capi/libonnxruntime.so.{gpu.version}")
    return _newest("onnxruntime/capi/" + ("libonnxruntime.*.dylib" if sys.platform == "darwin" else "libonnxruntime.so.*"))


def install(extra: str) -> str:
    """Returns the remedy where the packages of an extra are missing. It names them: where the wheel came from is unknown."""
    try:
        required = metadata.requires("ddiff-restore") or []
    except metadata.PackageNotFoundError:  # a checkout on sys.path
        return f"install the packages of the extra {extra} in python/pyproject.toml"
    wanted = [r.partition(";")[0].strip() for r in required if re.search(rf"extra == .{extra}\b", r)]
    return f"run: pip install {shlex.join(wanted)}"


def main() -> None:
    """Is the command `ddiff`."""
    os.execve(PROGRAM, ["ddiff", *sys.argv[1:]], environment())
