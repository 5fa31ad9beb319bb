#!/usr/bin/env python3
"""Checks a device against the CPU through `ddiff run`: the command behind `make gpu-check`.

    python3 tools/gpu_check.py --device cuda:0
    python3 tools/gpu_check.py --device webgpu --size 32 --steps 4 --batches 1,2     # small problems

- tasks: the eight tasks of the paper, one photograph each, on the CPU in float32 and on the device in each precision, with the PSNR of the
  device's pictures against those of the CPU. In float32 it is at least 60 dB. Phase retrieval makes four steps only: it enlarges rounding, and
  in sixty steps finds another picture, also on two providers of one CPU.
- speed: milliseconds per step of super-resolution by batch size, and the device's memory (CUDA: nvidia-smi; else the largest resident set).
- process: SIGTERM ends a busy run with exit code 130 within a minute; after SIGKILL the device's memory is free within 64 MiB, and the same
  command resumes and ends with 0.

The measurements go to gpu-check.json in --out. Exit code 0: all within bounds; 1: not; 8: no such device. The last line is

    device=cuda:0 float32_psnr=x.x float16_psnr=x.x ms_b1=x.xx ms_b16=x.xx
"""

from __future__ import annotations

import argparse
import json
import resource
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import campaigns
import numpy as np
from PIL import Image

TASKS = "super_resolution,inpaint_box,inpaint_random,gaussian_deblur,motion_deblur,phase_retrieval,nonlinear_deblur,hdr"
LOWEST = 60.0  # dB, the PSNR of a device's picture in float32
FEW = {"phase_retrieval": 4}  # solver steps of tasks that enlarge rounding
MEMORY_SLOP = 64  # MiB that other processes may allocate meanwhile
ABSENT = 8
RUNTIME = 4  # the exit code of ddiff without the runtime or the device
START = 600  # seconds until the first image: some providers compile for minutes


class Absent(Exception):
    """The device cannot be used."""


