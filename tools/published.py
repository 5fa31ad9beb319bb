"""The figures that docs/methods.md and README.md publish about the comparison on new problems, recomputed from docs/data: behind `python3 tools/quality.py --check`."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator
from typing import TypeVar

import campaigns
import numpy as np
from campaigns import REPO

T = TypeVar("T")
WORDS = ("none", "one", "two", "three", "four", "five", "six", "seven", "eight")
Row = dict[str, str]


def stored(name: str) -> list[Row]:
    return campaigns.table((REPO / "docs/data" / name).read_text())


def tied(rows: list[Row]) -> int:
    """The cells in which ahead and half_width say that the first method is best or tied."""
    return sum(campaigns.best_or_tied(float(r["ahead"]), float(r["half_width"])) for r in rows)


def beyond(rows: list[Row], sign: int) -> list[float]:
    """By how much the first method is ahead (sign 1) or behind (−1) in the cells whose interval excludes zero."""
    return [sign * float(r["ahead"]) for r in rows if sign * float(r["ahead"]) > float(r["half_width"])]


def remaining(rows: list[Row], photographs: int) -> int:
    """The cells that differ with Holm's correction over all of them."""
    return sum(campaigns.holm([campaigns.p_value(float(r["ahead"]), float(r["half_width"]), photographs) for r in rows]))


def ahead_of_all(rows: list[Row], method: str) -> list[Row]:
    """By task, by how much a method is ahead of the best other one, from the mean and paired differences of the rows of docs/data/methods-comparison.csv."""
    out = []
    for task in dict.fromkeys(r["task"] for r in rows):
        best = max((r for r in rows if r["task"] == task and r["method"] != method), key=lambda r: float(r["difference"]))
        out.append({"ahead": str(-float(best["difference"])), "half_width": best["half_width"]})
    return out


def psnr(rows: list[Row]) -> dict[tuple[str, str, str], dict[str, dict[str, float]]]:
    """The PSNR by cell, method and photograph."""
    out: dict[tuple[str, str, str], dict[str, dict[str, float]]] = defaultdict(lambda: defaultdict(dict))
    for r in rows:
        out[r["task"], r["params"], r["sigma"]][r["method"]][r["image"]] = float(r["psnr"])
    return out


def versus(of: dict[str, dict[str, float]], method: str, other: str) -> Row:
    """By how much a method is ahead of another one in a cell, with half the interval of the paired difference."""
    ahead, half = campaigns.mean([of[method][image] - of[other][image] for image in sorted(of[method])])
    return {"ahead": str(ahead), "half_width": str(half)}


def pairs(rows: list[Row]) -> dict[tuple[str, str, str], tuple[float, float, float, float]]:
    """By cell the mean PSNR of ddiff and dpir, and by how much ddiff is ahead with half its interval, from the PSNR of each photograph."""
    out = {}
    for cell, of in psnr(rows).items():
        difference = versus(of, "ddiff", "dpir")
        out[cell] = (*(campaigns.mean(list(of[m].values()))[0] for m in ("ddiff", "dpir")), float(difference["ahead"]), float(difference["half_width"]))
    return out


def pages() -> str:
    return "".join((REPO / name).read_text() for name in ("docs/methods.md", "README.md"))


