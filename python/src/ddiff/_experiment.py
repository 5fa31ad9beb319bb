"""Experiments on this machine: `ddiff run`."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import tempfile
import warnings
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ._figure import Box, Figure, Row, draw, size_of
from ._program import PROGRAM, environment
from ._result import ProcessError

_INCOMPLETE = 3  # exit code: some items failed


@dataclass(frozen=True)
class Experiment:
    """The output of an experiment."""

    out: Path  #: Folder with results.csv, the report index.html and the pictures below items and restored.
    left_out: tuple[str, ...] = ()  #: A line with the reason for each file of the dataset that was no photograph to degrade.

    def table(self) -> Any:
        """Returns a pandas DataFrame with one row per item: task, method, outcome, psnr, ssim, seconds, ... (docs/results.md). Needs pandas."""
        import pandas

        return pandas.read_csv(self.out / "results.csv", converters={"image": str})

    def figure(
        self, images: Sequence[str] = (), tasks: Sequence[str] = (), methods: Sequence[str] = (), *, crop: Box | None = None, zooms: Sequence[Box] = (),
        side: float = 30,
    ) -> Figure:  # fmt: skip
        """Draws pictures for a paper: a row for each problem, with the measurement, the restoration of each method and its PSNR, and the truth.

        images, tasks, methods: those to show, in this order; names as in the table. Default: all.
        crop: the part of each picture to show, and zooms: up to two parts that are enlarged in its lower corners: (left, top, width, height) in pixels of
            the truth. side: width of a picture in millimetres.

        Needs pandas. Raises ValueError if nothing is left to show."""
        if len(zooms) > 2:
            raise ValueError(f"{len(zooms)} zooms; give at most two")
        t = self.table()
        t = t[(t.run == 0) & (t.outcome == "done")]
        shown = list(methods) or list(dict.fromkeys(t.method))
        rows = []
        for task in list(tasks) or list(dict.fromkeys(t.task)):
            for image in list(images) or list(dict.fromkeys(t.image)):
                found = t[(t.task == task) & (t.image == image) & t.method.isin(shown)]
                for _, same in found.groupby(["params", "sigma", "photons", "size", "seed"], sort=False, dropna=False):
                    items = {r.method: r for r in same.iloc[::-1].itertuples()}  # the first of a method with several settings
                    folder = self.out / "items" / same.iloc[0]["item"]
                    cells = [(folder / "measurement.png", task)]
                    for m in shown:
                        cells.append((self.out / "items" / items[m].item / "restored.png", f"{items[m].psnr:.2f} dB" if items[m].psnr > 0 else "") if m in items else (None, "missing"))
                    cells.append((folder / "truth.png", image))
                    cells = [(f if f and f.exists() else None, c) for f, c in cells]
                    largest = next(f for f, _ in reversed(cells) if f)  # the truth, or a restoration of a picture without one
                    rows.append(Row(size_of(largest.read_bytes()), cells))
        if not rows:
            raise ValueError("no finished item has these images, tasks and methods; see table()")
        return draw(["measurement", *shown, "truth"], rows, side, crop, zooms)


def run(
    images: str | os.PathLike[str], tasks: str | dict[str, Any] | Sequence[str | dict[str, Any]] = (), methods: str | Sequence[str] = (), *, out: str | os.PathLike[str] = "out",
    size: int = 256, limit: int = 0, device: str = "auto", **settings: Any,
) -> Experiment:  # fmt: skip
    """Degrades photographs as the tasks say, restores them with each method, compares with the truth, and returns the output.

    images: a folder, a photograph, or a campaign file (.yaml), which then has all settings but out and device.
    tasks: names, or objects such as {"name": "super_resolution", "params": {"factor": 4}, "sigma": 0.02}. One needs no list. Default: denoise.
    methods: names, or one. Default: ddiff.
    size: side to which photographs are brought, in pixels. limit: number of photographs, 0 is all.
    settings: other fields of a campaign file (docs/campaigns.md), such as sigma, seed, runs, steps, preset, prior, or dataset={"fit": "pad"}.
        Paths are relative to the working directory.

    An interrupted experiment resumes with the same call. Raises ProcessError with the program's reason; items that failed are rows of the table.
    """
    target = Path(out).absolute()
    tasks = [tasks] if isinstance(tasks, (str, dict)) else tasks
    methods = [methods] if isinstance(methods, str) else methods
    with tempfile.TemporaryDirectory() as folder:
        campaign = Path(images)
        if campaign.suffix not in (".yaml", ".yml"):
            dataset = {"size": size, "limit": limit, **settings.pop("dataset", {}), "path": images}
            spec = {
                "name": target.name, "dataset": _located(dataset), "tasks": [t if isinstance(t, str) else _located(t) for t in tasks] or ["denoise"],
                "methods": list(methods) or ["ddiff"], **_located(settings),
            }  # fmt: skip
            campaign = Path(folder) / "campaign.yaml"
            campaign.write_text(json.dumps(spec, allow_nan=False, default=np.generic.item))
        elif tasks or methods or settings:
            raise ValueError("a campaign file has tasks, methods and settings; give none beside it")
        args = [PROGRAM, "run", campaign, "--out", target, "--device", device, "--json"]
        printed = open(Path(folder) / "printed", "w+")  # a line for each item
        process = subprocess.Popen(args, stdout=printed, stderr=subprocess.PIPE, env=environment(), start_new_session=True, text=True)
        try:
            _, said = process.communicate()
        except BaseException:
            process.send_signal(signal.SIGINT)
            process.communicate()
            raise
        with printed:
            printed.seek(0)
            last = deque(printed, 1)
    if process.returncode not in (0, _INCOMPLETE):
        reason = (said.strip().splitlines() or ["it said nothing"])[-1]
        raise ProcessError(f"ddiff ended with exit code {process.returncode}: {reason.removeprefix('ddiff: ')}")
    for line in said.splitlines():
        if line.startswith("warning: all runs are equal"):
            warnings.warn(line.removeprefix("warning: "), stacklevel=2)
    counts = json.loads(last[0])
    return Experiment(target, tuple(f"{name}: {skipped['reason']}" for skipped in counts["left_out"] for name in skipped["names"]))


def _located(settings: dict[str, Any]) -> dict[str, Any]:
    """Returns settings with absolute paths: in a campaign file they are relative to the file, which here is a temporary one."""
    out = dict(settings)
    for name in "path", "prior", "operator", "mask", "kernel":
        if out.get(name) and (text := os.fspath(out[name])) not in ("bundled", "bundled:base"):
            out[name] = text if "://" in text else os.path.abspath(text)
    return out
