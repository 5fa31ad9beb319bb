"""The linear part of the network: the bands, and the estimates against the conditional mean."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from ddiff_torch.wiener import BANDS, Wiener
from prior_training.loop import SPECTRUM
from prior_training.spectrum import measure

FLAT = (1.0,) * BANDS


def test_bands_sum_to_the_image() -> None:
    """With infinite S all of x is image; with S = 0 all of x is noise."""
    x = torch.randn(2, 3, 8, 24, generator=torch.Generator().manual_seed(1))
    t = torch.tensor([3, 700])
    none, all_of_it = (Wiener(0.0, *[(s,) * BANDS] * 2, FLAT) for s in (0.0, 1e12))
    signal, noise = none.signal[t][:, None, None, None], none.noise[t][:, None, None, None]
    eps, z = none(x, t)
    torch.testing.assert_close(eps, x / noise, rtol=1e-5, atol=1e-4)
    torch.testing.assert_close(z, torch.zeros_like(x), rtol=0, atol=1e-5)
    eps, z = all_of_it(x, t)
    torch.testing.assert_close(eps, torch.zeros_like(x), rtol=0, atol=1e-4)
    torch.testing.assert_close(z, x / signal, rtol=1e-4, atol=1e-4)


def test_the_estimates_agree() -> None:
    """x = sqrt(abar) z + sqrt(1-abar) eps."""
    wiener = SPECTRUM.wiener()
    x = torch.randn(4, 3, 40, 16, generator=torch.Generator().manual_seed(2))
    t = torch.tensor([0, 80, 500, 999])
    eps, z = wiener(x, t)
    together = wiener.signal[t][:, None, None, None] * z + wiener.noise[t][:, None, None, None] * eps
    torch.testing.assert_close(together, x, rtol=0, atol=1e-5)


def test_white_images_get_the_conditional_mean() -> None:
    """For independent normal pixels with another variance for grey, every band has the same S."""
    generator = torch.Generator().manual_seed(3)
    mean, grey, chroma = -0.2, 0.3, 0.05
    wiener = Wiener(mean, *((3 * s,) * (BANDS - 1) + (3 * s / (24 * 32),) for s in (grey, chroma)), FLAT)
    x = torch.randn(2, 3, 24, 32, generator=generator)
    t = torch.tensor([40, 600])
    a, b = wiener.signal[t][:, None, None, None], wiener.noise[t][:, None, None, None]
    centred = x - a * mean
    part = centred.mean(1, keepdim=True)
    _, z = wiener(x, t)
    want = mean + a * 3 * grey / (a**2 * 3 * grey + b**2) * part
    want = want + a * 3 * chroma / (a**2 * 3 * chroma + b**2) * (centred - part)
    torch.testing.assert_close(z, want.expand_as(z), rtol=0, atol=1e-4)


def test_flat_images_get_the_conditional_mean() -> None:
    """For flat images with a normal colour, any other spectrum of the mean has a larger error."""
    generator = torch.Generator().manual_seed(6)
    mean, grey, chroma = -0.1, 0.3, 0.1
    parts = torch.randn(4000, 3, generator=generator)
    colours = mean + chroma * (parts - parts.mean(1, keepdim=True)) + grey * torch.randn(4000, 1, generator=generator)
    s_grey, s_chroma = 3 * grey**2, chroma**2  # over those of noise: 1/3 for grey, 2/3 in each channel for the rest
    t = torch.full((4000,), 600)

    def error(of_grey: float, of_chroma: float) -> float:
        wiener = Wiener(mean, (0.0,) * (BANDS - 1) + (of_grey,), (0.0,) * (BANDS - 1) + (of_chroma,), FLAT)
        a, b = wiener.signal[600], wiener.noise[600]
        noise = torch.randn(4000, 3, 8, 8, generator=torch.Generator().manual_seed(7))
        _, z = wiener(a * colours[:, :, None, None] + b * noise, t)
        return float((z - colours[:, :, None, None]).square().mean())

    best = error(s_grey, s_chroma)
    assert best < 0.15 * error(1e6, 1e6)
    for factor in (0.3, 3):
        assert best < error(s_grey * factor, s_chroma)
        assert best < error(s_grey, s_chroma * factor)


def test_left_is_the_error_of_eps() -> None:
    """The error for white images is known: E (eps - eps')^2 = abar S / (abar S + 1 - abar)."""
    share = (0.78, 0.1, 0.06, 0.03, 0.02, 0.01 - 1 / 4096, 1 / 4096)
    wiener = Wiener(0.0, *[(0.5,) * (BANDS - 1) + (0.5 / 4096,)] * 2, share)
    a = wiener.signal.square()
    torch.testing.assert_close(wiener.left, (a * 0.5 / (a * 0.5 + 1 - a)).sqrt())


class _Normal:
    """Crops of independent pixels with variance 0.3 on flat colours with variance 0.04, in grey and one colour difference."""

    def batch(self, rng: np.random.Generator, count: int, side: int) -> torch.Tensor:
        grey, red = rng.normal(0, 0.2, (2, count, 1, 1, 1))
        flat = grey + red * np.array([1, -1, 0]).reshape(3, 1, 1)
        return torch.from_numpy((0.1 + flat + rng.normal(0, 0.3**0.5, (count, 3, side, side))).astype(np.float32))


def test_measured_on_normal_pictures() -> None:
    spectrum = measure(_Normal(), crops=500, side=64)
    assert spectrum.mean == pytest.approx(0.1, abs=0.02)
    for part in (spectrum.grey, spectrum.chroma):
        assert part[:3] == pytest.approx([0.3] * 3, rel=0.05)
    assert spectrum.grey[-1] == pytest.approx(3 * 0.04, rel=0.15)  # grey of white noise has a variance of 1/3
    assert spectrum.chroma[-1] == pytest.approx(0.04, rel=0.15)  # 2/3 of 0.04 in each channel, against 2/3
    assert sum(spectrum.white) < 1 and spectrum.white[-1] == pytest.approx(1 / 4096, rel=0.01)
