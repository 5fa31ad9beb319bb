#!/usr/bin/env python3
"""Compares all methods on all tasks: the command behind `make methods`.

    python3 tools/compare_methods.py [--out DIR] [flags of ddiff run]

It runs the campaigns equal_cost.yaml and published.yaml of examples/methods, and prints one report of both. A rerun resumes. The last line
counts the campaign at equal cost:

    methods=N tasks=N ddiff_highest=N failed=N

ddiff_highest counts the tasks in which it has the highest mean PSNR. An image that a method failed to restore is left out of its task for all methods, a method other than ddiff that
restored none is left out itself. Failed items end the command with exit code 1.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

import campaigns
import numpy as np

Rows = list[dict[str, str]]


def restored_by_all(rows: Rows) -> Rows:
    """The rows of the images that all methods of a task restored."""
    able = {(r["task"], r["method"]) for r in rows if r["outcome"] == "done" or r["method"] == "ddiff"}
    bad = {(r["task"], r["image"]) for r in rows if r["outcome"] != "done" and (r["task"], r["method"]) in able}
    return [r for r in rows if r["outcome"] == "done" and (r["task"], r["image"]) not in bad]


def highest(rows: Rows) -> tuple[int, int, int]:
    """The number of methods, of tasks, and of tasks in which ddiff has the highest mean PSNR."""
    psnr: dict[str, dict[str, dict[str, float]]] = defaultdict(lambda: defaultdict(dict))
    for r in rows:
        images = psnr[r["task"]][r["method"]]
        if r["image"] in images:
            raise ValueError(f"{r['task']}, {r['method']}, {r['image']}: two results; want one number of steps for a task and method")
        images[r["image"]] = float(r["psnr"])
    good = 0
    for task, methods in psnr.items():
        ours = methods.get("ddiff", {})
        for method, images in methods.items():
            if images.keys() != ours.keys():
                raise ValueError(f"{task}: {method} and ddiff have not restored the same images")
        best = max(methods.values(), key=lambda images: np.mean(list(images.values())))
        good += best is ours
    return len({r["method"] for r in rows}), len(psnr), good


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False)
    parser.add_argument("--out", type=Path, default=campaigns.REPO / "out/methods", help="folder of the outputs")
    parser.add_argument("--program", type=Path, default=campaigns.REPO / "bin/ddiff", help="the ddiff program")
    parser.add_argument("--method", help="methods, with ddiff, separated by commas")
    options, flags = parser.parse_known_args(argv)
    if options.method:
        if "ddiff" not in options.method.split(","):
            parser.error(f"--method: {options.method} is without ddiff, with which the others are compared; add it")
        flags += ["--method", options.method]
    outputs = [options.out / name for name in ("equal_cost", "published")]
    complete = True
    for out in outputs:
        complete &= campaigns.run(options.program, str(campaigns.REPO / "examples/methods" / f"{out.name}.yaml"), "--out", str(out), *flags)
    subprocess.run([str(options.program), "report", *map(str, outputs)], check=True)
    equal, published = (campaigns.table((out / "results.csv").read_text()) for out in outputs)
    failed = sum(r["outcome"] != "done" for r in equal + published)
    methods, tasks, good = highest(restored_by_all(equal))
    print(f"\nmethods={methods} tasks={tasks} ddiff_highest={good} failed={failed}")
    if failed:
        print(f"compare_methods: {failed} items failed or are dead; results.csv in the folders of {options.out} has the reasons", file=sys.stderr)
    return int(failed > 0 or not complete)


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except (ValueError, OSError, subprocess.CalledProcessError) as err:
        sys.exit(f"compare_methods: {err}")
