import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import ddiff

CODE = "from ddiff._program import environment as e; print(e().get('DDIFF_ONNXRUNTIME'), e().get('DDIFF_OPENVINO'), e().get('LD_LIBRARY_PATH'), sep='\\n')"


def found(folder, cwd="/", **variables):
    """Returns the libraries that the program gets where the package is installed in a folder."""
    env = {k: v for k, v in os.environ.items() if k not in ("DDIFF_ONNXRUNTIME", "DDIFF_OPENVINO", "LD_LIBRARY_PATH")}
    run = subprocess.run([sys.executable, "-c", CODE], env=env | {"PYTHONPATH": str(folder)} | variables, cwd=cwd, capture_output=True, text=True, check=True)
    return run.stdout.split("\n")[:3]


def install(folder):
    """Puts the package, and libraries of other wheels, into a folder."""
    (folder / "ddiff").mkdir(parents=True)
    (folder / "ddiff" / "__init__.py").touch()
    shutil.copy(Path(ddiff.__file__).parent / "_program.py", folder / "ddiff")
    return libraries(folder)


def libraries(folder):
    capi, vino = folder / "onnxruntime" / "capi", folder / "openvino" / "libs"
    for file in [capi.parent / "__init__.py", vino.parent / "__init__.py"]:
        file.parent.mkdir(parents=True)
        file.touch()
    for place in [capi, vino, folder / "nvidia" / "cu13" / "lib", folder / "nvidia" / "cudnn" / "lib"]:
        place.mkdir(parents=True)
    for file in [capi / "libonnxruntime.so.1.29.0", capi / "libonnxruntime.so.1.30.0", vino / "libopenvino_c.so.2641"]:
        file.touch()
    return capi, vino


@pytest.mark.skipif(sys.platform == "darwin", reason="the libraries of macOS have other names")
def test_libraries(tmp_path):
    """The library of onnxruntime-gpu comes before that of onnxruntime, which is in the same folder, and NVIDIA's are on the loader's path."""
    capi, vino = install(tmp_path)
    nvidia = f"{tmp_path}/nvidia/cu13/lib:{tmp_path}/nvidia/cudnn/lib"
    assert found(tmp_path) == [str(capi / "libonnxruntime.so.1.30.0"), str(vino / "libopenvino_c.so.2641"), nvidia]
    described = tmp_path / "onnxruntime_gpu-1.29.0.dist-info" / "METADATA"
    described.parent.mkdir()
    described.write_text("Metadata-Version: 2.1\nName: onnxruntime-gpu\nVersion: 1.29.0\n")
    assert found(tmp_path)[0] == str(capi / "libonnxruntime.so.1.29.0")
    assert found(tmp_path, DDIFF_ONNXRUNTIME="/mine.so", LD_LIBRARY_PATH="/lib")[::2] == ["/mine.so", nvidia + ":/lib"]


def test_attack_working_directory(tmp_path):
    """No library comes from the working directory, nor from a folder that only PYTHONPATH names, whatever packages they look like."""
    install(tmp_path / "site")
    want = found(tmp_path / "site")
    for folder in "cloned", "other":
        libraries(tmp_path / folder)
        (tmp_path / folder / "onnxruntime_gpu-1.29.0.dist-info").mkdir()
        (tmp_path / folder / "onnxruntime_gpu-1.29.0.dist-info" / "METADATA").write_text("Metadata-Version: 2.1\nName: onnxruntime-gpu\nVersion: 1.29.0\n")
    assert found(f"{tmp_path}/other{os.pathsep}{tmp_path}/site", cwd=tmp_path / "cloned") == want
    for file in (tmp_path / "site").rglob("lib*"):
        file.unlink() if file.is_file() else None
    shutil.rmtree(tmp_path / "site" / "nvidia")
    assert str(tmp_path) not in "".join(found(tmp_path / "site", cwd=tmp_path / "cloned"))
