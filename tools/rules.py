"""The rules of docs/evidence.md: when one method is ahead of another, tied with it or behind."""

from __future__ import annotations

import campaigns
import numpy as np

# The smallest relevant difference of each metric.
RELEVANT = {"psnr": 0.05, "ssim": 0.005, "haarpsi": 0.005}
VERDICTS = ("ahead", "tied", "open", "behind")
MAX_EXACT = {True: 50, False: 13}  # pairs with an exact distribution: without ties and zeros, and with them, as in ddiff report


def signed_rank(differences: list[float]) -> float:
    """The two-sided p of Wilcoxon's signed ranks, as in ddiff report: zeros are left out, ties have their mean rank. 1 without any difference."""
    from scipy import stats  # only here, as in campaigns

    d = np.array([v for v in differences if v != 0])
    if len(d) == 0:
        return 1.0
    ranks = stats.rankdata(np.abs(d))
    lower = min(ranks[d > 0].sum(), ranks[d < 0].sum())
    plain = len(d) == len(differences) == len(set(np.abs(d)))
    if len(differences) > MAX_EXACT[plain]:
        sizes = np.unique(np.abs(d), return_counts=True)[1].astype(float)
        variance = len(d) * (len(d) + 1) * (2 * len(d) + 1) / 24 - (sizes**3 - sizes).sum() / 48
        return float(2 * stats.norm.cdf((lower - ranks.sum() / 2) / np.sqrt(variance)))
    probability = np.zeros(int(2 * ranks.sum()) + 1)  # of twice the sum of the ranks of one sign
    probability[0] = 1
    for rank in (2 * ranks).astype(int):
        probability = (probability + np.concatenate([np.zeros(rank), probability[:-rank]])) / 2
    return min(1.0, float(2 * probability[: int(2 * lower) + 1].sum()))


def verdicts(family: list[tuple[str, list[float]]]) -> list[str]:
    """The verdict on each metric with its differences by photograph: ahead or behind if the mean is relevant, its 95 % interval excludes zero and the test
    stays with Holm's correction over the family; tied if the whole interval is below the relevant difference; open otherwise."""
    out = []
    for (metric, differences), stays in zip(family, campaigns.holm([signed_rank(d) for _, d in family])):
        mean, half = campaigns.mean(differences)
        if stays and abs(mean) >= RELEVANT[metric] and abs(mean) > half:
            out.append("ahead" if mean > 0 else "behind")
        else:
            out.append("tied" if abs(mean) + half <= RELEVANT[metric] else "open")
    return out
