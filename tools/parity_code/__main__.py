"""Runs the released code of DDiff beside this program: python3 -m parity_code --code DIR, with PYTHONPATH=tools.

DIR is a checkout of SoniaMinseoKim/ddiff-cvpr at ae3ce1f. ddiff run restores the photographs with the preset ffhq, the bundled prior and all 1,000
steps; the code's loop gets the stored measurement, mask or kernel, and the same start and noise. The task nonlinear_deblur has the learned blur with
the random weights of restore/operator/testdata/bkse.onnx on both sides. Results are below --cache: rerun the same command to resume.
"""

from __future__ import annotations

import os

os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")

import argparse
import contextlib
import pathlib
import sys
from collections.abc import Iterator

import torch
from method_vectors.author_code import Unconditional
from method_vectors.ddiff_code import TASKS, Code, ddiff_code
from torch import nn

from parity_code import bench, compare, theirs
from parity_code.ours import ROOT, Program

DEFAULT = ("gaussian_deblur", "super_resolution", "inpaint_random")


def words(text: str) -> list[str]:
    return [w for w in text.replace(",", " ").split() if w]


def main() -> int:
    p = argparse.ArgumentParser(prog="parity_code", description=__doc__.splitlines()[0])
    p.add_argument("--code", required=True, help="checkout of the released code")
    p.add_argument("--program", default=str(ROOT / "bin/ddiff"))
    p.add_argument("--tasks", default="", help=f"of {', '.join(TASKS)} (default: {', '.join(DEFAULT)}; all with --bench)")
    p.add_argument("--photographs", default="astronaut,coffee", help="names in examples/images")
    p.add_argument("--size", type=int, default=256, help="working size in pixels; phase_retrieval needs 256, nonlinear_deblur multiples of 128")
    p.add_argument("--threads", type=int, default=os.cpu_count())
    p.add_argument("--cache", type=pathlib.Path, default=ROOT / ".cache/parity-code")
    p.add_argument("--bench", action="store_true", help="time steps of both instead")
    p.add_argument("--rounds", type=int, default=3, help="of --bench")
    p.add_argument("--steps", type=int, default=6, help="timed steps of the code in a round of --bench; ddiff bench makes ten times as many")
    o = p.parse_args()
    tasks, photographs = words(o.tasks) or list(DEFAULT), words(o.photographs)
    if unknown := [t for t in tasks if t not in TASKS]:
        p.error(f"unknown task {unknown[0]}: use {', '.join(TASKS)}")
    if not (pathlib.Path(o.code) / "ddiff_sample.py").exists():
        p.error(f"no ddiff_sample.py in {o.code}: give a checkout of SoniaMinseoKim/ddiff-cvpr at ae3ce1f")
    torch.set_num_threads(o.threads)
    o.cache.mkdir(parents=True, exist_ok=True)
    program = Program(o.program, o.cache, o.threads, o.size)
    if o.bench:
        return measure(o, program)
    items = program.run(tasks, photographs)
    rows: list[compare.Row] = []
    with released(o.code, Unconditional()) as code:
        print(compare.HEAD, flush=True)
        for item in items:
            x = theirs.solve(code, o.code, item, o.cache)
            rows.append(compare.row(item.task, item.photograph, x, item.truth(), item.psnr, item.pixels("restored")))
            print(rows[-1], flush=True)
    last, passed = compare.summary(rows, len(tasks) * len(photographs))
    print(f"{compare.NOTE}\n{last}")
    return 0 if passed else 1


@contextlib.contextmanager
def released(folder: str, network: nn.Module) -> Iterator[Code]:
    """ddiff_code, with what the code prints while it loads on standard error."""
    with contextlib.ExitStack() as stack:
        with contextlib.redirect_stdout(sys.stderr):
            code = stack.enter_context(ddiff_code(folder, network))
        yield code


def measure(o: argparse.Namespace, program: Program) -> int:
    """Prints the table of times of the eight tasks."""
    network = Unconditional().requires_grad_(True)  # as the released code loads its network
    with released(o.code, network) as code:
        times = bench.measure(code, program, words(o.tasks or ",".join(bench.SETTINGS)), o.steps, o.rounds)
    print(bench.table(times, o.rounds))
    return 0


if __name__ == "__main__":
    sys.exit(main())
