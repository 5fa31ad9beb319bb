#!/usr/bin/env python3
"""Compares DDiff and DPIR with other methods on photographs with which hardly a value of a setting was chosen: the command behind `make quality`.

    python3 tools/quality.py [--campaign FILE --diffpir] [--out DIR] [--data FILE] [--photographs DIR | --set NAME] [--no-bm3d] [flags of ddiff run]

It runs examples/methods/quality.yaml: each method has the settings of the preset natural, ddiff and dpir with its evaluations of the network, at
most 100 per image, the others with 100; and late.yaml, DiffPIR with the late start of ddiff: diffpir_late has the mean scores of five runs, diffpir_mean the mean picture
of the five. A rerun resumes. The PSNR of phase retrieval is that of the better of both rotations, in the mean over the runs.
Each row of the table is a cell: a task with its parameters and noise, the mean PSNR of each method in dB, and by how much ddiff, and dpir, is ahead of
the best other method, with the 95 % interval of the paired difference (Student's t). A second table has the axes beside PSNR, means over the cells that all methods
have: SSIM, HaarPSI, the gradient energy of the result over that of the truth (1: as sharp, noise included), evaluations of the network and seconds of the solver.
The lines before the last count the verdicts of docs/evidence.md on PSNR over the cells, and the images of
all cells that ddiff made better than their measurement, of those with a picture to compare with. The last line counts the cells with the highest mean PSNR:

    cells=N ddiff_highest=N dpir_highest=N worst_behind_db=X vs_bm3d_db=X photographs=N

worst_behind_db is that of ddiff. vs_bm3d_db is the mean difference to BM3D with the true noise level (package bm3d), over the cells of denoise. --data writes the
scores of each photograph. The photographs are eight of two packages of Debian 12, with which the bundled prior was not trained. Where they
showed a loss, other settings were looked for on other photographs, and two numbers of steps were raised (docs/tuning.md). --set last has twelve that led to no choice, and
were run again after each change; --set once has eight that were run once, on 2026-11-27. --set many has fifty (to .cache/many-photographs), on which only
two settings for wide blurs were tried, nine tasks at one noise (many.yaml): ddiff, dpir, and DiffPIR with the late start (many-late.yaml).

--check recomputes the published figures, and applies docs/evidence.md to the fifty: in the last line, relevant_ahead and relevant_behind count the tasks, metrics and sides in which ddiff is
ahead of dpir and behind it, and worst_photograph_db is by how much it is behind on one photograph:

    counts=N equal=N relevant_ahead=N relevant_behind=N metrics=N worst_photograph_db=X
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

import campaigns
import numpy as np
import published
import rules
from classical_methods import bm3d_denoiser, psnr, read
from PIL import Image
from prior_training.photographs import Photograph, download
from prior_training.photographs import read as read_photograph

ANIMALS = "usr/share/gcompris-qt/rcc/explore_world_animals.rcc:"
PHOTOGRAPHS = (
    Photograph("gcompris-qt-data", ANIMALS + "kangaroo.webp", "GFDL-NIV-1.2", "fir0002/Flagstaffotos"),
    Photograph("gcompris-qt-data", ANIMALS + "chameleon.webp", "CC-BY-SA-2.0", "Laika ac"),
    Photograph("gcompris-qt-data", ANIMALS + "polar_bear.webp", "CC-BY-SA-4.0", "Arturo de Frias Marques"),
    Photograph("gcompris-qt-data", ANIMALS + "scarlet_macaw.webp", "CC-BY-SA-2.0", "Jar0d"),
    Photograph("gcompris-qt-data", ANIMALS + "dragon.webp", "CC-BY-SA-3.0", "Raul654"),
    Photograph("gcompris-qt-data", ANIMALS + "koala.webp", "CC-BY-SA-3.0", "David Iliff"),
    Photograph("gcompris-qt-data", ANIMALS + "lemur.webp", "CC-BY-SA-3.0", "Sannse"),
    Photograph("lomiri-wallpapers-20.04", "usr/share/backgrounds/Fossa_by_Jasper_Roks.jpg", "CC-BY-SA-3.0", "Jasper Roks"),
)

QUALITY, MANY = (campaigns.REPO / f"examples/methods/{name}.yaml" for name in ("quality", "many"))
LATE = {QUALITY: QUALITY.with_name("late.yaml"), MANY: MANY.with_name("many-late.yaml")}
RESOURCES = "usr/share/gcompris-qt/rcc/{}.rcc:{}.webp"


def gcompris(**folders: str) -> tuple[Photograph, ...]:
    """Photographs of gcompris-qt-data by resource file. The package states no authors for these files, its terms are GPL-3+."""
    return tuple(
        Photograph("gcompris-qt-data", RESOURCES.format(folder, name), "GPL-3+", "KDE, GCompris") for folder, names in folders.items() for name in names.split()
    )


SETS = {
    "quality": PHOTOGRAPHS,
    # Every seventh monument and every second farm animal by name.
    "last": gcompris(
        explore_monuments="ajantaCave canyondeChelly christTheRedeemer goldenTemple machuPicchu palaisdesPapes rocamadour",
        explore_farm_animals="cat cow duck owl sheep",
    ),
    # Every fourteenth monument from the fourth on, and the other farm animals.
    "once": gcompris(explore_monuments="bentPyramid eiffelTower mountRushmore tajMahal", explore_farm_animals="chicken dog horse pig"),
    # All animals of erase, and of the monuments that the project had not used every second and the last by name.
    "many": gcompris(
        erase="alpaca bee butterfly calf camels caterpillar chamaeleon cheetah crab dolphin flying_fox gibbon giraffe goat gorilla gosling heron horse "
        "kingfisher kitten long_nosed_monkey macaque meerkats northern_harrier nubian_ibex penguin pika red_panda rhinoceros spoonbills squirrel swans toucan",
        explore_monuments="aulaPalatina brandenburgGate castillodeSanMarcos chateaudeChambord chichenItza colosseum georgeWashingtonBirthplace greatStupa "
        "konarkSunTemple meidumPyramid navajo petra qutubMinar redPyramid statueofLiberty victoriaMemorial wormsCathedral",
    ),
}

OURS = ("ddiff", "dpir")
# The axes of the comparison by their column of results.csv, with the digits of a mean.
AXES = {"psnr": 2, "ssim": 3, "haarpsi": 3, "gradient_energy": 2, "network": 1, "seconds": 2}

Cell = tuple[str, str, str]  # task, parameters, noise
Row = dict[str, str]


def fetch(photographs: tuple[Photograph, ...], folder: Path) -> None:
    """Writes the photographs as PNG files, once."""
    if len(list(folder.glob("*.png"))) == len(photographs):
        return
    packages = campaigns.REPO / ".cache/quality-photographs-packages"
    download(packages, {p.package for p in photographs})
    folder.mkdir(parents=True, exist_ok=True)
    for p in photographs:
        image = read_photograph(p, packages)
        image.thumbnail((1024, 1024), Image.Resampling.LANCZOS)
        image.save(folder / f"{Path(p.name).stem}.png")


def cells(rows: list[Row]) -> dict[Cell, dict[str, dict[str, Row]]]:
    """The rows by cell, method and image, with the mean scores and costs of the runs."""
    runs: dict[tuple[Cell, str, str], list[Row]] = defaultdict(list)
    for r in rows:
        runs[(r["task"], r["params"], r["sigma"]), r["method"], r["image"]].append(r)
    out: dict[Cell, dict[str, dict[str, Row]]] = defaultdict(lambda: defaultdict(dict))
    for (cell, method, image), of in runs.items():
        if len({r["run"] for r in of}) < len(of):
            raise ValueError(f"{' '.join(cell)}, {method}, {image}: several settings; want one for a cell and method")
        out[cell][method][image] = of[0] | {a: str(np.mean([float(r[a]) for r in of])) for a in AXES if of[0].get(a)}
    return out


def compare(methods: dict[str, dict[str, Row]], ours: str) -> tuple[dict[str, float], list[float]]:
    """The mean PSNR by method, and the differences of one of them to the best other method by image."""
    scores = {method: {image: float(images[image]["psnr"]) for image in sorted(images)} for method, images in methods.items()}
    means = {method: float(np.mean(list(of.values()))) for method, of in scores.items()}
    other = max((m for m in means if m != ours), key=lambda m: means[m])
    return means, [v - scores[other][image] for image, v in scores[ours].items()]


def rotated(rows: list[Row], out: Path) -> list[Row]:
    """The rows; those of phase retrieval, whose measurement does not tell a rotation by 180°, with the PSNR of the better rotation."""
    for r in rows:
        if r["task"] == "phase_retrieval":
            item = out / "items" / r["item"]
            turned = psnr(read(item / "restored.png")[::-1, ::-1], read(item / "truth.png"))
            r["psnr"] = str(max(float(r["psnr"]), turned))
    return rows


def energy(image: np.ndarray) -> float:
    """The sum of the squared differences of neighbouring samples."""
    return float(sum(np.square(np.diff(image, axis=axis)).sum() for axis in (0, 1)))


def sharpness(rows: list[Row], out: Path) -> list[Row]:
    """The rows with gradient_energy, that of the result over that of the truth."""
    for r in rows:
        item = out / "items" / r["item"]
        r["gradient_energy"] = str(energy(read(item / "restored.png")) / energy(read(item / "truth.png")))
    return rows


def averaged(rows: list[Row], out: Path) -> list[Row]:
    """The rows of several runs, of the method NAME_late, and those of the mean picture of the runs, of NAME_mean, with the sum of their costs. A mean picture
    has no SSIM and no HaarPSI."""
    runs: dict[tuple[str, ...], list[Row]] = defaultdict(list)
    for r in rows:
        runs[r["task"], r["params"], r["sigma"], r["image"], r["method"]].append(r)
    means = []
    for of in runs.values():
        mean = np.mean([read(out / "items" / r["item"] / "restored.png") for r in of], axis=0)
        truth = read(out / "items" / of[0]["item"] / "truth.png")
        means.append(of[0] | {
            "method": of[0]["method"] + "_mean", "psnr": str(psnr(mean, truth)), "ssim": "", "haarpsi": "",
            "gradient_energy": str(energy(mean) / energy(truth)), **{cost: str(sum(float(r[cost]) for r in of)) for cost in ("network", "seconds")},
        })  # fmt: skip
    return [r | {"method": r["method"] + "_late"} for r in rows] + means


def axes(table: dict[Cell, dict[str, dict[str, Row]]], names: list[str]) -> str:
    """The table of all axes, means over the cells that all methods have."""
    common = [methods for methods in table.values() if all(m in methods for m in names)]
    if not common:
        return "No cell has all methods."
    lines = [f"Means over the {len(common)} cells of all methods:\n", f"| method | {' | '.join(AXES)} |", "|---" * (len(AXES) + 1) + "|"]
    for m in names:
        rows = [r for methods in common for r in methods[m].values()]
        means = (f"{np.mean([float(r[a]) for r in rows]):.{digits}f}" if all(r.get(a) for r in rows) else "–" for a, digits in AXES.items())
        lines.append(f"| {m} | {' | '.join(means)} |")
    return "\n".join(lines)


def ahead_of_bm3d(rows: list[Row], out: Path) -> float:
    """The mean difference in PSNR of ddiff to BM3D on the stored measurements of denoise, NaN without the package."""
    denoise = bm3d_denoiser()
    ours = [r for r in rows if r["task"] == "denoise" and r["method"] == "ddiff"]
    if denoise is None or not ours:
        return float("nan")
    differences = []
    for r in ours:
        item = out / "items" / r["item"]
        noisy = np.load(item / "measurement.npy").reshape(3, *read(item / "truth.png").shape[:2]).transpose(1, 2, 0) / 2 + 0.5
        differences.append(float(r["psnr"]) - psnr(denoise(noisy, float(r["sigma"]) / 2), read(item / "truth.png")))
    return float(np.mean(differences))


def report(rows: list[Row], bm3d: float) -> str:
    """The table and the last lines."""
    good, worst, better, of = dict.fromkeys(OURS, 0), 0.0, 0, 0
    family: list[tuple[str, list[float]]] = []
    names = sorted({r["method"] for r in rows}, key=lambda m: (m not in OURS, m))
    table = cells(rows)
    ahead_of = [m for m in OURS if m in names]
    lines = [f"| task | parameters | sigma | {' | '.join(names)} | {' | '.join(m + ' ahead' for m in ahead_of)} |", "|---" * (len(names) + 3 + len(ahead_of)) + "|"]
    for (task, params, sigma), methods in table.items():
        differences = []
        for ours in ahead_of:
            if ours not in methods:
                differences.append("–")
                continue
            means, by_image = compare(methods, ours)
            ahead, half = campaigns.mean(by_image)
            good[ours] += ahead >= 0
            differences.append(f"{ahead:+.2f} ± {half:.2f}")
            if ours == "ddiff":
                worst = min(worst, ahead)
                family.append(("psnr", by_image))
        measured = [r for r in methods["ddiff"].values() if r["baseline_psnr"]]
        better += sum(float(r["psnr"]) > float(r["baseline_psnr"]) for r in measured)
        of += len(measured)
        scores = " | ".join(f"{means[m]:.2f}" if m in means else "–" for m in names)
        lines.append(f"| {task} | {params} | {sigma} | {scores} | {' | '.join(differences)} |")
    lines.append("\n" + axes(table, names))
    found = rules.verdicts(family)
    lines.append("\nAgainst the best other method ddiff is, in PSNR: " + ", ".join(f"{v} in {found.count(v)}" for v in rules.VERDICTS) + " cells.")
    lines.append(f"Of {of} pictures ddiff made {better} better than their measurement.")
    lines.append(f"cells={len(table)} ddiff_highest={good['ddiff']} dpir_highest={good['dpir']} worst_behind_db={abs(worst):.2f} "
                 f"vs_bm3d_db={bm3d:.2f} photographs={len({r['image'] for r in rows})}")
    return "\n".join(lines)


def data(rows: list[Row]) -> str:
    """The scores of each photograph, as a table."""
    lines = ["task,params,sigma,image,method,evaluations,psnr,ssim,haarpsi,gradient_energy"]
    for (task, params, sigma), methods in cells(rows).items():
        for method, images in methods.items():
            for image, r in sorted(images.items()):
                scores = ",".join(f"{float(r[a]):.{digits}f}" if r[a] else "" for a, digits in (("psnr", 3), ("ssim", 4), ("haarpsi", 4), ("gradient_energy", 3)))
                lines.append(f"{task},{params},{sigma},{image},{method},{float(r['network']):g},{scores}")
    return "\n".join(lines) + "\n"


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False)
    parser.add_argument("--out", type=Path, help="folder of the outputs; default: out/quality, or out/quality-NAME of --set")
    parser.add_argument("--data", type=Path, help="file for the PSNR of each photograph, CSV")
    parser.add_argument("--program", type=Path, default=campaigns.REPO / "bin/ddiff", help="the ddiff program")
    parser.add_argument("--campaign", type=Path, help="another grid")
    parser.add_argument("--diffpir", action="store_true", help="compare with DiffPIR only")
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--photographs", type=Path, help="folder of other photographs")
    which.add_argument("--set", choices=SETS, default="quality", help="photographs that are downloaded")
    parser.add_argument("--no-bm3d", action="store_true", help="leave out BM3D, whose licence permits research only")
    parser.add_argument("--check", action="store_true", help="run nothing: recompute the published figures from docs/data, by the rules of docs/evidence.md")
    options, flags = parser.parse_known_args(argv)
    if options.check:
        counts, wrong = published.check(published.pages())
        print(*wrong, f"counts={counts} equal={counts - len(wrong)} {published.summary()}", sep="\n")
        return int(bool(wrong))
    out = options.out or campaigns.REPO / ("out/quality" if options.set == "quality" else f"out/quality-{options.set}")
    photographs = options.photographs
    if photographs is None:
        photographs = campaigns.REPO / f".cache/{options.set}-photographs"
        fetch(SETS[options.set], photographs)
    shared = ["--images", str(photographs), *flags]
    campaign = options.campaign or (MANY if options.set == "many" else QUALITY)
    runs = {"ours": ["--method", ",".join(OURS)]}
    if campaign != MANY:
        runs["equal"] = ["--method", "diffpir" if options.diffpir else "diffpir,ddrm", "--steps", "100"]
        if not options.diffpir:
            runs["daps"] = ["--method", "daps", "--steps", "50", "--set", "ode_steps=2"]  # a step has two evaluations
    grids = dict.fromkeys(runs, campaign)
    if campaign in LATE and not options.diffpir:
        runs["late"], grids["late"] = [], LATE[campaign]
    complete, outputs = True, [out / name for name in runs]
    for folder, grid, selected in zip(outputs, grids.values(), runs.values()):
        complete &= campaigns.run(options.program, str(grid), *shared, "--out", str(folder), *selected)
    if not complete:
        raise ValueError(f"items failed or are dead: results.csv in the folders of {out} has the reasons. There is no table without them")
    rows = []
    for folder in outputs:
        found = sharpness(rotated(campaigns.table((folder / "results.csv").read_text()), folder), folder)
        rows += averaged(found, folder) if folder.name == "late" else found
    if options.data:
        options.data.write_text(data(rows))
    print(report(rows, float("nan") if options.no_bm3d else ahead_of_bm3d(rows, outputs[0])))
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except (ValueError, OSError, subprocess.CalledProcessError) as err:
        sys.exit(f"quality: {err}")
