"""The twin's command line: input files, output files, errors."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

from ddiff_torch.onnx_prior import GaussianPrior, NetworkPrior, load
from ddiff_torch.operators import measurement
from ddiff_torch.random_inputs import path_kernel, picture, random_mask
from ddiff_torch.solver import Config, solve
from ddiff_torch.twin import main

TOOLS = Path(__file__).resolve().parents[1]
SOLVER = dict(
    method="ddiff", steps=6, gamma0=10.0, t_gamma=90, a=3.3, b=0.5, t0=50, sigma_rule="ddpm", gradient="norm"
)
GAUSSIAN = {"gaussian": {"mean": 0.0, "var": 0.25}}


def write_job(folder: Path, task: str, **changes: object) -> None:
    """Writes a job on two 16x16 images with the arrays of its task."""
    folder.mkdir(parents=True, exist_ok=True)
    rng = np.random.default_rng(1)
    x = picture(rng, 2, 16, 16)
    kernel = np.stack([path_kernel(rng, 5) for _ in range(2)])
    mask = np.stack([random_mask(rng, 16, 16) for _ in range(2)])
    y = measurement(task, {}, mask=torch.from_numpy(mask), kernel=torch.from_numpy(kernel)).forward(torch.from_numpy(x))
    noise = rng.standard_normal((SOLVER["steps"], *x.shape)).astype(np.float32)
    arrays = dict(x_T=rng.standard_normal(x.shape).astype(np.float32), noise=noise, y=y.numpy())
    if task == "motion_deblur":
        arrays["kernel"] = kernel
    if task == "inpaint":
        arrays["mask"] = mask
    for name, value in arrays.items():
        np.save(folder / f"{name}.npy", value)
    job = {"task": task, "params": {}, "prior": GAUSSIAN, **SOLVER, **changes}
    (folder / "job.json").write_text(json.dumps({k: v for k, v in job.items() if v is not None}))


def array(path: Path) -> torch.Tensor:
    return torch.from_numpy(np.load(path))


def test_jobs_run_in_one_process_and_repeat(tmp_path: Path) -> None:
    for name, task in (("a", "motion_deblur"), ("b", "inpaint"), ("c", "hdr")):
        write_job(tmp_path / name, task)
    (tmp_path / "job.json").write_text(json.dumps({"jobs": ["a", "b", "c"], "threads": 1}))
    command = [sys.executable, "-m", "ddiff_torch.twin", str(tmp_path)]
    done = subprocess.run(command, cwd=TOOLS, capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    first = (tmp_path / "a" / "x.npy").read_bytes()

    folder = tmp_path / "a"
    measured = measurement("motion_deblur", {}, kernel=array(folder / "kernel.npy"))
    y, x_T, noise = (array(folder / f"{n}.npy") for n in ("y", "x_T", "noise"))
    expected = solve(Config(**SOLVER), GaussianPrior(0.0, 0.25), measured, y, x_T, noise)
    torch.testing.assert_close(array(folder / "x.npy"), expected)

    curves = json.loads((folder / "curves.json").read_text())
    assert sorted(curves) == ["data_norm", "dual", "primal", "t"]
    assert curves["t"] == [999, 799, 599, 400, 200, 0]
    assert np.array(curves["primal"]).shape == (6, 2)

    assert main([str(tmp_path)]) == 0
    assert (tmp_path / "a" / "x.npy").read_bytes() == first


def test_network_prior_is_read_from_its_path(tmp_path: Path, prior_path: Path) -> None:
    write_job(tmp_path, "super_resolution", prior=str(prior_path.resolve()))
    assert main([str(tmp_path)]) == 0
    y, x_T, noise = (array(tmp_path / f"{n}.npy") for n in ("y", "x_T", "noise"))
    prior = NetworkPrior(load(prior_path))
    expected = solve(Config(**SOLVER), prior, measurement("super_resolution", {}), y, x_T, noise)
    torch.testing.assert_close(array(tmp_path / "x.npy"), expected, rtol=0, atol=1e-4)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"task": "deblur"}, "task: 'deblur' is not one of"),
        ({"method": None}, "method: field is missing"),
        ({"gama0": 3}, "gama0: no such field"),
        ({"sigma_rule": "ddim"}, "sigma_rule: 'ddim'"),
        ({"prior": "absent.onnx"}, "absent.onnx: No such file"),
        ({"prior": {"gauss": {}}}, "prior: an object must be"),
        ({"params": {"scael": 2}}, "no parameter 'scael'"),
        ({"steps": 7}, "noise: 6 arrays for 7 steps"),
        ({"task": "motion_deblur"}, "kernel.npy: no such file"),
        ({"gradient": "squared", "gamma0": 1e40}, "not finite"),
    ],
)
def test_errors_are_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture, changes: dict[str, object], message: str
) -> None:
    write_job(tmp_path, "hdr")
    job = {**json.loads((tmp_path / "job.json").read_text()), **changes}
    (tmp_path / "job.json").write_text(json.dumps({k: v for k, v in job.items() if v is not None}))
    assert main([str(tmp_path)]) == 2
    err = capsys.readouterr().err
    assert message in err and str(tmp_path) in err and err.count("\n") == 1
    assert not (tmp_path / "x.npy").exists()


def test_errors_of_the_folder(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    assert main([]) == 2
    assert main([str(tmp_path)]) == 2
    (tmp_path / "job.json").write_text("{")
    assert main([str(tmp_path)]) == 2
    usage, absent, broken = capsys.readouterr().err.splitlines()
    assert usage.startswith("usage:") and absent.endswith("job.json: no such file") and "job.json" in broken
