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
WORDS = ("none", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
Row = dict[str, str]


def stored(name: str) -> list[Row]:
    return campaigns.table((REPO / "docs/data" / name).read_text())


def tied(rows: list[Row]) -> int:
    """The cells in which ahead and half_width say that the first method is best or tied."""
    return sum(campaigns.best_or_tied(float(r["ahead"]), float(r["half_width"])) for r in rows)


def beyond(rows: list[Row], sign: int) -> list[float]:
    """By how much the first method is ahead (sign 1) or behind (−1) in the cells whose interval excludes zero."""
    return [sign * float(r["ahead"]) for r in rows if sign * float(r["ahead"]) > float(r["half_width"])]


def corrected(rows: list[Row], photographs: int) -> list[bool]:
    """Which of the cells differ with Holm's correction over all of them."""
    return campaigns.holm([campaigns.p_value(float(r["ahead"]), float(r["half_width"]), photographs) for r in rows])


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


def signed(ahead: float, half: float) -> str:
    return f"{ahead:+.2f} ± {half:.2f}".replace("-", "−")


# What a variant of tools/ladder.py changes; the rungs above the first of them change the one before.
VARIED = {"constant step size": "paper's step"} | dict.fromkeys(("half the dual variable", "noise", "noise in the null space"), "mirrored images")


def ladder(rows: list[Row]) -> list[str]:
    """The lines of the table of docs/data/ladder.csv: by prior and noise the mean PSNR of the paper's step over the tasks, and the difference of each rung to the
    one above, of each variant to what it varies, paired by photograph."""
    rungs = [name for name in rows[0] if name not in ("prior", "sigma", "task", "image")]
    columns = {key: [r for r in rows if (r["prior"], r["sigma"]) == key] for key in dict.fromkeys((r["prior"], r["sigma"]) for r in rows)}
    lines = [f"| | {' | '.join(f'{prior}, {sigma}' for prior, sigma in columns)} |", "|---" * (len(columns) + 1) + "|"]
    for rung, above in zip(rungs, ("", *rungs)):
        cells = []
        for of in columns.values():
            means = [np.mean([float(r[rung]) - (float(r[VARIED.get(rung, above)]) if above else 0) for r in of if r["image"] == image])
                     for image in sorted({r["image"] for r in of})]
            cells.append(signed(*campaigns.mean(means)) if above else f"{np.mean(means):.2f}")
        lines.append(f"| {rung} | {' | '.join(cells)} |")
    return lines


# The files of the set many by the side of the photographs.
MANY = {"64": "quality-many.csv", "128": "quality-many-128.csv", "256": "quality-many-256.csv"}


def wide_blur() -> tuple[str, str]:
    """By how much ddiff with the settings of docs/tuning.md for wide blurs is ahead of dpir in Gaussian deblurring at 256x256, with the half width."""
    of = next(of for (task, _, _), of in psnr(stored(MANY["256"])).items() if task == "gaussian_deblur")
    wide = {r["image"]: float(r["psnr"]) for r in stored("gaussian-width.csv") if r["photographs"] == "many" and r["settings"].startswith("lambda")}
    test = versus({"ddiff": wide, "dpir": of["dpir"]}, "ddiff", "dpir")
    return f"{float(test['ahead']):.2f}", f"{float(test['half_width']):.2f}"


def many(rows: list[Row]) -> list[str]:
    """The lines of the table of the first of MANY: the mean PSNR of each cell and by how much ddiff is ahead of each other method."""
    others = [m for m in dict.fromkeys(r["method"] for r in rows) if m != "ddiff"]
    lines = [f"| task | `ddiff` | {' | '.join(f'`{m}` | ahead' for m in others)} |", "|---" * (2 + 2 * len(others)) + "|"]
    for (task, _, _), of in psnr(rows).items():
        means, columns = {m: np.mean(list(of[m].values())) for m in of}, []
        for m in others:
            test = versus(of, "ddiff", m) if m in of else {}
            columns.append(f"{means[m]:.2f} | {signed(float(test['ahead']), float(test['half_width']))}" if test else "– | –")
        lines.append(f"| {task} | {means['ddiff']:.2f} | {' | '.join(columns)} |")
    return lines


def against(by_side: dict[str, list[Row]]) -> list[str]:
    """The lines of the table of MANY: by method and side the counts of the cells, also with Holm's correction over those of the row."""
    lines = ["| `ddiff` against | side | cells | best or tied | ahead | with Holm | behind | with Holm |", "|---" * 8 + "|"]
    for m in (m for m in dict.fromkeys(r["method"] for rows in by_side.values() for r in rows) if m != "ddiff"):
        for side, rows in by_side.items():
            of = [versus(of, "ddiff", m) for of in psnr(rows).values() if m in of]
            kept = [r for r, stays in zip(of, corrected(of, len({r["image"] for r in rows}))) if stays]
            counts = (len(of), tied(of), len(beyond(of, 1)), len(beyond(kept, 1)), len(beyond(of, -1)), len(beyond(kept, -1)))
            lines += [f"| `{m}` | {side} | {' | '.join(map(str, counts))} |"] if of else []
    return lines


# The cells of docs/data/quality-64.csv with the problems of tools/ladder.py at sigma 0.05, by task. It has none of super_resolution_area.
OF_LADDER = {"super_resolution": "factor=4", "gaussian_deblur": "std=3", "inpaint_random": "drop=0.7", "inpaint_box": "size=128"}


def of_the_paper(every: dict[tuple[str, str, str], dict[str, dict[str, float]]]) -> tuple[str, ...]:
    """By how much the paper's step is behind natural of ddiff in docs/data/ladder.csv, in how many tasks, and in how many of how many it is behind and ahead of
    DiffPIR, whose PSNR of these problems is among that of every cell."""
    rows, versus_diffpir = [r for r in stored("ladder.csv") if (r["prior"], r["sigma"]) == ("bundled", "0.05")], []
    tasks = list(dict.fromkeys(r["task"] for r in rows))
    for task in tasks:
        if task != "super_resolution_area":
            step = {r["image"]: float(r["paper's step"]) for r in rows if r["task"] == task}
            versus_diffpir.append(versus({"step": step} | found_in(every, task, OF_LADDER.get(task, ""), "0.05"), "step", "diffpir"))
    first, natural = (np.mean([float(r[rung]) for r in rows]) for rung in ("paper's step", "mirrored images"))
    return f"{natural - first:.2f}", *(WORDS[n] for n in (len(tasks), len(beyond(versus_diffpir, -1)), len(versus_diffpir), len(beyond(versus_diffpir, 1))))


def sharpness() -> list[str]:
    """The gradient energy and the PSNR of super-resolution by 4 with sharpen from 0 to 4, of docs/data/detail.csv."""
    of = [r for r in stored("detail.csv") if (r["params"], r["sigma"], r["method"], r["evaluations"]) == ("factor=4", "0.05", "ddiff", "10")]
    rungs = [[r for r in of if r["settings"] == (f"sharpen={a}" if a else "")] for a in range(5)]
    means = {column: [np.mean([float(r[column]) for r in rows]) for rows in rungs] for column in ("gradient_energy", "psnr")}
    return [f'"{e:.2f}"' for e in means["gradient_energy"]] + [f"{p:.2f}" for p in means["psnr"]]


def pages() -> str:
    return "".join((REPO / name).read_text() for name in ("docs/methods.md", "docs/methods/ddiff.md", "docs/methods/pnpdm.md", "README.md"))


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
    fifty = {m: [versus(of, "ddiff", m) for of in psnr(stored("quality-many.csv")).values()] for m in ("dpir", "diffpir_late", "diffpir_mean")}
    axes = [f"{np.mean([float(r[a]) for r in stored('quality-ascent.csv') if r['method'] == m]):.{digits}f}"
            for a, digits in (("psnr", 2), ("ssim", 3), ("haarpsi", 3), ("gradient_energy", 2), ("evaluations", 1)) for m in ("ddiff", "dpir")]
    intervals = [f"{extreme(float(r[share]) for r in stored('pnpdm-coverage.csv')):.2f}" for share in ("in_90", "in_50") for extreme in (min, max)]
    for pattern, values in (
        (r"90 % hold (\S+) to (\S+) of the true values, those of 50 % (\S+) to (\S+):", intervals),
        (r"PSNR (\S+) and (\S+) dB, SSIM (\S+) and (\S+), HaarPSI (\S+) and (\S+), gradient energy (\S+) and (\S+) of the truth's, (\S+) and (\S+) evaluations", axes),
        (r"cells=(\d+) ddiff_best_or_tied=(\d+) dpir_best_or_tied=(\d+) worst_behind_db=(\S+) photographs=(\d+) ",
         (len(cells), tied(both), tied(swapped), f"{-min(a for _, _, a, _ in cells.values()):.2f}", photographs)),
        (r"`ddiff` is ahead of `dpir` beyond its interval in (\d+) cells, by (\S+) to (\S+) dB, and behind beyond it in (none|\d+)",
         (len(ahead := beyond(both, 1)), f"{min(ahead):.2f}", f"{max(ahead):.2f}", len(beyond(both, -1)) or "none")),
        (r"with Holm's correction over the 24 cells (\d+) of these remains", (sum(corrected(both, photographs)),)),
        (r"of \[`dpir`\]\(docs/methods/dpir.md\), without dual variable, in (\w+) of (\w+) tasks, and behind in (\w+), `colorize`. It is ahead of DiffPIR with as many evaluations in (\w+), and of the mean of five such runs in (\w+)\.",
         (WORDS[len(beyond(fifty["dpir"], 1))], WORDS[len(fifty["dpir"])], WORDS[len(beyond(fifty["dpir"], -1))], *(WORDS[len(beyond(fifty[m], 1))] for m in ("diffpir_late", "diffpir_mean")))),
        (r"with this prior (\S+) dB behind `ddiff` in \[(\w+) tasks\].*, and beyond its interval behind DiffPIR in (\w+) of (\w+), ahead in (\w+);", of_the_paper(every)),
        (r"`ddiff` is (\S+) dB behind `dpir` in `colorize` at 64, (\S+) dB in Gaussian deblurring at 256\.",
         (f"{-float(next(versus(of, 'ddiff', 'dpir')['ahead'] for (task, _, _), of in psnr(stored(MANY[side])).items() if task == name)):.2f}"
          for side, name in (("64", "colorize"), ("256", "gaussian_deblur")))),
        (r"the better one is ahead by (\S+) ± (\S+) dB\.", wide_blur()),
        (r"cells=(\d+) ddiff_best_or_tied=(\d+) dpir_best_or_tied=(\d+) worst_behind_db=(\S+) photographs=8     of all seven",
         (len(every), tied(best["ddiff"]), tied(best["dpir"]), f"{-min(float(r['ahead']) for r in best['ddiff']):.2f}")),
        (r"ahead of that mean beyond its interval in (\d+) of (\d+) cells, .* behind beyond it in (\w+)\.",
         (len(beyond(to_mean, 1)), len(to_mean), WORDS[len(beyond(to_mean, -1))])),
        (r"energy\" \[([^,]+), ([^,]+), ([^,]+), ([^,]+), ([^]]+)\]\n.*\n    line \[(\S+), (\S+), (\S+), (\S+), (\S+)\]", sharpness()),
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
    for line in (*many(stored(MANY["64"])), *against({side: stored(name) for side, name in MANY.items()}), *ladder(stored("ladder.csv"))):
        yield line, line if f"\n{line}\n" in page else "", line


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
