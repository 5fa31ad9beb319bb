"""The figures that docs/methods.md publishes about the comparison on new problems, recomputed from docs/data: behind `python3 tools/quality.py --check`."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator
from typing import TypeVar

import campaigns
from campaigns import REPO

T = TypeVar("T")
Row = dict[str, str]


def stored(name: str) -> list[Row]:
    return campaigns.table((REPO / "docs/data" / name).read_text())


def tied(rows: list[Row]) -> int:
    """The cells in which ahead and half_width say that the first method is best or tied."""
    return sum(campaigns.best_or_tied(float(r["ahead"]), float(r["half_width"])) for r in rows)


def beyond(rows: list[Row], sign: int) -> list[float]:
    """By how much the first method is ahead (sign 1) or behind (−1) in the cells whose interval excludes zero."""
    return [sign * float(r["ahead"]) for r in rows if sign * float(r["ahead"]) > float(r["half_width"])]


def pairs(rows: list[Row]) -> dict[tuple[str, str, str], tuple[float, float, float, float]]:
    """By cell the mean PSNR of ddiff and dpir, and by how much ddiff is ahead with half its interval, from the PSNR of each photograph."""
    psnr: dict[tuple[str, str, str], dict[str, dict[str, float]]] = defaultdict(lambda: defaultdict(dict))
    for r in rows:
        psnr[r["task"], r["params"], r["sigma"]][r["method"]][r["image"]] = float(r["psnr"])
    out = {}
    for cell, of in psnr.items():
        ahead, half = campaigns.mean([of["ddiff"][image] - of["dpir"][image] for image in sorted(of["ddiff"])])
        out[cell] = (*(campaigns.mean(list(of[m].values()))[0] for m in ("ddiff", "dpir")), ahead, half)
    return out


def figures(page: str) -> Iterator[tuple[str, str, str]]:
    """What the page publishes: the place, the published text, and the one that follows from the data."""
    cells = pairs(stored("quality-ascent.csv"))
    both = [{"ahead": str(ahead), "half_width": str(half)} for _, _, ahead, half in cells.values()]
    swapped = [{"ahead": str(-ahead), "half_width": str(half)} for _, _, ahead, half in cells.values()]
    by_side = {side: [r for r in stored("quality.csv") if r["side"] == side] for side in ("64", "128")}
    last, once, regions = stored("quality-last.csv"), stored("quality-once.csv"), [r for r in stored("regions.csv") if r["side"] == "64" and not r["with"]]
    wide, six = stored("quality-256.csv"), stored("quality-512.csv")
    photographs = len({r["image"] for r in stored("quality-ascent.csv")})
    for pattern, values in (
        (r"cells=(\d+) ddiff_best_or_tied=(\d+) dpir_best_or_tied=(\d+) worst_behind_db=(\S+) photographs=(\d+) ",
         (len(cells), tied(both), tied(swapped), f"{-min(a for _, _, a, _ in cells.values()):.2f}", photographs)),
        (r"`ddiff` is ahead of `dpir` beyond its interval in (\d+) cells, by (\S+) to (\S+) dB, and behind beyond it in (none|\d+)",
         (len(ahead := beyond(both, 1)), f"{min(ahead):.2f}", f"{max(ahead):.2f}", len(beyond(both, -1)) or "none")),
        (r"best or tied in (\d+) of 24 cells at 128×128, in (\d+) at 64×64, in (\d+) on twelve further photographs, and in (\d+) on eight",
         (tied(by_side["128"]), tied(by_side["64"]), tied(last), tied(once))),
        (r"ahead beyond its interval in (\d+) cells and behind in (none|\d+)\. Of these", (len(beyond(once, 1)), len(beyond(once, -1)) or "none")),
        (r"At 128×128 `dpir` is ahead beyond its interval in (\d+) cells, by (\S+) to (\S+) dB, at 64×64 in (\d+); behind beyond it in (none|\d+)",
         (len(ahead := beyond(by_side["128"], 1)), f"{min(ahead):.1f}", f"{max(ahead):.1f}", len(beyond(by_side["64"], 1)),
          len(beyond(by_side["128"], -1) + beyond(by_side["64"], -1)) or "none")),
        (r"eight of these cells against DiffPIR: `dpir` is ahead in (all|\d+), beyond its interval in (\w+),",
         ("all" if all(float(r["ahead"]) > 0 for r in wide) else "some", ("none", "one", "two", "three", "four", "five", "six")[len(beyond(wide, 1))])),
        (r"six cells on four photographs: ahead in (all|\d+)", ("all" if all(float(r["ahead"]) > 0 for r in six) else "some",)),
        (r"at 64×64 `dpir` is ahead in (\d+) of (\d+) cells, in (\d+) beyond the interval, and behind beyond it in (none|\d+)",
         (sum(float(r["ahead"]) > 0 for r in regions), len(regions), len(beyond(regions, 1)), len(beyond(regions, -1)) or "none")),
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
    return len(all_), [f"docs/methods.md has {was or 'nothing'}, the data give {value}: {place}" for place, was, value in all_ if was != value]
