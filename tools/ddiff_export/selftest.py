"""Exports every architecture from a file of weights and checks the ONNX file.

    python3 -m ddiff_export.selftest --program bin/ddiff [--weights DIR] [--only NAME] [--keep DIR]

Writes small networks with random weights under the published names (random_weights), exports
each in float and in half precision, runs the files with the ddiff program in ONNX Runtime and
compares the results with PyTorch. With --weights, also exports and checks the published files
of a folder. The last line is

    architectures=N max_abs=M fp16_psnr=P

with the number of architectures, the largest difference in float and the lowest PSNR in half
precision. Exit code 1: a file differs from PyTorch. Exit code 2: an export failed.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import os
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")

import torch

from . import __main__ as cli
from . import published, random_weights, vectors
from .errors import ExportError
from .random_weights import Case

SIZE = 32  # side of the images on which files are run, beside those of the vectors
VERBS = {"prior": "prior", "bundle": "prior", "operator": "operator", "metric": "operator"}


@dataclass
class Result:
    """The program's check of one file."""

    ok: bool
    max_abs: float
    psnr: float


def command(case: Case, arguments: list[str]) -> None:
    """Runs an export command in this process."""
    said = io.StringIO()
    with contextlib.redirect_stderr(said), contextlib.redirect_stdout(io.StringIO()):
        code = cli.main(arguments)
    if code != 0:
        raise SystemExit(f"{case.name}: {said.getvalue().strip()}")


def export(case: Case, out: Path) -> list[Path]:
    """Exports a case in float and in half precision."""
    suffix = "" if case.kind == "bundle" else ".onnx"
    single, half = (out / f"{case.name}_{precision}{suffix}" for precision in ("float32", "float16"))
    command(case, [*case.arguments, "--out", str(single)])
    if case.reference is not None:
        generator = torch.Generator().manual_seed(5)
        x, t = torch.randn((2, 3, 64, 72), generator=generator), torch.tensor([10, 700])
        with torch.no_grad():
            vectors.write(single, "float32", {"x": x, "t": t}, {"eps": case.reference(x, t)})
    command(case, ["half", "--onnx", str(single), "--out", str(half)])
    return [single, half]


def check(program: str, case: Case, target: Path) -> Result:
    """Checks an exported file with the program."""
    command = [program, VERBS[case.kind], "check", str(target), "--json", "--size", str(SIZE)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode not in (0, 3):
        raise SystemExit(f"{case.name}: {' '.join(command)}: exit code {done.returncode}: {done.stderr.strip()}")
    agreements = _agreements(json.loads(done.stdout))
    if not agreements:
        raise SystemExit(f"{case.name}: {target}: the program compared no vectors")
    return Result(done.returncode == 0, max(a["max_abs"] for a in agreements), min(a["psnr"] for a in agreements))


def _agreements(report: dict[str, Any]) -> list[dict[str, Any]]:
    parts = report.get("parts") or [report]
    return [part["vectors"] for part in parts if part.get("vectors")]


def main(args: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="selftest", description="Export and check every architecture.")
    parser.add_argument("--program", default="bin/ddiff", help="the ddiff program")
    parser.add_argument("--weights", type=Path, help="folder with published files")
    parser.add_argument("--only", default="", help="only architectures whose name contains this text")
    parser.add_argument("--keep", type=Path, help="folder for the exported files (default: a temporary folder)")
    o = parser.parse_args(args)
    torch.set_num_threads(1)  # another core runs the checks
    with contextlib.ExitStack() as stack:
        out = o.keep or Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="ddiff-export-")))
        try:
            cases = random_weights.cases(out / "weights") + (published.cases(o.weights) if o.weights else [])
        except ExportError as err:
            print(f"selftest: {err}", file=sys.stderr)
            return 2
        return run(o.program, [case for case in cases if o.only in case.name], out)


def run(program: str, cases: list[Case], out: Path) -> int:
    """Exports and checks the cases and prints the table. One case is checked while the next is exported."""
    failed, largest, lowest = [], 0.0, 200.0
    print(f"{'architecture':28} {'max_abs':>9} {'float16 psnr':>9}")
    with ThreadPoolExecutor(max_workers=1) as pool:
        under_way = []
        for case in cases:
            under_way.append((case, [pool.submit(check, program, case, path) for path in export(case, out)]))
        for case, checks in under_way:
            single, half = (future.result() for future in checks)
            largest, lowest = max(largest, single.max_abs), min(lowest, half.psnr)
            agree = single.ok and half.ok
            print(f"{case.name:28} {single.max_abs:9.1e} {half.psnr:9.1f}{'' if agree else '  DIFFERS'}", flush=True)
            if not agree:
                failed.append(case.name)
    if failed:
        print(f"different from PyTorch: {', '.join(failed)}", file=sys.stderr)
    print(f"architectures={len(cases)} max_abs={largest:.0e} fp16_psnr={lowest:.0f}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
