"""Write reference values for the statistics of the report: scipy's and statsmodels' figures on synthetic data.

    python3 tools/statistics_vectors.py internal/report/statistic/testdata/statistics.json

Needs numpy, scipy and statsmodels. The file that is in the repository was made with scipy 1.17.1 and statsmodels 0.15.0.
"""

import json
import sys

import numpy as np
from scipy import stats
from statsmodels.regression.linear_model import OLS
from statsmodels.stats.multitest import multipletests


def clustered(values, groups):
    """Mean and half-width: ordinary least squares on a constant, cluster-robust, t with clusters - 1 degrees of freedom."""
    fit = OLS(values, np.ones(len(values))).fit(cov_type="cluster", cov_kwds={"groups": groups}, use_t=True)
    low, high = fit.conf_int()[0]
    return {"values": list(values), "groups": [int(g) for g in groups], "mean": fit.params[0], "half": (high - low) / 2}


def main(path):
    rng = np.random.default_rng(7)
    means = []
    for clusters, largest in [(2, 1), (6, 1), (2, 3), (5, 4), (40, 3)]:
        groups = np.repeat(np.arange(clusters), rng.integers(1, largest + 1, clusters))
        values = 25 + rng.normal(0, 2, clusters)[groups] + rng.normal(0, 0.5, len(groups))
        order = rng.permutation(len(groups))
        means.append(clustered(values[order], groups[order]))

    signs = []
    for n in [1, 2, 3, 6, 10, 25, 50, 51, 120]:
        d = rng.normal(0.3, 1, n)
        signs.append(d)
        signs.append(np.round(d, 1))  # with ties and zeros
    tests = [{"differences": list(d), "p": float(stats.wilcoxon(d).pvalue)} for d in signs if np.any(d != 0)]

    families = []
    for n in [1, 2, 8, 30]:
        p = np.concatenate([rng.uniform(0, 0.06, n // 2), rng.uniform(0, 1, n - n // 2)])
        p[-1] = p[0]  # a tie
        families.append({"p": list(p), "adjusted": list(multipletests(p, method="holm")[1])})

    quantiles = {str(df): float(stats.t.ppf(0.975, df)) for df in [1, 2, 3, 5, 10, 50, 199, 200, 201, 1000, 100000]}
    with open(path, "w", encoding="utf-8") as out:
        json.dump({"quantiles": quantiles, "means": means, "signed_rank": tests, "holm": families}, out, indent=1)
        out.write("\n")


if __name__ == "__main__":
    main(sys.argv[1])
