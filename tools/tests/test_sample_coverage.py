from __future__ import annotations

import sample_coverage
import numpy as np


def test_intervals_of_true_samples_hold_their_share() -> None:
    samples, truth = np.split(np.random.default_rng(1).standard_normal((20, 40000)), [19])
    assert abs(sample_coverage.held(samples, truth[0], 0) - 0.9) < 0.01
    assert abs(sample_coverage.held(samples, truth[0], 4) - 0.5) < 0.01


def test_truth_at_an_end_counts_half() -> None:
    samples = np.asarray([[0.0, 0.0, 0.0], [1.0, 1.0, 1.0]])
    assert sample_coverage.held(samples, np.asarray([0.5, 1.0, 2.0]), 0) == 0.5
