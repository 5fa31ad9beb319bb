"""The schedule against numbers computed by hand."""

from __future__ import annotations

import math

import pytest

from ddiff_torch.schedule import alpha_bar, gamma, plan, respaced, sigma

PLAN = dict(steps=5, gamma0=18, t_gamma=500, a=3.3, b=0.1, t0=250, height=128, width=128)


@pytest.mark.parametrize(
    ("steps", "expected"),
    [
        (1, [999]),
        (2, [999, 0]),
        (3, [999, 500, 0]),  # 499.5 is rounded to the even neighbour
        (4, [999, 666, 333, 0]),
        (5, [999, 749, 500, 250, 0]),
        (7, [999, 832, 666, 500, 333, 166, 0]),  # 832.5 and 166.5 are rounded down, 499.5 up
        (10, [999, 888, 777, 666, 555, 444, 333, 222, 111, 0]),
        (1000, list(range(999, -1, -1))),
    ],
)
def test_respaced(steps: int, expected: list[int]) -> None:
    assert respaced(steps) == expected


@pytest.mark.parametrize("steps", [0, -1, 1001])
def test_respaced_refuses(steps: int) -> None:
    with pytest.raises(ValueError, match="steps"):
        respaced(steps)


@pytest.mark.parametrize("steps", [13, 50, 100, 250, 999])
def test_respaced_visits_each_index_once(steps: int) -> None:
    visited = respaced(steps)
    assert len(visited) == steps and visited[0] == 999 and visited[-1] == 0
    assert all(t > s for t, s in zip(visited, visited[1:]))


def test_alpha_bar() -> None:
    abar = alpha_bar()
    assert len(abar) == 1000
    assert abar[0] == pytest.approx(0.9999)
    assert abar[1] == pytest.approx(0.9999 * (1 - 1e-4 - 0.0199 / 999))
    assert abar[999] == pytest.approx(4.0358e-5, rel=1e-4)


def test_sigma_ddpm_is_the_posterior_deviation() -> None:
    abar, beta = alpha_bar(), 1e-4 + 0.0199 * 400 / 999
    expected = math.sqrt(beta * (1 - abar[399]) / (1 - abar[400]))
    assert sigma("ddpm", abar[400], abar[399]) == pytest.approx(expected)


def test_sigma_full() -> None:
    assert sigma("full", 0.2, 0.36) == pytest.approx(0.8)


def test_gamma_steps_down_and_scales_with_the_side() -> None:
    assert gamma(91, 18, 90, 3.3, 0.1, 256, 256) == pytest.approx(59.4)
    assert gamma(90, 18, 90, 3.3, 0.1, 256, 256) == pytest.approx(1.8)
    assert gamma(91, 18, 90, 3.3, 0.1, 128, 32) == pytest.approx(59.4 / 4)


@pytest.mark.parametrize("rule", ["ddpm", "full"])
def test_plan(rule: str) -> None:
    steps = plan(sigma_rule=rule, **PLAN)
    abar = alpha_bar()
    assert [s.t for s in steps] == [999, 749, 500, 250, 0]
    assert [round(s.gamma, 9) for s in steps] == [29.7, 29.7, 0.9, 0.9, 0.9]
    assert [s.sigma > 0 for s in steps] == [True, True, True, False, False]  # t0 = 250
    for step, s in zip(steps, [749, 500, 250, 0]):
        sigma_t = sigma(rule, abar[step.t], abar[s])
        assert step.direction**2 + sigma_t**2 == pytest.approx(1 - abar[s])  # sigma_t is also subtracted when t <= t0
        assert step.signal_next == pytest.approx(math.sqrt(abar[s]))
    assert (steps[-1].signal_next, steps[-1].direction, steps[-1].sigma) == (1, 0, 0)
