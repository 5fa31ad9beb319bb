"""The bundle for a machine with a GPU and no network: the thinned library, and the scripts with the CPU as the device."""

from __future__ import annotations

import json
import os
import re
import struct
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest
from conftest import ENVIRONMENT, REPO
from gpu_bundle import thin

FOLDER = REPO / "tools/gpu_bundle"


def library(*codes: tuple[int, int, bytes]) -> bytes:
    """An ELF file whose section .nv_fatbin has two groups with an entry for each kind, architecture and code."""
    entries = b"".join(struct.pack("<HHIQ", kind, 1, 64, len(code)) + struct.pack("<12xI", arch).ljust(48, b"\xff") + code for kind, arch, code in codes)
    group = struct.pack("<IHHQ", thin.MAGIC, 1, 16, len(entries)) + entries
    fat = group + bytes(8) + group
    names = b"\0.nv_fatbin\0.shstrtab\0"
    sections = [struct.pack("<IIQQQQ24x", name, 1, 0, 0, offset, length) for name, offset, length in ((0, 0, 0), (1, 64, len(fat)), (12, 64 + len(fat), len(names)))]
    head = b"\x7fELF".ljust(0x28, b"\0") + struct.pack("<Q", 64 + len(fat) + len(names)) + bytes(10) + struct.pack("<HHH", 64, len(sections), 2)
    return head + fat + names + b"".join(sections)


def test_thin_keeps_the_code_of_one_architecture() -> None:
    old, new, text = b"o" * 24, b"n" * 40, b"p" * 16
    whole = library((2, 80, old), (2, 90, new), (1, 90, text))
    assert thin.thin(whole, 90) == library((2, 80, bytes(24)), (2, 90, new), (1, 90, bytes(16)))
    assert [(kind, arch) for _, _, kind, arch in thin.entries(whole)] == [(2, 80), (2, 90), (1, 90)] * 2


def test_thin_refuses_other_files() -> None:
    with pytest.raises(ValueError, match="no code for 100; it has 80, 90"):
        thin.thin(library((2, 80, b"o" * 8), (1, 90, b"p" * 8)), 100)
    with pytest.raises(ValueError, match="no ELF file"):
        thin.thin(b"text", 90)
    with pytest.raises(ValueError, match="an unknown form"):
        thin.thin(library((2, 80, b"")), 80)


@pytest.fixture(scope="module")
def packed(program: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The built program as the archive of a bundle, uncompressed: Python reads either form, and the bundle's other archive is compressed."""
    archive = tmp_path_factory.mktemp("packed") / "program.tar"
    with tarfile.open(archive, "w") as tar:
        tar.add(program, "ddiff")
    return archive


def bundle(folder: Path, packed: Path) -> dict[str, str]:
    """Makes a bundle with the built program and without a Python module, and returns the environment of its scripts."""
    for name in ("common.sh", "check.sh", "network.sh", "network.py"):
        (folder / name).write_bytes((FOLDER / name).read_bytes())
    (folder / "images").symlink_to(REPO / "examples/images")
    (folder / "ddiff_torch").symlink_to(REPO / "tools/ddiff_torch")
    (folder / "prior.onnx").symlink_to(REPO / "internal/restore/prior/bundled/prior.onnx")
    (folder / "program.tar.xz").symlink_to(packed)
    with tarfile.open(folder / "python.tar.xz", "w:xz") as tar:
        tar.add(folder / "common.sh", "empty")
    return {**os.environ, "WORK": str(folder / "work"), "OUT": str(folder / "out"), "PYTHON": sys.executable, "DEVICE": "cpu", "PRECISIONS": "float32",
            "BENCH": "--size 32 --steps 3 --items 2 --batch 2"}


def test_check_runs_doctor_and_bench(packed: Path, tmp_path: Path) -> None:
    ended = subprocess.run(["bash", tmp_path / "check.sh"], env=bundle(tmp_path, packed), capture_output=True, text=True)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert "ONNX Runtime" in (tmp_path / "out/doctor.log").read_text()
    assert re.search(r"super_resolution.* 2 ", (tmp_path / "out/bench.log").read_text())


def test_check_goes_on_after_a_precision_that_fails(packed: Path, tmp_path: Path) -> None:
    env = {**bundle(tmp_path, packed), "PRECISIONS": "float8 float32"}
    ended = subprocess.run(["bash", tmp_path / "check.sh"], env=env, capture_output=True, text=True)
    assert ended.returncode == 2, ended.stdout + ended.stderr
    assert re.search(r"super_resolution.* 2 ", (tmp_path / "out/bench.log").read_text())


def test_libraries_are_found_wherever_python_imports_from(packed: Path, tmp_path: Path) -> None:
    libraries = tmp_path / "packages/nvidia/cu13/lib"
    libraries.mkdir(parents=True)
    env = {**bundle(tmp_path, packed), "PYTHONPATH": str(tmp_path / "packages")}
    script = f'. {tmp_path}/common.sh; echo "$LD_LIBRARY_PATH"; echo "$PYTHONPATH"'
    found, imports = subprocess.run(["bash", "-c", script], env=env, capture_output=True, text=True, check=True).stdout.splitlines()
    assert str(libraries) in found.split(":") and str(tmp_path / "packages") in imports.split(":")


def test_network_compares_with_pytorch(packed: Path, tmp_path: Path) -> None:
    pytest.importorskip("onnxruntime", reason="make gpu-bundle-test installs it")
    env = bundle(tmp_path, packed)
    graphs = tmp_path / "graphs"
    graphs.mkdir()
    subprocess.run(["go", "test", "./internal/restore/solver", "-run", "^TestGraphs$", "-count=1"], check=True, cwd=REPO, stdout=subprocess.DEVNULL,
                   env={**ENVIRONMENT, "DDIFF_GRAPHS": str(graphs), "DDIFF_GRAPH_SIZES": "2x32"})
    subprocess.run(["bash", tmp_path / "network.sh", "--provider", "cpu", "--size", "32", "--batches", "2", "--calls", "3"], env=env, check=True)
    rows = json.loads((tmp_path / "out/network.json").read_text())
    assert [r["name"] for r in rows] == [
        "network float16", "network float32", "torch rest float32", "step phase retrieval float16", "step phase retrieval float32",
        "step super resolution float16", "step super resolution float32"]
    assert not [r for r in rows if "error" in r] and all(r["ms"] > 0 for r in rows)
    assert all(r["same"] and r["difference"] < (5e-3 if "float16" in r["name"] else 1e-5) for r in rows if "difference" in r)
