"""The rules of docs/evidence.md, on differences whose verdict is known."""

from __future__ import annotations

import numpy as np
import pytest
import rules
from scipy import stats

EVEN = [k / 10 for k in range(-4, 6)]  # ten numbers about 0.05


@pytest.mark.parametrize(("metric", "differences", "want"), [
    ("psnr", [0.5 + v / 10 for v in EVEN], "ahead"),
    ("psnr", [-0.5 - v / 10 for v in EVEN], "behind"),
    ("psnr", [10 * v + 0.1 for v in EVEN], "open"),  # relevant, not significant
    ("psnr", [0.02 + v / 100 for v in EVEN], "tied"),  # significant, not relevant
    ("psnr", [0.04 + v / 20 for v in EVEN], "open"),  # significant, perhaps relevant
    ("psnr", [0.2 + v / 100 for v in EVEN[:5]], "open"),  # p is 0.06 whatever the size
    ("psnr", [0.1 + v / 100 for v in EVEN] * 3 + [-4.0], "open"),  # one photograph far behind: the interval has zero
    ("psnr", [0.0] * 10, "tied"),
    ("ssim", [0.02 + v / 100 for v in EVEN], "ahead"),
    ("haarpsi", [-0.02 - v / 100 for v in EVEN], "behind"),
])  # fmt: skip
def test_verdict(metric: str, differences: list[float], want: str) -> None:
    assert rules.verdicts([(metric, differences)]) == [want]


def test_family() -> None:
    """Ten of ten photographs have p 2/1024: not below 0.05 among thirty tests."""
    sure = [0.5 + v / 10 for v in EVEN]
    assert rules.verdicts([("psnr", sure)] * 25) == ["ahead"] * 25 and rules.verdicts([("psnr", sure)] * 26) == ["open"] * 26


def test_signed_rank() -> None:
    rng = np.random.default_rng(1)
    for n in (5, 8, 20, 50):
        d = rng.normal(0.3, 1, n)
        assert rules.signed_rank(list(d)) == pytest.approx(stats.wilcoxon(d, mode="exact").pvalue)
    tied = list(rng.integers(-3, 5, 40) / 10)  # ties and zeros: the normal distribution
    assert rules.signed_rank(tied) == pytest.approx(stats.wilcoxon([v for v in tied if v], mode="approx").pvalue)
    assert rules.signed_rank([1, 1, 1]) == 0.25 and rules.signed_rank([1, -1]) == 1 and rules.signed_rank([0, 0]) == 1
