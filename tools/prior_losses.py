#!/usr/bin/env python3
"""Finds where a prior is weak: the error of one evaluation by noise level, kind of picture and spatial frequency.

    make tuning-photographs
    python3 tools/prior_losses.py NAME=FILE [NAME=FILE]... > docs/data/prior-losses.csv

Pictures, none of which a prior was trained with: 128x128 squares of the eight tuning photographs, the same at a fifth of their brightness,
the face of examples/images/astronaut.png, and a page of lettering. x_t = sqrt(abar_t) x + sqrt(1-abar_t) noise with the same noise for all
priors, which are any files for ddiff on its default schedule. Rows of the band `all` hold the PSNR in dB of the clipped estimate z. Rows of a band hold the ratio in dB of the energy of the picture to
the energy of the error, over the spatial frequencies from cycles per pixel `low` to `high`, on the photographs: 0 dB means that the band
is lost. The last column is the gain of the last prior over the first. Needs the package
onnxruntime.
"""

from __future__ import annotations

import csv
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
from PIL import Image, ImageDraw, ImageFont, ImageOps

REPO = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(REPO / "tools"))

from ddiff_torch.schedule import alpha_bar  # noqa: E402
from prior_report import named, psnr  # noqa: E402

SIDE = 128
SIGMAS = (5, 15, 25, 50)  # of 255
TIMES = (350, 500, 700, 850, 999)
Prior = Callable[[np.ndarray, int], np.ndarray]  # x_t, float32 [1, 3, H, W], and t to an estimate of the clean image
BANDS = ((0, 1 / 32), (1 / 32, 1 / 16), (1 / 16, 1 / 8), (1 / 8, 1 / 4), (1 / 4, 1))


def square(path: Path) -> np.ndarray:
    """The middle square of a picture, reduced to [SIDE, SIDE, 3] on [0, 1]."""
    square = ImageOps.fit(Image.open(path).convert("RGB"), (SIDE, SIDE), Image.Resampling.LANCZOS)
    return np.asarray(square, dtype=np.float64) / 255


def lettering() -> np.ndarray:
    """A page of black text on white: the top of the licence."""
    page = Image.new("RGB", (SIDE, SIDE), "white")
    ImageDraw.Draw(page).multiline_text((4, 4), (REPO / "LICENSE").read_text(), font=ImageFont.load_default(), fill="black")
    return np.asarray(page, dtype=np.float64) / 255


def kinds() -> dict[str, list[np.ndarray]]:
    """Pictures by kind."""
    files = sorted((REPO / ".cache/tuning-photographs").glob("*.jpg"))
    if not files:
        raise ValueError("no photographs in .cache/tuning-photographs; run make tuning-photographs")
    photographs = [square(f) for f in files]
    return {
        "photographs": photographs,
        "dark": [p / 5 for p in photographs],
        "face": [square(REPO / "examples/images/astronaut.png")[:72, 28:100]],
        "text": [lettering()],
    }


def spectrum(x: np.ndarray) -> list[float]:
    """Energy of [H, W, 3] in each band; the bands together have that of x."""
    power = (np.abs(np.fft.fft2(x, axes=(0, 1), norm="ortho")) ** 2).sum(2)
    radius = np.hypot(np.fft.fftfreq(x.shape[0])[:, None], np.fft.fftfreq(x.shape[1])[None])
    return [float(power[(radius >= low) & (radius < high)].sum()) for low, high in BANDS]


def load(path: Path) -> Prior:
    """The estimate of a prior in an ONNX file with a card."""
    import onnxruntime  # imported here: the tests need none

    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    card = session.get_modelmeta().custom_metadata_map
    x_name, t_name = (i.name for i in session.get_inputs())

    def image(x: np.ndarray, t: int) -> np.ndarray:
        out = session.run(None, {x_name: x, t_name: np.array([t])})[0][:, :3]
        abar = alpha_bar()[t]
        return out if card["ddiff.prediction"] == "sample" else (x - (1 - abar) ** 0.5 * out) / abar**0.5

    return image


def estimate(prior: Prior, x: np.ndarray, t: int, seed: int) -> np.ndarray:
    """The clipped estimate of x, [H, W, 3] on [0, 1], from x_t."""
    abar = float(alpha_bar()[t])
    clean = x.transpose(2, 0, 1)[None].astype(np.float32) * 2 - 1
    noise = np.random.default_rng([seed, t]).standard_normal(clean.shape, dtype=np.float32)
    z = prior((abar**0.5 * clean + (1 - abar) ** 0.5 * noise).astype(np.float32), t)
    return np.clip(z[0].transpose(1, 2, 0) / 2 + 0.5, 0, 1)


def rows(priors: list[Prior]) -> list[list[object]]:
    """Kind, sigma, t, band, and a score of every prior."""
    abar = alpha_bar()
    levels = np.sqrt((1 - abar) / abar)
    times = sorted({int(np.argmin(np.abs(levels - s / 127.5))) for s in SIGMAS} | set(TIMES))
    out: list[list[object]] = []
    for kind, pictures in kinds().items():
        for t in times:
            scores, bands = [], []
            for prior in priors:
                found = [estimate(prior, x, t, i) for i, x in enumerate(pictures)]
                scores.append(float(np.mean([psnr(z, x) for z, x in zip(found, pictures)])))
                truth, error = (np.sum([spectrum(p) for p in of], axis=0)
                                for of in (pictures, [z - x for z, x in zip(found, pictures)]))  # fmt: skip
                bands.append(10 * np.log10(truth / error))
            sigma = f"{127.5 * levels[t]:.3g}"
            out.append([kind, sigma, t, "all", *scores])
            if kind == "photographs":
                out += [[kind, sigma, t, f"{low:.3g} to {high:.3g}", *(b[i] for b in bands)] for i, (low, high) in enumerate(BANDS)]
    return out


def main(argv: list[str]) -> int:
    priors = [named(a) for a in argv]
    names = [name for name, _ in priors]
    writer = csv.writer(sys.stdout, lineterminator="\n")
    writer.writerow(["kind", "sigma", "t", "band", *names, "gain"])
    for *where, first, rest in ([*r[:4], r[4], r[4:]] for r in rows([load(path) for _, path in priors])):
        writer.writerow([*where, *(f"{v:.2f}" for v in rest), f"{rest[-1] - first:+.2f}"])
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except (ValueError, OSError) as err:
        sys.exit(f"prior_losses: {err}")