class Check:
    def __init__(self, options: argparse.Namespace, work: Path) -> None:
        self.o, self.work = options, work
        self.report: dict = {"device": options.device, "size": options.size, "steps": options.steps, "failures": []}

    def command(self, out: str, device: str, *args: str) -> list[str]:
        o = self.o
        return [str(o.program), "run", str(o.images), "--out", str(self.work / out), "--device", device, "--size", str(o.size), "--fit", "resize",
                "--steps", str(o.steps), "--sigma", "0.05", "--seed", "1", *args]

    def run(self, out: str, device: str, *args: str) -> dict[str, dict]:
        """Runs a campaign, and returns its results by folder of the item."""
        ended = subprocess.run([*self.command(out, device, *args), "--quiet"], capture_output=True, text=True)
        if ended.returncode != 0:
            message = (ended.stderr.strip().splitlines() or [""])[-1]
            raise (Absent if out == "probe" and ended.returncode == RUNTIME else RuntimeError)(f"{out}: exit code {ended.returncode}: {message}")
        return {f.parent.name: json.loads(f.read_text()) for f in (self.work / out).glob("items/*/result.json")}

    def memory(self) -> int:
        """MiB in use on a CUDA device, by all processes; else the largest resident set of the processes that have ended."""
        device, _, index = self.o.device.partition(":")
        if device in ("cuda", "tensorrt"):
            query = ["nvidia-smi", "-i", index or "0", "--query-gpu=memory.used", "--format=csv,noheader,nounits"]
            return int(subprocess.run(query, capture_output=True, text=True, check=True, timeout=20).stdout)
        return resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss // 1024

    def restored(self, out: str, device: str, precision: str) -> dict[str, np.ndarray]:
        """The restored picture of each task."""
        groups: dict[int, list[str]] = {}  # by steps
        for task in self.o.tasks.split(","):
            groups.setdefault(min(FEW.get(task, self.o.steps), self.o.steps), []).append(task)
        pictures = {}
        for steps, tasks in groups.items():
            folder = f"{out}-{steps}"
            results = self.run(folder, device, "--task", ",".join(tasks), "--limit", "1", "--precision", precision, "--steps", str(steps))
            for item, r in results.items():
                pictures[r["item"]["task"]] = np.asarray(Image.open(self.work / folder / "items" / item / "restored.png"), dtype=np.float64)
        return pictures

    def tasks(self) -> None:
        want = self.restored("cpu", "cpu", "float32")
        for precision in self.o.precisions:
            try:
                got = self.restored(precision, self.o.device, precision)
            except RuntimeError as err:
                if precision == "float32":
                    raise
                self.report[precision] = {"lacks": str(err)}
                continue
            psnr = {task: round(min(80.0, 10 * np.log10(255**2 / max(np.mean((got[task] - want[task]) ** 2), 1e-9))), 2) for task in want}
            self.report[precision] = {"psnr_to_cpu": psnr}
            worst = min(psnr, key=psnr.get)
            if precision == "float32" and psnr[worst] < LOWEST:
                self.report["failures"].append(f"tasks: {worst} has {psnr[worst]} dB against the CPU's picture, want {LOWEST:g}")

    def speed(self) -> None:
        """The first batch of a campaign warms the device up and is left out."""
        photographs = len(list(self.o.images.glob("*.png")))
        for batch in self.o.batches:
            runs = -(-3 * batch // photographs)
            before = self.memory()
            command = self.command(f"batch-{batch}", self.o.device, "--task", "super_resolution", "--batch", str(batch), "--runs", str(runs), "--quiet")
            process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
            most = before
            while process.poll() is None:
                most = max(most, self.memory())
                time.sleep(0.2)
            most = max(most, self.memory())
            results = [json.loads(f.read_text()) for f in (self.work / f"batch-{batch}").glob("items/*/result.json")]
            full = sorted((r for r in results if r.get("batch", 1) == batch), key=lambda r: r["finished"])[batch:]
            if process.returncode or not full:
                raise RuntimeError(f"batch {batch}: exit code {process.returncode}, {len(full)} items in full batches after the first")
            ms = float(np.median([r["seconds"] for r in full])) * 1000 * batch / self.o.steps
            self.report.setdefault("speed", []).append({"batch": batch, "ms_per_step": round(ms, 2), "memory_mib": most})

    def start(self) -> subprocess.Popen:
        """A run that has restored its first image."""
        out = self.work / "process"
        command = self.command("process", self.o.device, "--task", "super_resolution", "--runs", "20", "--quiet")
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
        before, deadline = len(list(out.glob("items/*/result.json"))), time.monotonic() + START
        while len(list(out.glob("items/*/result.json"))) == before:
            if process.poll() is not None or time.monotonic() > deadline:
                process.kill()
                raise RuntimeError(f"process: the run ended with {process.returncode}, or restored no image in {START} s, before a signal")
            time.sleep(0.05)
        return process

    def process(self) -> None:
        process = self.start()
        process.send_signal(signal.SIGTERM)
        begin = time.monotonic()
        try:
            code = process.wait(60)
        except subprocess.TimeoutExpired:
            process.kill()
            code = process.wait()
        self.report["process"] = {"drain_exit": code, "drain_seconds": round(time.monotonic() - begin, 2)}
        if code != 130:
            self.report["failures"].append(f"process: exit code {code} after SIGTERM, want 130")
        before = self.memory()
        process = self.start()
        process.kill()
        process.wait()
        deadline = time.monotonic() + 30
        on_card = self.o.device.startswith(("cuda", "tensorrt"))
        while on_card and self.memory() > before + MEMORY_SLOP and time.monotonic() < deadline:
            time.sleep(1)
        self.report["process"]["memory_mib"] = [before, self.memory()]
        if on_card and self.memory() > before + MEMORY_SLOP:
            self.report["failures"].append(f"process: {self.memory()} MiB in use after SIGKILL, {before} before")
        self.run("process", self.o.device, "--task", "super_resolution", "--runs", "20")

    def line(self) -> str:
        measured = {p: self.report[p] for p in self.o.precisions if "psnr_to_cpu" in self.report.get(p, {})}
        words = [f"device={self.o.device}"]
        words += [f"{p}_psnr={min(of['psnr_to_cpu'].values()):.1f}" for p, of in measured.items()]
        return " ".join(words + [f"ms_b{s['batch']}={s['ms_per_step']:.2f}" for s in self.report.get("speed", [])])


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cuda:0", help="device of ddiff run")
    parser.add_argument("--program", type=Path, default=campaigns.REPO / "bin/ddiff", help="the ddiff program")
    parser.add_argument("--images", type=Path, default=campaigns.REPO / "examples/images", help="folder of photographs (PNG)")
    parser.add_argument("--out", type=Path, default=campaigns.REPO / "out/gpu-check", help="folder of gpu-check.json")
    parser.add_argument("--size", type=int, default=256, help="side of the images in pixels")
    parser.add_argument("--steps", type=int, default=60, help="solver steps")
    parser.add_argument("--tasks", default=TASKS, help="tasks, separated by commas")
    parser.add_argument("--batches", type=lambda s: [int(n) for n in s.split(",")], default=[1, 4, 8, 16], help="batch sizes to time")
    parser.add_argument("--precisions", type=lambda s: s.split(","), default=["float32", "float16"], help="precisions, float32 first")
    options = parser.parse_args(argv)
    with tempfile.TemporaryDirectory(prefix="gpu-check-") as work:
        check = Check(options, Path(work))
        try:
            check.run("probe", options.device, "--task", "denoise", "--limit", "1")
        except Absent as err:
            print(f"gpu_check: {err}\ngpu=absent")
            return ABSENT
        for part in (check.tasks, check.speed, check.process):
            try:
                part()
            except (RuntimeError, OSError, subprocess.SubprocessError) as err:
                check.report["failures"].append(str(err))
    options.out.mkdir(parents=True, exist_ok=True)
    (options.out / "gpu-check.json").write_text(json.dumps(check.report, indent=2) + "\n")
    for failure in check.report["failures"]:
        print(f"gpu_check: {failure}", file=sys.stderr)
    print(check.line())
    return int(bool(check.report["failures"]))


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except (RuntimeError, OSError, subprocess.SubprocessError) as err:
        sys.exit(f"gpu_check: {err}")
