"""The check of a device, with the CPU as the device and without one."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

import gpu_check
import pytest

TINY = ["--size", "32", "--steps", "2", "--batches", "1,2", "--tasks", "super_resolution,phase_retrieval", "--precisions", "float32"]


def test_the_cpu_agrees_with_itself(program: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert gpu_check.main(["--program", program, "--device", "cpu", "--out", str(tmp_path), *TINY]) == 0
    assert re.search(r"^device=cpu float32_psnr=80\.0 ms_b1=\d+\.\d+ ms_b2=\d+\.\d+$", capsys.readouterr().out, re.MULTILINE)
    report = json.loads((tmp_path / "gpu-check.json").read_text())
    assert report["float32"]["psnr_to_cpu"] == {"super_resolution": 80, "phase_retrieval": 80}
    assert report["process"]["drain_exit"] == 130 and all(s["ms_per_step"] > 0 and s["memory_mib"] > 0 for s in report["speed"])


def test_a_missing_device_is_named(program: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert gpu_check.main(["--program", program, "--device", "cuda:7", "--out", str(tmp_path), *TINY]) == 8
    said = capsys.readouterr().out.splitlines()
    assert said[-1] == "gpu=absent" and ("cuda" in said[0].lower() or "ONNX Runtime" in said[0])


def test_other_pictures_fail(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    stand_in = tmp_path / "ddiff"  # a device that restores grey 3 levels too bright
    stand_in.write_text(f'#!{sys.executable}' + '''
import json, pathlib, sys, time
from PIL import Image
def value(name, default="1"):
    return sys.argv[sys.argv.index(name) + 1] if name in sys.argv else default
out, level = pathlib.Path(value("--out")), 103 if value("--device") == "webgpu" else 100
for run in range(6 * int(value("--runs"))):
    item = out / "items" / f"{value('--task')}{run}"
    item.mkdir(parents=True, exist_ok=True)
    Image.new("RGB", (8, 8), (level,) * 3).save(item / "restored.png")
    (item / "result.json").write_text(json.dumps({"item": {"task": value("--task")}, "seconds": 1, "batch": int(value("--batch")), "finished": str(run)}))
    time.sleep(0.2 if out.name == "process" else 0)
''')
    stand_in.chmod(0o755)
    args = ["--program", str(stand_in), "--device", "webgpu", "--out", str(tmp_path), *TINY]
    args[args.index("super_resolution,phase_retrieval")] = "hdr"
    assert gpu_check.main(args) == 1
    said = capsys.readouterr()
    assert "hdr has 38.59 dB against the CPU's picture, want 60" in said.err and "want 130" in said.err
    assert said.out.startswith("device=webgpu float32_psnr=38.6 ms_b1=500.00 ms_b2=1000.00")
