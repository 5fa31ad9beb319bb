"""Runs solver jobs that another program wrote: python3 -m ddiff_torch.twin JOBDIR

JOBDIR/job.json describes one job:

    {"task": "super_resolution", "params": {"factor": 4}, "method": "ddiff", "steps": 50,
     "gamma0": 18, "t_gamma": 90, "a": 3.3, "b": 0.1, "t0": 1, "sigma_rule": "full",
     "gradient": "unit", "answer": "x_t", "prior": "prior.onnx", "threads": 2}

or several jobs in one process, each in a folder with its own job.json:

    {"jobs": ["a", "b"], "threads": 2}

prior is a path (relative to the job's folder, or absolute) or {"gaussian": {"mean": m,
"var": s2}}. params defaults to the task's own, threads (of the top job.json) to 1.

Arrays beside job.json, float32 .npy:
    x_T    (N,3,H,W)         noise   (steps,N,3,H,W) in the order of the steps
    y      the measurement   mask    (N or 1,1,H,W), inpaint
                             kernel  (N or 1,1,K,K), motion_deblur and nonlinear_deblur
Results in the same folder: x.npy, the restored batch, and curves.json, {"t": [...],
"data_norm": [[per image] per step], "primal", "dual"}.

Exit code 0, or 2 with one line on stderr.
"""

from __future__ import annotations

import json
import os
import sys
from dataclasses import MISSING, fields
from pathlib import Path
from typing import Any

# torch reads this when it loads: waiting threads sleep instead of spinning, which is ten
# times faster on a machine that runs other tests.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")

import numpy as np
import torch
from torch import Tensor

from .onnx_prior import GaussianPrior, NetworkPrior, load
from .operators import NEEDS_KERNEL, NEEDS_MASK, measurement
from .solver import Config, Curves, Prior, solve

CONFIG_FIELDS = tuple(f.name for f in fields(Config))
REQUIRED = ("task", "prior", *(f.name for f in fields(Config) if f.default is MISSING))
JOB_FIELDS = ("task", "params", "prior", "threads", *CONFIG_FIELDS)


class Priors:
    """Opens each network once, even if several jobs use it."""

    def __init__(self) -> None:
        self._networks: dict[Path, NetworkPrior] = {}

    def open(self, spec: Any, folder: Path) -> Prior:
        """Opens the prior of a job: a path relative to the folder, or parameters of the Gaussian prior."""
        if isinstance(spec, dict):
            if set(spec) != {"gaussian"} or set(spec["gaussian"]) != {"mean", "var"}:
                raise ValueError('prior: an object must be {"gaussian": {"mean": m, "var": s2}}')
            return GaussianPrior(**spec["gaussian"])
        path = (folder / spec).resolve()
        if path not in self._networks:
            self._networks[path] = NetworkPrior(load(path))
        return self._networks[path]


def run(job: dict[str, Any], folder: Path, priors: Priors) -> None:
    """Runs one job on the arrays of its folder and writes the results to the folder."""
    unknown = sorted(set(job) - set(JOB_FIELDS))
    if unknown:
        raise ValueError(f"{unknown[0]}: no such field; the fields are {', '.join(JOB_FIELDS)}")
    missing = [name for name in REQUIRED if name not in job]
    if missing:
        raise ValueError(f"{missing[0]}: field is missing")
    config = Config(**{name: job[name] for name in CONFIG_FIELDS if name in job})
    config.validate()
    task = job["task"]
    measured = measurement(
        task,
        job.get("params") or {},
        mask=_array(folder, "mask") if task in NEEDS_MASK else None,
        kernel=_array(folder, "kernel") if task in NEEDS_KERNEL else None,
    )
    x_T, noise = _array(folder, "x_T"), _array(folder, "noise")
    if x_T.dim() != 4 or noise.shape[1:] != x_T.shape:
        raise ValueError(f"noise: shape {tuple(noise.shape)} is not (steps, N, 3, H, W) with x_T {tuple(x_T.shape)}")

    curves = Curves()
    prior = priors.open(job["prior"], folder)
    x = solve(config, prior, measured, _array(folder, "y"), x_T, noise, curves)
    if not torch.isfinite(x).all():
        raise ValueError("the result is not finite: the iteration diverged; lower gamma0")
    np.save(folder / "x.npy", x.contiguous().numpy())
    (folder / "curves.json").write_text(json.dumps(curves.lists(), allow_nan=False))


def _array(folder: Path, name: str) -> Tensor:
    try:
        return torch.from_numpy(np.load(folder / f"{name}.npy").astype(np.float32))
    except FileNotFoundError:
        raise ValueError(f"{name}.npy: no such file") from None


def _read_job(folder: Path) -> dict[str, Any]:
    try:
        job = json.loads((folder / "job.json").read_text())
    except FileNotFoundError:
        raise ValueError(f"{folder}: job.json: no such file") from None
    except json.JSONDecodeError as err:
        raise ValueError(f"{folder}: job.json: {err}") from None
    if not isinstance(job, dict):
        raise ValueError(f"{folder}: job.json: not an object")
    return job


def run_folder(folder: Path) -> None:
    """Runs the job or jobs of a folder. Errors name the folder of the job."""
    top = _read_job(folder)
    torch.set_num_threads(int(top.get("threads", 1)))
    jobs = [(folder, top)]
    if "jobs" in top:
        unknown = sorted(set(top) - {"jobs", "threads"})
        if unknown:
            raise ValueError(f"{folder}: {unknown[0]}: no such field beside jobs; the fields are jobs, threads")
        jobs = [(folder / name, _read_job(folder / name)) for name in top["jobs"]]
    priors = Priors()
    for where, job in jobs:
        try:
            run(job, where, priors)
        except (ValueError, TypeError, RuntimeError, OSError) as err:
            raise ValueError(f"{where}: {err}") from err


def main(args: list[str]) -> int:
    if len(args) != 1:
        print("usage: python3 -m ddiff_torch.twin JOBDIR", file=sys.stderr)
        return 2
    try:
        run_folder(Path(args[0]))
    except ValueError as err:
        print(f"twin: {err}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
