#!/usr/bin/env python3
"""Compares DDiff with the variants of the paper's Table 2, each with its own settings: the command behind `make ablation`.

    python3 tools/ablation.py [--knobs 1] [--steps 50] [--size 64] [--tasks hdr,...]

One campaign solves a grid for each task and method, with as many cells, evaluations, images, measurements and noise draws for each
method: values of gamma0, times three rules of the noise (full; ddpm until t0 = 300; none, t0 = 999) for DDiff and DDiff-HQS, or three
values of b for the variants without noise. Each photograph is then a test image once: a method has the cell with the highest mean PSNR
on the other photographs. The tables have 95 % intervals over the photographs (Student's t), paired for the differences, and the PSNR
with the settings chosen for DDiff. A rerun resumes. The last line counts the tasks in which the methods have the order of Table 2
(examples/paper/ablation.published.csv):

    tasks_in_order=N of=8
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from collections import Counter, defaultdict
from pathlib import Path

import campaigns
import numpy as np

METHODS = ["ddiff", "ddiff_hqs", "diff_pnp_admm", "diff_pnp_hqs"]
TASKS = ["super_resolution", "inpaint_box", "inpaint_random", "gaussian_deblur", "motion_deblur", "phase_retrieval", "nonlinear_deblur", "hdr"]
FULL, DDPM, NONE = (("b=1", *rule) for rule in (("sigma_rule=full", "t0=1"), ("sigma_rule=ddpm", "t0=300"), ("sigma_rule=ddpm", "t0=999")))

Cell = tuple[str, ...]  # assignments of solver parameters
Scores = dict[tuple[str, str], dict[Cell, dict[str, float]]]  # PSNR by task, method, cell and photograph


def knobs(task: str, method: str, count: int) -> list[Cell]:
    """The values of the second setting. With one knob the paper's rule of the noise for the task, with the t0 of few steps, and b = 1."""
    noisy = method.startswith("ddiff")
    if count == 2:
        return [FULL, DDPM, NONE] if noisy else [("b=0.3",), ("b=1",), ("b=3",)]
    if not noisy:
        return [("b=1",)]
    return [FULL if task.startswith("inpaint") or task in ("super_resolution", "phase_retrieval") else DDPM]


def grid(options: argparse.Namespace, task: str, method: str) -> list[Cell]:
    return [(f"gamma0={g}", *knob) for knob in knobs(task, method, options.knobs) for g in options.gamma0]


def like(cells: list[Cell], of: Cell) -> Cell:
    """The cell with the settings of a cell of DDiff: the same gamma0 and rule of the noise, or b = 1 without noise."""
    return next(c for c in cells if c == of[: len(c)])


def campaign(options: argparse.Namespace) -> str:
    lines = [f"name: ablation\npreset: gradient\ndataset: {{path: {str(options.images)!r}, size: {options.size}, fit: resize, limit: {options.limit}}}",
             f"methods: [{', '.join(METHODS)}]\nsteps: {options.steps}\nsigma: 0.05\nseed: 1\ntasks:"]
    for task in options.tasks:
        for pair in (METHODS[:2], METHODS[2:]):
            for knob in knobs(task, pair[0], options.knobs):
                solver = ", ".join([f"gamma0: [{', '.join(options.gamma0)}]", *(k.replace("=", ": ") for k in knob)])
                lines.append(f"  - {{name: {task}, methods: [{', '.join(pair)}], solver: {{{solver}}}}}")
    return "\n".join(lines) + "\n"


def read(options: argparse.Namespace, rows: list[dict[str, str]]) -> Scores:
    """The scores of the grid. Rows of another grid in the same output are left out; a cell that lacks a photograph is an error."""
    scores: Scores = defaultdict(lambda: defaultdict(dict))
    images = set()
    for r in rows:
        settings = set(r["settings"].split(";"))
        cell = next((c for c in grid(options, r["task"], r["method"]) if settings.issuperset(c)), None)
        if cell is None or not r["size"].startswith(f"{options.size}x{options.size}"):
            continue
        if r["outcome"] != "done":
            raise ValueError(f"{r['task']}, {r['method']}, {r['settings']}, {r['image']}: {r['outcome']} {r['reason']}")
        scores[r["task"], r["method"]][cell][r["image"]] = float(r["psnr"])
        images.add(r["image"])
    for task in options.tasks:
        for method in METHODS:
            for cell in grid(options, task, method):
                have = len(scores[task, method][cell])
                if have != len(images) or have < 3:
                    raise ValueError(f"{task}, {method}, {' '.join(cell)}: {have} of {len(images)} photographs, want all and at least 3")
    return scores


def choose(cells: dict[Cell, dict[str, float]], order: list[Cell], without: str) -> Cell:
    """The cell with the highest mean PSNR on the other photographs, in a tie the earlier one of the grid."""
    return max(order, key=lambda c: sum(v for image, v in sorted(cells[c].items()) if image != without))


