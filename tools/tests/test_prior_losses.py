"""The measures of where a prior is weak, against cases with a known answer."""

from __future__ import annotations

import numpy as np
import prior_losses
import pytest


def test_bands_divide_the_energy() -> None:
    x = np.random.default_rng(1).random((32, 32, 3))
    assert sum(prior_losses.spectrum(x)) == pytest.approx((x**2).sum())


def test_a_wave_has_its_energy_in_the_band_of_its_frequency() -> None:
    wave = np.cos(2 * np.pi * 0.1875 * np.arange(32))[None, :, None] * np.ones((32, 1, 3))
    shares = np.array(prior_losses.spectrum(wave)) / (wave**2).sum()
    assert shares == pytest.approx([0, 0, 0, 1, 0], abs=1e-12)


def test_an_estimate_is_clipped_and_has_the_layout_of_the_picture() -> None:
    seen = []

    def prior(x: np.ndarray, t: int) -> np.ndarray:
        seen.append((x.dtype, x.shape, t))
        return np.concatenate([np.full((1, 1, 16, 24), v, np.float32) for v in (-3, 0, 0.5)], axis=1)

    z = prior_losses.estimate(prior, np.zeros((16, 24, 3)), 500, 1)
    assert seen == [(np.float32, (1, 3, 16, 24), 500)]
    assert z[0, 0] == pytest.approx([0, 0.5, 0.75]) and z.shape == (16, 24, 3)
