"""Times the released loop and ddiff bench in turn, with the same prior, size and processor."""

from __future__ import annotations

import statistics
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field

import torch
from method_vectors.ddiff_code import Code
from torch import Tensor

from parity_code.ours import ROOT, SIGMA, Program
from parity_code.theirs import Blur

STEPS = 1000  # of an image
WARM_UP = 2  # steps that are not timed
MORE = 10  # steps of ddiff bench for each timed step of the code: its time has that of storing the images
BATCHES = (1, 4)
# gamma0 and t0 of run_ffhq.sh. Times do not depend on them.
SETTINGS = {
    "super_resolution": (18, 1),
    "inpaint_box": (30, 1),
    "inpaint_random": (50, 1),
    "gaussian_deblur": (2.9, 50),
    "motion_deblur": (2.9, 80),
    "phase_retrieval": (38, 1),
    "nonlinear_deblur": (2.5, 120),
    "hdr": (3.5, 120),
}


@dataclass
class Times:
    """Seconds of a step, one entry per round."""

    theirs: list[float] = field(default_factory=list)
    ours: dict[int, list[float]] = field(default_factory=dict)  # of a batch, by batch size


def loop(code: Code, task: str, x: Tensor, steps: int) -> list[float]:
    """The seconds of each step of the loop as released, where the network keeps the values of a gradient."""
    if task == "nonlinear_deblur":
        given: object = {"blur_model": Blur(), "random_kernel": torch.randn(1, 4, x.shape[-2] // 128, x.shape[-1] // 128)}
        y = code["forward_grad_like"](x, "nonlinear_blur", given)
    else:
        y, given = code.forward(x, task)
    y = y.detach() + SIGMA * torch.randn_like(y)
    gamma0, t0 = SETTINGS[task]
    borders: list[float] = []
    first = 500
    code.run(
        task, torch.randn_like(x), y, given, gamma0, t0, lambda _: torch.randn(x.shape), range(first, first - WARM_UP - steps - 1, -1),
        lambda *_: borders.append(time.perf_counter()), graph=True,
    )  # fmt: skip
    return [b - a for a, b in zip(borders[WARM_UP - 1 :], borders[WARM_UP:])]


def ours(program: Program, task: str, steps: int) -> dict[int, float]:
    """Seconds of a step of ddiff bench, by batch size: a campaign with queue, storage, metrics and pictures."""
    words = [
        program.path, "bench", "--task", task, "--size", str(program.size), "--batch", ",".join(map(str, BATCHES)), "--items", str(max(BATCHES)),
        "--steps", str(steps), "--rounds", "1", "--threads", str(program.threads), "--precision", "float32", "--images", str(ROOT / "examples/images"),
    ]  # fmt: skip
    done = subprocess.run(words, stdout=subprocess.PIPE, text=True)
    if done.returncode:
        sys.exit(f"{done.stdout}\nparity_code: ddiff bench ended with code {done.returncode}")
    return campaigns(done.stdout, task)


def campaigns(table: str, task: str) -> dict[int, float]:
    """The column "campaign ms" of ddiff bench's table, in seconds by batch size."""
    rows = [line.split() for line in table.splitlines()]
    found = {int(row[1]): float(row[3]) / 1e3 for row in rows if row[:1] == [task]}
    if not found:
        raise ValueError(f"ddiff bench printed no row of {task}:\n{table}")
    return found


def measure(code: Code, program: Program, tasks: Sequence[str], steps: int, rounds: int) -> dict[str, Times]:
    """The times of all rounds. A round takes each task of the code, then of ddiff. The picture is noise: times do not depend on it."""
    times = {task: Times() for task in tasks}
    x = torch.rand(1, 3, program.size, program.size) * 2 - 1
    for r in range(rounds):
        for task, t in times.items():
            t.theirs.append(statistics.median(loop(code, task, x, steps)))
            for batch, seconds in ours(program, task, MORE * steps).items():
                t.ours.setdefault(batch, []).append(seconds)
            print(f"round {r + 1} {task}: {t.theirs[-1]:.3f} s, {[v[-1] for v in t.ours.values()]} s", file=sys.stderr, flush=True)
    return times


def table(times: dict[str, Times], rounds: int) -> str:
    """The medians over the rounds: seconds of a step and of an image of 1,000 steps, and hours of a thousand images."""
    lines = [f"{'task':18}{'theirs s/step':>14}{'ours':>8}{'batch 4':>9}{'theirs s/image':>16}{'ours':>8}{'batch 4':>9}{'theirs h/1000':>15}{'ours':>7}{'batch 4':>9}"]
    totals: list[list[float]] = []
    for task, t in times.items():
        s = [statistics.median(t.theirs), *(statistics.median(t.ours[b]) / b for b in BATCHES)]
        totals.append(s)
        lines.append(_line(task, s))
    lines.append(_line("mean", [statistics.mean(column) for column in zip(*totals)]))
    return "\n".join(lines) + f"\nmedians of {rounds} rounds; batch 4: the share of one image"


def _line(name: str, s: Sequence[float]) -> str:
    """s has the seconds of a step of one image: theirs, ours, ours in a batch of 4."""
    image = [STEPS * v for v in s]
    hours = [1000 * v / 3600 for v in image]
    return (
        f"{name:18}{s[0]:14.3f}{s[1]:8.3f}{s[2]:9.3f}{image[0]:16.0f}{image[1]:8.0f}{image[2]:9.0f}"
        f"{hours[0]:15.1f}{hours[1]:7.1f}{hours[2]:9.1f}"
    )
