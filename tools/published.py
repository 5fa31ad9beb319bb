"""The figures that docs/evidence.md, docs/methods.md and README.md publish about comparisons, recomputed from docs/data: behind `python3 tools/quality.py --check`."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator
from typing import TypeVar

import campaigns
import numpy as np
import rules
from campaigns import REPO

T = TypeVar("T")
WORDS = ("none", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
Row = dict[str, str]


def stored(name: str) -> list[Row]:
    return campaigns.table((REPO / "docs/data" / name).read_text())


def scores(rows: list[Row], metric: str = "psnr") -> dict[tuple[str, str, str], dict[str, dict[str, float]]]:
    """A metric by cell, method and photograph, where the rows have it."""
    out: dict[tuple[str, str, str], dict[str, dict[str, float]]] = defaultdict(lambda: defaultdict(dict))
    for r in rows:
        if r.get(metric):
            out[r["task"], r["params"], r["sigma"]][r["method"]][r["image"]] = float(r[metric])
    return out


def differences(of: dict[str, dict[str, float]], method: str, other: str) -> list[float]:
    """By how much a method is ahead of another one on each photograph of a cell."""
    return [of[method][image] - of[other][image] for image in sorted(of[method])]


def versus(of: dict[str, dict[str, float]], method: str, other: str) -> Row:
    """By how much a method is ahead of another one in a cell, with half the interval of the paired difference."""
    ahead, half = campaigns.mean(differences(of, method, other))
    return {"ahead": str(ahead), "half_width": str(half)}


def pairs(rows: list[Row]) -> dict[tuple[str, str, str], tuple[float, float, float, float]]:
    """By cell the mean PSNR of ddiff and dpir, and by how much ddiff is ahead with half its interval, from the PSNR of each photograph."""
    out = {}
    for cell, of in scores(rows).items():
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
    of = next(of for (task, _, _), of in scores(stored(MANY["256"])).items() if task == "gaussian_deblur")
    wide = {r["image"]: float(r["psnr"]) for r in stored("gaussian-width.csv") if r["photographs"] == "many" and r["settings"].startswith("lambda")}
    test = versus({"ddiff": wide, "dpir": of["dpir"]}, "ddiff", "dpir")
    return f"{float(test['ahead']):.2f}", f"{float(test['half_width']):.2f}"


def many(rows: list[Row]) -> list[str]:
    """The lines of the table of the first of MANY: the mean PSNR of each cell and by how much ddiff is ahead of each other method."""
    others = [m for m in dict.fromkeys(r["method"] for r in rows) if m != "ddiff"]
    lines = [f"| task | `ddiff` | {' | '.join(f'`{m}` | difference' for m in others)} |", "|---" * (2 + 2 * len(others)) + "|"]
    for (task, _, _), of in scores(rows).items():
        means, columns = {m: np.mean(list(of[m].values())) for m in of}, []
        for m in others:
            test = versus(of, "ddiff", m) if m in of else {}
            columns.append(f"{means[m]:.2f} | {signed(float(test['ahead']), float(test['half_width']))}" if test else "– | –")
        lines.append(f"| {task} | {means['ddiff']:.2f} | {' | '.join(columns)} |")
    return lines


def judged(rows: list[Row], other: str) -> dict[tuple[str, str], str]:
    """The verdict of tools/rules.py on ddiff against another method by metric and task: all of them are one family."""
    family = {(metric, task): differences(of, "ddiff", other)
              for metric in rules.RELEVANT for (task, _, _), of in scores(rows, metric).items() if other in of}  # fmt: skip
    return dict(zip(family, rules.verdicts([(metric, d) for (metric, _), d in family.items()])))


def against(by_side: dict[str, list[Row]]) -> list[str]:
    """The lines of the table of MANY: by method and metric, for each side the counts of the verdicts, with the tasks in which ddiff is behind."""
    lines = [f"| `ddiff` against | metric | {' | '.join(by_side)} |", "|---" * (2 + len(by_side)) + "|"]
    for m in (m for m in dict.fromkeys(r["method"] for rows in by_side.values() for r in rows) if m != "ddiff"):
        found = [judged(rows, m) for rows in by_side.values()]
        for metric in (metric for metric in METRICS if any(metric == its for of in found for its, _ in of)):
            cells = []
            for of in ({task: v for (its, task), v in one.items() if its == metric} for one in found):
                counts = ", ".join(str(list(of.values()).count(v)) for v in rules.VERDICTS)
                cells.append(" ".join([counts, *(f"`{task}`" for task, v in of.items() if v == "behind")]) if of else "–")
            lines.append(f"| `{m}` | {METRICS[metric]} | {' | '.join(cells)} |")
    return lines


METRICS = {"psnr": "PSNR", "ssim": "SSIM", "haarpsi": "HaarPSI"}


def worst(side: str, task: str = "") -> float:
    """By how much ddiff is behind dpir in PSNR on one of the fifty photographs, in a task or in all."""
    return -min(min(differences(of, "ddiff", "dpir")) for (name, _, _), of in scores(stored(MANY[side])).items() if task in ("", name))


def summary() -> str:
    """The counts of all tasks, metrics and sides of MANY against dpir, and the photograph on which ddiff is most behind."""
    found = {(side, *key): v for side, name in MANY.items() for key, v in judged(stored(name), "dpir").items()}
    counts = " ".join(f"relevant_{v}={list(found.values()).count(v)}" for v in ("ahead", "behind"))
    return f"{counts} metrics={len({metric for _, metric, _ in found})} worst_photograph_db={max(map(worst, MANY)):.2f}"


# The cells of docs/data/quality-64.csv with the problems of tools/ladder.py at sigma 0.05, by task. It has none of super_resolution_area.
OF_LADDER = {"super_resolution": "factor=4", "gaussian_deblur": "std=3", "inpaint_random": "drop=0.7", "inpaint_box": "size=128"}


def of_the_ladder(every: dict[tuple[str, str, str], dict[str, dict[str, float]]]) -> tuple[tuple[str, str], tuple[str, str, str]]:
    """Of docs/data/ladder.csv: by how much the paper's step is behind natural of ddiff and in how many tasks; and in how many of them dpir was measured too, by how
    much natural without dual variable is behind it there, and by how much dpir, whose PSNR is among that of every cell."""
    rows = [r for r in stored("ladder.csv") if (r["prior"], r["sigma"]) == ("bundled", "0.05")]
    tasks = dict.fromkeys(r["task"] for r in rows)
    both = [task for task in tasks if task != "super_resolution_area"]

    def lost(rung: str, of: list[str]) -> str:
        return f"{np.mean([float(r['mirrored images']) - float(r[rung]) for r in rows if r['task'] in of]):.2f}"

    rival = np.mean([np.mean(differences(found_in(every, task, OF_LADDER.get(task, ""), "0.05"), "ddiff", "dpir")) for task in both])
    return (lost("paper's step", list(tasks)), WORDS[len(tasks)]), (WORDS[len(both)], lost("without dual variable", both), f"{rival:.2f}")


def sharpness() -> list[str]:
    """The gradient energy and the PSNR of super-resolution by 4 with sharpen from 0 to 4, of docs/data/detail.csv."""
    of = [r for r in stored("detail.csv") if (r["params"], r["sigma"], r["method"], r["evaluations"]) == ("factor=4", "0.05", "ddiff", "10")]
    rungs = [[r for r in of if r["settings"] == (f"sharpen={a}" if a else "")] for a in range(5)]
    means = {column: [np.mean([float(r[column]) for r in rows]) for rows in rungs] for column in ("gradient_energy", "psnr")}
    return [f'"{e:.2f}"' for e in means["gradient_energy"]] + [f"{p:.2f}" for p in means["psnr"]]


def pages() -> str:
    return "".join((REPO / name).read_text() for name in ("docs/methods.md", "docs/evidence.md", "docs/methods/ddiff.md", "docs/methods/pnpdm.md", "README.md"))


def figures(page: str) -> Iterator[tuple[str, str, str]]:
    """What the page publishes: the place, the published text, and the one that follows from the data."""
    cells = pairs(stored("quality-ascent.csv"))
    both = [ahead for _, _, ahead, _ in cells.values()]
    photographs = len({r["image"] for r in stored("quality-ascent.csv")})
    step, dual = of_the_ladder(scores(stored("quality-ascent.csv")))
    readme = judged(stored(MANY["64"]), "dpir")
    counted = {(metric, v): WORDS[sum(its == metric and is_ == v for (its, _), is_ in readme.items())] for metric in rules.RELEVANT for v in rules.VERDICTS}
    axes = [f"{np.mean([float(r[a]) for r in stored('quality-ascent.csv') if r['method'] == m]):.{digits}f}"
            for a, digits in (("psnr", 2), ("ssim", 3), ("haarpsi", 3), ("gradient_energy", 2), ("evaluations", 1)) for m in ("ddiff", "dpir")]
    intervals = [f"{extreme(float(r[share]) for r in stored('pnpdm-coverage.csv')):.2f}" for share in ("in_90", "in_50") for extreme in (min, max)]
    for pattern, values in (
        (r"90 % hold (\S+) to (\S+) of the true values, those of 50 % (\S+) to (\S+):", intervals),
        (r"PSNR (\S+) and (\S+) dB, SSIM (\S+) and (\S+), HaarPSI (\S+) and (\S+), gradient energy (\S+) and (\S+) of the truth's, (\S+) and (\S+) evaluations", axes),
        (r"cells=(\d+) ddiff_highest=(\d+) dpir_highest=(\d+) worst_behind_db=(\S+) photographs=(\d+) ",
         (len(cells), sum(a >= 0 for a in both), sum(a <= 0 for a in both), f"{-min(both):.2f}", photographs)),
        (r"in PSNR in (\w+) of nine tasks, tied in (\w+), behind in (\w+), `colorize`; in SSIM ahead in (\w+), in HaarPSI in (\w+), behind in (\w+)",
         (*(counted["psnr", v] for v in ("ahead", "tied", "behind")), counted["ssim", "ahead"], counted["haarpsi", "ahead"], counted["haarpsi", "behind"])),
        (r"with this prior (\S+) dB behind the default, .* in \[(\w+) tasks\]", step),
        (r"In (\w+) of these tasks at 0.05 [^.]* costs (\S+) dB; `dpir`, [^.]* is (\S+) dB behind", dual),
        (r"`nonlinear_deblur` are (\S+), (\S+) and (\S+) dB behind", (f"{worst(side, 'nonlinear_deblur'):.2f}" for side in MANY)),
        (r"the better one is ahead by (\S+) ± (\S+) dB\.", wide_blur()),
        (r"energy\" \[([^,]+), ([^,]+), ([^,]+), ([^,]+), ([^]]+)\]\n.*\n    line \[(\S+), (\S+), (\S+), (\S+), (\S+)\]", sharpness()),
    ):
        found = re.search(pattern, page)
        for i, value in enumerate(values):
            yield pattern, found[i + 1] if found else "", str(value)
    others = {(r["task"], r["params"], r["sigma"]): r for r in stored("quality.csv") if r["side"] == "64"}
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