def ranking(means: dict[str, float]) -> list[str]:
    return sorted(means, key=means.__getitem__, reverse=True)


def write(options: argparse.Namespace, scores: Scores, published: dict[str, dict[str, float]]) -> str:
    """The tables and the last line."""
    rows, orders, border, first, same = [], [], [], 0, 0
    for task in options.tasks:
        grids = {m: grid(options, task, m) for m in METHODS}
        images = sorted(scores[task, "ddiff"][grids["ddiff"][0]])
        chosen = {m: [choose(scores[task, m], grids[m], image) for image in images] for m in METHODS}
        psnr = {m: [scores[task, m][c][image] for c, image in zip(chosen[m], images)] for m in METHODS}
        for m in METHODS:
            plain = np.mean([scores[task, m][like(grids[m], c)][image] for c, image in zip(chosen["ddiff"], images)])
            ahead = "" if m == "ddiff" else "{:+.2f} ± {:.2f}".format(*campaigns.mean([a - b for a, b in zip(psnr["ddiff"], psnr[m])]))
            settings = ", ".join(f"{' '.join(c)} ({n})" for c, n in Counter(chosen[m]).items())
            rows.append("| {} | {} | {:.2f} ± {:.2f} | {} | {:.2f} | {} |".format(task, m, *campaigns.mean(psnr[m]), ahead, plain, settings))
            if {c[0] for c in chosen[m]} & {f"gamma0={g}" for g in (options.gamma0[0], options.gamma0[-1])}:
                border.append(f"- {task}, {m}: gamma0 at the border of the grid")
        here, there = ranking({m: float(np.mean(psnr[m])) for m in METHODS}), ranking(published[task])
        first, same = first + (here[0] == there[0]), same + (here == there)
        orders.append(f"| {task} | {' > '.join(here)} | {' > '.join(there)} | {'yes' if here == there else 'no'} |")
    count = len(grid(options, options.tasks[0], "ddiff"))
    return "\n".join([
        f"{len(images)} photographs, {options.size}x{options.size}, {options.steps} network evaluations, {count} cells per task and method; "
        f"settings chosen on the other {len(images) - 1} photographs\n",
        "| task | method | PSNR | ddiff − method | with ddiff's settings | chosen (photographs) |", "|---" * 6 + "|", *rows,
        "\n| task | order here | order in Table 2 | same |", "|---" * 4 + "|", *orders, "", *border,
        f"first_place_as_published={first} of={len(options.tasks)}", f"tasks_in_order={same} of={len(options.tasks)}"])


def main(argv: list[str]) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--images", type=Path, default=campaigns.REPO / "examples/images", help="photographs")
    parser.add_argument("--out", type=Path, default=campaigns.REPO / "out/ablation", help="folder of the results; a rerun resumes")
    parser.add_argument("--program", type=Path, default=campaigns.REPO / "bin/ddiff", help="the ddiff program")
    parser.add_argument("--size", type=int, default=64, help="working size in pixels")
    parser.add_argument("--steps", type=int, default=50, help="network evaluations per image")
    parser.add_argument("--limit", type=int, default=0, help="read only the first photographs (0: all)")
    parser.add_argument("--threads", type=int, default=0, help="processor threads (0: one per core)")
    parser.add_argument("--knobs", type=int, choices=[1, 2], default=2, help="1 tunes gamma0 alone, 2 also the rule of the noise or b")
    parser.add_argument("--gamma0", type=lambda s: s.split(","), default="3,8,20,50,125,300", help="grid of gamma0, ascending")
    parser.add_argument("--tasks", type=lambda s: s.split(","), default=TASKS, help="tasks, separated by commas")
    options = parser.parse_args(argv)
    options.out.mkdir(parents=True, exist_ok=True)
    file = options.out / "ablation.yaml"
    file.write_text(campaign(options))
    if not campaigns.run(options.program, str(file), "--out", str(options.out), "--threads", str(options.threads)):
        print("ablation: some items failed", file=sys.stderr)
    report = [str(options.program), "report", str(options.out), "--format", "csv", "--where", f"steps={options.steps}"]
    scores = read(options, campaigns.table(subprocess.run(report, check=True, capture_output=True, text=True).stdout))
    published: dict[str, dict[str, float]] = defaultdict(dict)
    for r in campaigns.table((campaigns.REPO / "examples/paper/ablation.published.csv").read_text()):
        published[r["task"]][r["method"]] = float(r["psnr"])
    print(write(options, scores, published))


if __name__ == "__main__":
    try:
        main(sys.argv[1:])
    except (ValueError, OSError, subprocess.CalledProcessError) as err:
        sys.exit(f"ablation: {err}")
