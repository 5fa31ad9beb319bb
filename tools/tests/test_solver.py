"""The solver with a Gaussian prior against the same iteration on single numbers.

All pixels of an image are equal, and so are those of x_T and of the noise: every quantity
is one number per image, a norm is sqrt(m) times its absolute value.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from ddiff_torch.onnx_prior import GaussianPrior
from ddiff_torch.operators import Measurement, measurement
from ddiff_torch.random_inputs import picture
from ddiff_torch.solver import METHODS, Config, Curves, solve

MEAN, VAR, STEPS, SIDE = 0.2, 0.09, 12, 8
PIXELS = 3 * SIDE * SIDE


def config(**changes: object) -> Config:
    values = dict(
        method="ddiff", steps=STEPS, gamma0=4.0, t_gamma=300, a=3.3, b=0.4, t0=100, sigma_rule="ddpm", gradient="norm"
    )
    return Config(**{**values, **changes})


def recursion(c: Config, x_T: float, y: float, eps: list[float]) -> tuple[float, dict[str, list[float]]]:
    """Algorithm 1 and its variants on one number, A the identity."""
    abar, product = [], 1.0
    for i in range(1000):
        product *= 1 - (1e-4 + (0.02 - 1e-4) * i / 999)
        abar.append(product)
    order = [round(999 * i / (c.steps - 1)) for i in range(c.steps)][::-1]
    curves: dict[str, list[float]] = {k: [] for k in ("data_norm", "primal", "dual")}
    x_t, u = x_T, 0.0
    for k, t in enumerate(order):
        a_t, a_s = abar[t], abar[order[k + 1]] if k + 1 < c.steps else 1.0
        given = x_t + u if c.method == "diff_pnp_admm" else x_t
        # E[x_0 | x_t] for x_0 ~ N(MEAN, VAR): the conjugate formula, not by way of eps.
        z = (MEAN * (1 - a_t) + math.sqrt(a_t) * VAR * given) / (a_t * VAR + 1 - a_t)
        z = min(1.0, max(-1.0, z))
        v = z - u
        gamma = c.gamma0 * SIDE / 256 * (c.a if t > c.t_gamma else c.b)
        slope = 2 * (v - y) if c.gradient == "squared" else math.copysign(1, v - y) / math.sqrt(PIXELS)
        x = v - gamma * slope
        if c.method.startswith("diff_pnp"):
            x_t = x
        else:
            if c.sigma_rule == "full":
                sigma = math.sqrt(1 - a_s)
            else:
                sigma = math.sqrt((1 - a_s) / (1 - a_t) * (1 - a_t / a_s))
            e = (x_t - math.sqrt(a_t) * x) / math.sqrt(1 - a_t)
            x_t = math.sqrt(a_s) * (x + u) + math.sqrt(max(0.0, 1 - a_s - sigma**2)) * e
            x_t += sigma * eps[k] if t > c.t0 else 0.0
        if c.method in ("ddiff", "diff_pnp_admm"):
            u = u + x - z
        row = dict(data_norm=y - z, primal=x - z, dual=u)
        for name, value in row.items():
            curves[name].append(abs(value) * math.sqrt(PIXELS))
    return x_t, curves


def constant(values: np.ndarray) -> torch.Tensor:
    """Images (..., 3, SIDE, SIDE) that are constant, from their values."""
    return torch.from_numpy(values)[..., None, None, None].expand(*values.shape, 3, SIDE, SIDE).clone()


@pytest.mark.parametrize("gradient", ["norm", "squared"])
@pytest.mark.parametrize("rule", ["ddpm", "full"])
@pytest.mark.parametrize("method", METHODS)
def test_solver_is_the_scalar_recursion(method: str, rule: str, gradient: str) -> None:
    rng = np.random.default_rng(3)
    starts, ys, noise = rng.standard_normal(2), rng.uniform(-0.8, 0.8, 2), rng.standard_normal((STEPS, 2))
    c = config(method=method, sigma_rule=rule, gradient=gradient)
    curves = Curves()
    identity = Measurement(lambda x: x)
    got = solve(c, GaussianPrior(MEAN, VAR), identity, constant(ys), constant(starts), constant(noise), curves)
    lists = curves.lists()
    for i in range(2):
        expected, series = recursion(c, starts[i], ys[i], noise[:, i].tolist())
        np.testing.assert_allclose(got[i].numpy(), expected, atol=1e-9)
        for name, values in series.items():
            np.testing.assert_allclose([row[i] for row in lists[name]], values, atol=1e-8, err_msg=name)
    assert lists["t"][0] == 999 and lists["t"][-1] == 0


def random_problem(images: int) -> tuple[Measurement, torch.Tensor, torch.Tensor, torch.Tensor]:
    """A, y, x_T and noise of a super-resolution problem on 16x16 pictures."""
    rng = np.random.default_rng(5)
    x = torch.from_numpy(picture(rng, images, 16, 16)).double()
    measured = measurement("super_resolution", {})
    x_T = torch.from_numpy(rng.standard_normal(x.shape))
    noise = torch.from_numpy(rng.standard_normal((STEPS, *x.shape)))
    return measured, measured.forward(x), x_T, noise


def test_an_image_does_not_depend_on_its_batch() -> None:
    measured, y, x_T, noise = random_problem(3)
    prior = GaussianPrior(0.0, 0.25)
    together = solve(config(), prior, measured, y, x_T, noise)
    for i in range(3):
        alone = solve(config(), prior, measured, y[i : i + 1], x_T[i : i + 1], noise[:, i : i + 1])
        torch.testing.assert_close(together[i : i + 1], alone, rtol=0, atol=1e-10)


def test_recording_curves_changes_nothing() -> None:
    measured, y, x_T, noise = random_problem(1)
    prior = GaussianPrior(0.0, 0.25)
    plain = solve(config(), prior, measured, y, x_T, noise)
    assert torch.equal(plain, solve(config(), prior, measured, y, x_T, noise, Curves()))


@pytest.mark.parametrize("rule", ["ddpm", "full"])
def test_data_steps_bring_the_answer_to_the_measurement(rule: str) -> None:
    measured, y, x_T, noise = random_problem(2)

    def misfit(gamma0: float) -> float:
        c = config(sigma_rule=rule, gamma0=gamma0, t0=1, b=1.0)
        x = solve(c, GaussianPrior(0.0, 0.25), measured, y, x_T, noise)
        return (measured.forward(x) - y).norm().item()

    assert misfit(54.0) < 0.9 * misfit(18.0) < 0.9 * misfit(0.0)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"method": "admm"}, "method: 'admm' is not one of"),
        ({"sigma_rule": "ddim"}, "sigma_rule: 'ddim' is not one of"),
        ({"gradient": "mean"}, "gradient: 'mean' is not one of"),
        ({"steps": 0}, "steps: 0 is not between"),
        ({"steps": 4}, "noise: 12 arrays for 4 steps"),
    ],
)
def test_bad_config_is_named(changes: dict[str, object], message: str) -> None:
    measured, y, x_T, noise = random_problem(1)
    with pytest.raises(ValueError, match=message):
        solve(config(**changes), GaussianPrior(0.0, 0.25), measured, y, x_T, noise)