def figures(page: str) -> Iterator[tuple[str, str, str]]:
    """What the page publishes: the place, the published text, and the one that follows from the data."""
    cells = pairs(stored("quality-ascent.csv"))
    both = [{"ahead": str(ahead), "half_width": str(half)} for _, _, ahead, half in cells.values()]
    swapped = [{"ahead": str(-ahead), "half_width": str(half)} for _, _, ahead, half in cells.values()]
    by_side = {side: [r for r in stored("quality.csv") if r["side"] == side] for side in ("64", "128")}
    last, once = stored("quality-last.csv"), stored("quality-once.csv")
    photographs = len({r["image"] for r in stored("quality-ascent.csv")})
    comparison = [r for r in stored("methods-comparison.csv") if r["photographs"] == "examples/images"]
    equal = ahead_of_all([r for r in comparison if r["campaign"] == "equal_cost" and r["size"] == "128"], "ddiff")
    highest = sum(float(r["ahead"]) >= 0 for r in equal)
    every = psnr(stored("quality-64.csv"))
    best = {m: [versus(of, m, max((o for o in of if o != m), key=lambda o: np.mean(list(of[o].values())))) for of in every.values()] for m in ("ddiff", "dpir")}
    to_mean = [versus(of, "ddiff", "diffpir_mean") for of in every.values() if "diffpir_mean" in of]
    axes = [f"{np.mean([float(r[a]) for r in stored('quality-ascent.csv') if r['method'] == m]):.{digits}f}"
            for a, digits in (("psnr", 2), ("ssim", 3), ("haarpsi", 3), ("gradient_energy", 2), ("evaluations", 1)) for m in ("ddiff", "dpir")]
    for pattern, values in (
        (r"PSNR (\S+) and (\S+) dB, SSIM (\S+) and (\S+), HaarPSI (\S+) and (\S+), gradient energy (\S+) and (\S+) of the truth's, (\S+) and (\S+) evaluations", axes),
        (r"cells=(\d+) ddiff_best_or_tied=(\d+) dpir_best_or_tied=(\d+) worst_behind_db=(\S+) photographs=(\d+) ",
         (len(cells), tied(both), tied(swapped), f"{-min(a for _, _, a, _ in cells.values()):.2f}", photographs)),
        (r"`ddiff` is ahead of `dpir` beyond its interval in (\d+) cells, by (\S+) to (\S+) dB, and behind beyond it in (none|\d+)",
         (len(ahead := beyond(both, 1)), f"{min(ahead):.2f}", f"{max(ahead):.2f}", len(beyond(both, -1)) or "none")),
        (r"with Holm's correction over the 24 cells (\d+) of these remains", (remaining(both, photographs),)),
        (r"best or tied in\s+\[(\d+) of (\d+) problems\]", (tied(both), len(cells))),
        (r"cells=(\d+) ddiff_best_or_tied=(\d+) dpir_best_or_tied=(\d+) worst_behind_db=(\S+) photographs=8     of all seven",
         (len(every), tied(best["ddiff"]), tied(best["dpir"]), f"{-min(float(r['ahead']) for r in best['ddiff']):.2f}")),
        (r"ahead of that mean beyond its interval in (\d+) of (\d+) cells, .* behind beyond it in (\w+)\.",
         (len(beyond(to_mean, 1)), len(to_mean), WORDS[len(beyond(to_mean, -1))])),
        (r"`dpir` has the highest mean in (\w+) of (\w+) tasks, .* and is behind beyond it in (\w+)\.",
         (WORDS[highest], WORDS[len(equal)], WORDS[len(beyond(equal, -1))])),
        (r"best or tied in (\d+) of 24 cells at 128×128, in (\d+) at 64×64, in (\d+) on twelve further photographs, and in (\d+) on eight",
         (tied(by_side["128"]), tied(by_side["64"]), tied(last), tied(once))),
    ):
        found = re.search(pattern, page)
        for i, value in enumerate(values):
            yield pattern, found[i + 1] if found else "", str(value)
    others = {(r["task"], r["params"], r["sigma"]): r for r in by_side["64"]}
    for line in re.search(r"\n\| task \| parameters \| sigma \| `ddiff` \| `dpir`.*?\n\n", page, re.DOTALL)[0].strip().splitlines()[2:]:
        task, params, sigma, *texts = (c.strip() for c in line.strip("|").split("|"))
        ddiff, dpir, ahead, half = found_in(cells, task, params, sigma)
        row = found_in(others, task, params, sigma)
        also = [f"{float(row[m]):.2f}" if row.get(m) else "–" for m in ("diffpir", "ddrm", "daps")]
        for text, value in zip(texts, (f"{ddiff:.2f}", f"{dpir:.2f}", f"{ahead:+.2f} ± {half:.2f}".replace("-", "−"), *also)):
            yield line, text, value


def found_in(cells: dict[tuple[str, str, str], T], task: str, params: str, sigma: str) -> T:
    """The cell of a row of the page, which names only the parameters that tell it from others."""
    few = [k for k in cells if k[0] == task and k[2] == sigma and set(filter(None, params.split(";"))) <= set(k[1].split(";"))]
    if len(few) != 1:
        raise ValueError(f"{len(few)} cells are {task} {params} {sigma}")
    return cells[few[0]]


def check(page: str) -> tuple[int, list[str]]:
    """The number of published figures, and a line for each that does not follow from the data."""
    all_ = list(figures(page))
    return len(all_), [f"published is {was or 'nothing'}, the data give {value}: {place}" for place, was, value in all_ if was != value]
