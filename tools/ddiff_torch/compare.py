"""Times ddiff bench and the solver in PyTorch in turn: python3 -m ddiff_torch.compare --program bin/ddiff ...

A round is a run of `ddiff bench --solver` with one round, then one run of each variant of ddiff_torch.bench and batch
size, with the first task, the bundled prior and the same number of threads. Other options are those of ddiff bench.

Prints the table of each round; then, as medians over the rounds, milliseconds per step of the solver of ddiff and of
the variants, and the ratio of their times in a round, with its lowest and highest value. In the last line, the shares
are medians over the rounds, vs_torch is the lowest ratio of PyTorch's fastest variant to the solver of ddiff over the
batch sizes, and vs_torch_float32 the same with float32 on both sides.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path

import torch

from .bench import SETTINGS, Bench, variants

ROOT = Path(__file__).parents[2]

Variant = tuple  # (name, batch size)
Round = tuple  # (milliseconds of the solver by batch size, words of the last line, milliseconds of the variants)


class Failure(Exception):
    """A measurement that cannot be made."""


def ours(o: argparse.Namespace, more: list[str]) -> tuple[dict[int, tuple[float, float]], dict[str, str]]:
    """Runs one round of ddiff bench: milliseconds per step of the solver, and in float32, by batch size; and the last line."""
    words = [
        o.program, "bench", "--solver", "--rounds", "1", "--task", o.task, "--batch", o.batch, "--size", str(o.size), "--steps", str(o.steps),
        "--threads", str(o.threads), "--device", o.device, *more,
    ]  # fmt: skip
    done = subprocess.run(words, stdout=subprocess.PIPE, text=True)
    print(done.stdout, end="", flush=True)
    if done.returncode:
        raise Failure(f"ddiff bench ended with code {done.returncode}")
    lines = [line.split() for line in done.stdout.splitlines()]
    first = o.task.split(",")[0]
    solver = {int(row[1]): (float(row[6]), float(row[7])) for row in lines if row[:1] == [first]}
    return solver, dict(word.split("=", 1) for word in lines[-1])


def warm(bench: Bench, task: str, batches: list[int]) -> list[Variant]:
    """Runs every variant for each batch size, and returns those that run."""
    found = []
    for batch in batches:
        for name in variants(bench.device):
            try:
                bench.measure(name, task, batch, 1)
            except Exception as err:  # compilers raise many types; the other variants still run
                print(f"skipped: {name}, batch {batch}: {type(err).__name__}: {str(err).strip().partition(chr(10))[0]}")
            else:
                found.append((name, batch))
    if not found:
        raise Failure("no variant of PyTorch ran")
    return found


def compare(o: argparse.Namespace, more: list[str], bench: Bench) -> None:
    """Measures all rounds, or those that fit in the time, and prints the results."""
    task, batches = o.task.split(",")[0], [int(n) for n in o.batch.split(",")]
    measured = warm(bench, task, batches)
    rounds: list[Round] = []
    begin, longest, failure = time.monotonic(), 0.0, None
    while len(rounds) < o.rounds and (not rounds or not o.time or time.monotonic() - begin + longest <= o.time):
        start = time.monotonic()
        try:
            solver, line = ours(o, more)
            theirs = {v: float(bench.measure(v[0], task, v[1], max(o.steps // 4, 3))["ms_per_step"]) for v in measured}
        except Exception as err:  # the complete rounds are printed
            failure = err
            break
        rounds.append((solver, line, theirs))
        longest = max(longest, time.monotonic() - start)
    if rounds:
        show(o, task, batches, measured, rounds)
    if failure is not None:
        raise failure if isinstance(failure, Failure) else Failure(f"{type(failure).__name__}: {failure}") from failure


def show(o: argparse.Namespace, task: str, batches: list[int], measured: list[Variant], rounds: list[Round]) -> None:
    """Prints the results of the rounds."""
    print(f"PyTorch {torch.__version__}, {task}\n{'variant':<36} {'batch':>5} {'step ms':>12} {'ratio':>7} {'spread':>12}")
    for batch in batches:
        for i, name in enumerate(dict.fromkeys((rounds[0][1]["precision"], "float32"))):
            print(f"{'ddiff ' + name:<36} {batch:>5} {statistics.median(solver[batch][i] for solver, _, _ in rounds):>12.2f}")
    lowest: dict[int, list[float]] = {0: [], 1: []}
    for v in measured:
        ratios = [[theirs[v] / solver[v[1]][i] for solver, _, theirs in rounds] for i in (0, 1)]
        lowest[0].append(statistics.median(ratios[0]))
        if v[0].startswith("float32"):
            lowest[1].append(statistics.median(ratios[1]))
        ms = statistics.median(theirs[v] for _, _, theirs in rounds)
        print(f"{v[0]:<36} {v[1]:>5} {ms:>12.2f} {lowest[0][-1]:>7.2f} {min(ratios[0]):>6.2f}..{max(ratios[0]):.2f}")

    def median(key: str, form: str) -> str:
        values = [line[key] for _, line, _ in rounds]
        return values[0] if "skipped" in values else format(statistics.median(map(float, values)), form)

    print(
        f"share_light={median('share_light', '.2f')} share_heavy={median('share_heavy', '.2f')} "
        f"vs_torch={min(lowest[0]):.2f} vs_torch_float32={format(min(lowest[1]), '.2f') if lowest[1] else 'skipped'} "
        f"provider={rounds[0][1]['provider']} precision={rounds[0][1]['precision']} "
        f"ms_per_step={median('ms_per_step', '.1f')} rounds={len(rounds)} of={o.rounds}"
    )


def main(args: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="compare", description="Time ddiff bench and the solver in PyTorch in turn.", allow_abbrev=False)
    parser.add_argument("--program", default=str(ROOT / "bin" / "ddiff"), help="the program ddiff")
    parser.add_argument("--prior", default=str(ROOT / "internal/restore/prior/bundled/prior.onnx"), help="the bundled prior")
    parser.add_argument("--task", default=",".join(list(SETTINGS)[:8]), help="tasks, separated by commas; PyTorch solves the first")
    parser.add_argument("--batch", default="1,4", help="batch sizes, separated by commas")
    parser.add_argument("--size", type=int, default=256, help="side of the images in pixels, a multiple of 8")
    parser.add_argument("--steps", type=int, default=60, help="steps per image of ddiff bench; PyTorch makes a quarter of them")
    parser.add_argument("--rounds", type=int, default=3, help="measurements of each setting")
    parser.add_argument("--time", type=float, default=0, help="seconds within which all rounds but the first must end (0: no limit)")
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)), help="CPU threads of both")
    parser.add_argument("--device", default="auto", help="device of ddiff bench; PyTorch uses cuda:N, or else the CPU")
    o, more = parser.parse_known_args(args)
    cache = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    os.environ.setdefault("TORCHINDUCTOR_CACHE_DIR", os.path.join(cache, "ddiff", "torch"))  # for the next comparison
    try:
        compare(o, more, Bench(o.prior, o.size, o.threads, o.device if o.device.startswith("cuda") else "cpu"))
    except Failure as err:
        print(f"compare: {err}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
