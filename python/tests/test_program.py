import os
import subprocess
import sys

CODE = "from ddiff._program import environment as e; print(e()['DDIFF_ONNXRUNTIME'], e().get('DDIFF_OPENVINO'), e().get('LD_LIBRARY_PATH'), sep='\\n')"


def found(folder, **variables):
    """Returns the libraries that the program gets in an environment with the packages of a folder."""
    env = {k: v for k, v in os.environ.items() if k not in ("DDIFF_ONNXRUNTIME", "DDIFF_OPENVINO", "LD_LIBRARY_PATH")}
    run = subprocess.run([sys.executable, "-c", CODE], env=env | {"PYTHONPATH": str(folder)} | variables, capture_output=True, text=True, check=True)
    return run.stdout.split("\n")[:3]


def test_libraries(tmp_path):
    """The library of onnxruntime-gpu comes before that of onnxruntime, which is in the same folder, and NVIDIA's are on the loader's path."""
    capi, vino = tmp_path / "onnxruntime" / "capi", tmp_path / "openvino" / "libs"
    for file in [capi.parent / "__init__.py", vino.parent / "__init__.py"]:
        file.parent.mkdir()
        file.touch()
    for folder in [capi, vino, tmp_path / "nvidia" / "cu13" / "lib", tmp_path / "nvidia" / "cudnn" / "lib"]:
        folder.mkdir(parents=True)
    for file in [capi / "libonnxruntime.so.1.29.0", capi / "libonnxruntime.so.1.30.0", vino / "libopenvino_c.so.2641"]:
        file.touch()
    nvidia = f"{tmp_path}/nvidia/cu13/lib:{tmp_path}/nvidia/cudnn/lib"
    assert found(tmp_path) == [str(capi / "libonnxruntime.so.1.30.0"), str(vino / "libopenvino_c.so.2641"), nvidia]
    described = tmp_path / "onnxruntime_gpu-1.29.0.dist-info" / "METADATA"
    described.parent.mkdir()
    described.write_text("Metadata-Version: 2.1\nName: onnxruntime-gpu\nVersion: 1.29.0\n")
    assert found(tmp_path)[0] == str(capi / "libonnxruntime.so.1.29.0")
    assert found(tmp_path, DDIFF_ONNXRUNTIME="/mine.so", LD_LIBRARY_PATH="/lib")[::2] == ["/mine.so", nvidia + ":/lib"]
