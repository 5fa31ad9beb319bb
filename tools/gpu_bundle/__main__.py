"""Makes what a machine with an NVIDIA GPU and no network needs to check it: the command behind `make gpu-bundle`.

    python3 -m gpu_bundle --program bin/ddiff --out bin/gpu-bundle            # ONNX Runtime with code for compute capability 9.0 (H100, H200)
    python3 -m gpu_bundle --program bin/ddiff --out bin/gpu-bundle --arch all

There, from any folder: `bash bin/gpu-bundle/check.sh` runs doctor and bench, `bash bin/gpu-bundle/network.sh` times the network and steps beside PyTorch.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import hashlib
import json
import lzma
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from pathlib import Path

from .thin import thin

REPO = Path(__file__).resolve().parents[2]
UNUSED = ("transformers", "tools", "quantization", "datasets", "backend")  # folders of the Python module
CUDA = "libonnxruntime_providers_cuda.so"
SHARED = "libonnxruntime_providers_shared.so"
SIZES = "1x256 16x256 2x32"  # batches and sides of the graphs; the last is for tests on a CPU


def wheel(cache: Path) -> Path:
    """The wheel of ONNX Runtime for CUDA 13 that `ddiff runtime install` takes too, downloaded once."""
    pins = json.loads((REPO / "internal/restore/onnx/install/pinned.json").read_text())
    source = next(s for p in pins if p["ep"] == "cuda" for s in p["sources"] if s["client"] == "pip")
    file = cache / source["archive"]["name"]
    if not file.exists():
        subprocess.run(
            [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps", "--only-binary=:all:", "--python-version",
             file.name.split("-cp")[1].replace("3", "3.", 1), "--implementation", "cp", "--platform", source["platform"], "-d", str(cache), source["package"]],
            check=True)
    digest = "sha256:" + hashlib.sha256(file.read_bytes()).hexdigest()
    if digest != source["archive"]["digest"]:
        raise SystemExit(f"gpu-bundle: {file} has the digest {digest}, not {source['archive']['digest']}; remove it and try again")
    return file


def unpack(file: Path, into: Path, architecture: str) -> None:
    """Unpacks the Python module with the thinned provider into `into/python`, and the library of the program into `into/program`."""
    with zipfile.ZipFile(file) as z:
        for name in z.namelist():
            parts = name.split("/")
            if parts[0] == "onnxruntime" and parts[1] not in UNUSED and "tensorrt" not in name:
                z.extract(name, into / "python")
    capi = into / "python/onnxruntime/capi"
    (into / "program").mkdir()
    next(capi.glob("libonnxruntime.so.*")).rename(into / "program/libonnxruntime.so")  # the module does not need it
    if architecture != "all":
        (capi / CUDA).write_bytes(thin((capi / CUDA).read_bytes(), int(architecture)))


def pack(folder: Path, out: Path, preset: int) -> None:
    with tarfile.open(out, "w:xz", preset=preset) as tar:
        for path in sorted(folder.iterdir()):
            tar.add(path, path.name)


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter, prog="python3 -m gpu_bundle")
    parser.add_argument("--program", type=Path, required=True, help="the built program")
    parser.add_argument("--out", type=Path, required=True, help="folder of the bundle, which is replaced")
    parser.add_argument("--arch", default="90", help="compute capability of the GPU, such as 90 for 9.0, or all (default 90)")
    parser.add_argument("--cache", type=Path, default=REPO / ".cache/gpu-bundle", help="folder of the downloaded wheel")
    o = parser.parse_args(arguments)
    o.cache.mkdir(parents=True, exist_ok=True)
    shutil.rmtree(o.out, ignore_errors=True)
    (o.out / "graphs").mkdir(parents=True)
    with tempfile.TemporaryDirectory() as temporary:
        work = Path(temporary)
        try:
            unpack(wheel(o.cache), work, o.arch)
        except ValueError as err:
            raise SystemExit(f"gpu-bundle: {CUDA}: {err}") from None
        subprocess.run(["strip", "-o", work / "program/ddiff", o.program], check=True)
        with concurrent.futures.ProcessPoolExecutor() as pool:
            packing = [pool.submit(pack, work / "python", o.out / "python.tar.xz", 9 | lzma.PRESET_EXTREME),
                       pool.submit(pack, work / "program", o.out / "program.tar.xz", 6)]
            subprocess.run(["go", "test", "./internal/restore/solver", "-run", "^TestGraphs$", "-count=1"], check=True, cwd=REPO, stdout=subprocess.DEVNULL,
                           env={**os.environ, "DDIFF_GRAPHS": str((o.out / "graphs").resolve()), "DDIFF_GRAPH_SIZES": SIZES})
            for p in packing:
                p.result()
    shutil.copytree(REPO / "examples/images", o.out / "images")
    shutil.copytree(REPO / "tools/ddiff_torch", o.out / "ddiff_torch", ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("README.md", "network.py", "network.sh", "check.sh", "common.sh"):
        shutil.copy(Path(__file__).with_name(name), o.out)
    shutil.copy(REPO / "internal/restore/prior/bundled/prior.onnx", o.out)
    for name in ("python.tar.xz", "program.tar.xz"):
        print(f"{o.out / name}: {(o.out / name).stat().st_size / 1e6:.1f} MB")
    whole = sum(p.stat().st_size for p in o.out.rglob("*") if p.is_file())
    print(f"{o.out}: {whole / 1e6:.1f} MB; there: bash {o.out.name}/check.sh, bash {o.out.name}/network.sh")
    return 0


if __name__ == "__main__":
    sys.exit(main())
