"""Makes the pictures of the documents: degrades bundled photographs, restores them with commands of people, and puts the pictures beside each other.

    python3 tools/gallery.py restore docs/images [PROGRAM]    # docs/photographs.md: each file as found, and restored
    python3 tools/gallery.py files FOLDER                     # the files of docs/photographs.md, for its commands
    python3 tools/gallery.py methods docs/images [PROGRAM]    # docs/methods.md: the methods on one photograph
    python3 tools/gallery.py demo out/demo docs/demo.png      # README: measurements of `make demo` above its restorations
"""

from __future__ import annotations

import json
import math
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import campaigns
import numpy as np
from PIL import Image, ImageDraw
from scipy import ndimage

PHOTOGRAPHS = campaigns.REPO / "examples/images"
GAP, TEXT = 4, 16  # pixels
DEMO = (  # photograph and task of each column, left to right
    ("coffee", "inpaint_random"),
    ("chelsea", "motion_deblur"),
    ("astronaut", "inpaint_box"),
    ("rocket", "hdr"),
    ("retina", "gaussian_deblur"),
    ("coffee", "super_resolution"),
)
METHODS = ("ddiff", "dpir", "diffpir", "ddrm", "ddnm", "pigdm", "daps", "dps")
TASKS = ("gaussian_deblur", "inpaint_random", "super_resolution")


def grid(rows: Sequence[Sequence[Image.Image]], headings: Sequence[str], side: int) -> Image.Image:
    """Pictures in rows below their headings, each scaled to side pixels without interpolation."""
    canvas = Image.new("RGB", (len(headings) * (side + GAP) - GAP, TEXT + len(rows) * (side + GAP) - GAP), "white")
    draw = ImageDraw.Draw(canvas)
    for i, heading in enumerate(headings):
        draw.text((i * (side + GAP), 2), heading, fill="black")
        for j, row in enumerate(rows):
            canvas.paste(row[i].convert("RGB").resize((side, side), Image.NEAREST), (i * (side + GAP), TEXT + j * (side + GAP)))
    return canvas


def items(results: Path, *fields: str) -> dict[tuple[str, ...], Path]:
    """The folders of the items of an output, by fields."""
    read = {path.parent: json.loads(path.read_text())["item"] for path in (results / "items").glob("*/result.json")}
    return {tuple(item[field] for field in fields): folder for folder, item in read.items()}


@dataclass(frozen=True)
class Example:
    """A photograph that is degraded to FILE, and the command that restores it."""

    photograph: str
    command: str
    noise: float = 0.0  # standard deviation, from 0 to 255
    quality: int = 95  # of JPEG
    factor: int = 1  # by which the picture is too small
    kernel: np.ndarray | None = None
    mask: np.ndarray | None = None  # true: observed
    grey: bool = False

    @property
    def file(self) -> str:
        return shlex.split(self.command)[2]

    def named(self, flag: str) -> str:
        """The file that the command names after a flag."""
        words = shlex.split(self.command)
        return words[words.index(flag) + 1]

    def degrade(self, folder: Path, seed: int) -> None:
        """Writes FILE, and the kernel or the mask that the command names."""
        with Image.open(PHOTOGRAPHS / f"{self.photograph}.png") as photograph:
            picture = photograph.convert("L").convert("RGB") if self.grey else photograph.convert("RGB")
        picture = picture.resize((picture.width // self.factor, picture.height // self.factor), Image.BICUBIC)
        x = np.asarray(picture, float)
        if self.kernel is not None:
            x = ndimage.convolve(x, self.kernel[:, :, None], mode="reflect")
            if not self.named("--kernel").startswith("disk:"):
                np.save(folder / self.named("--kernel"), self.kernel.astype(np.float32))
        if self.mask is not None:
            x = np.where(self.mask[:, :, None], x, 255)
            Image.fromarray(255 * self.mask.astype(np.uint8)).save(folder / self.named("--mask"))
        x += self.noise * np.random.default_rng(seed).standard_normal(x.shape)
        options = {"quality": self.quality} if self.file.endswith("jpg") else {}
        Image.fromarray(np.clip(x.round(), 0, 255).astype(np.uint8)).save(folder / self.file, **options)

    def restore(self, folder: Path, program: Path) -> Image.Image:
        """Runs the command in folder."""
        subprocess.run([str(program), *shlex.split(self.command)[1:]], cwd=folder, check=True, stdout=subprocess.DEVNULL)
        (restored,) = folder.glob(Path(self.file).stem + ".restored.*")
        with Image.open(restored) as out:
            return out.convert("RGB")


def disk(radius: float) -> np.ndarray:
    """The blur of a lens out of focus, from sixteen samples a side in each pixel."""
    reach, fine = math.ceil(radius), 16
    at = (np.arange((2 * reach + 1) * fine) + 0.5) / fine - reach - 0.5
    inside = (at[:, None] ** 2 + at[None, :] ** 2 <= radius**2).astype(float)
    kernel = inside.reshape(2 * reach + 1, fine, 2 * reach + 1, fine).mean(axis=(1, 3))
    return kernel / kernel.sum()


def shake(side: int = 17) -> np.ndarray:
    """The path of a hand that moves: an arc."""
    t = np.linspace(0, 1, 400)
    kernel, _, _ = np.histogram2d(side * (0.2 + 0.5 * t**2), side * (0.1 + 0.8 * t), bins=side, range=[[0, side], [0, side]])
    return kernel / kernel.sum()


def scratches(side: int = 256) -> np.ndarray:
    y, x = np.mgrid[:side, :side]
    return ~(((x + y // 9) % 67 < 3) | ((y + x // 5) % 83 < 2))


def hole(side: int = 256) -> np.ndarray:
    y, x = np.mgrid[:side, :side]
    return ~((abs(x - 110) < 45) & (abs(y - 90) < 45))


EXAMPLES = (
    Example("chelsea", "ddiff restore noisy.jpg --task denoise --sigma auto", noise=18, quality=92),
    Example("coffee", "ddiff restore squeezed.jpg --task jpeg", quality=8),
    Example("astronaut", "ddiff restore small.png --task super_resolution --sigma 0.02", noise=2, factor=4),
    Example("rocket", "ddiff restore unsharp.png --task gaussian_deblur --kernel disk:auto --sigma auto", noise=2, kernel=disk(3)),
    Example("chelsea", "ddiff restore shaken.png --task motion_deblur --kernel kernel.npy --sigma auto", noise=2, kernel=shake()),
    Example("coffee", "ddiff restore scratched.png --task inpaint --mask scratches.png --sigma 0.01", mask=scratches()),
    Example("astronaut", "ddiff restore torn.png --task inpaint --mask hole.png --sigma 0.01", mask=hole()),
    Example("coffee", "ddiff restore grey.png --task colorize --sigma 0.02", grey=True),
)


def make_files(folder: Path, _: Path) -> None:
    """Writes the files of all examples."""
    for seed, example in enumerate(EXAMPLES):
        example.degrade(folder, seed)


def make_restored(out: Path, program: Path) -> None:
    """Writes restored-NAME.jpg of each example: the file as it is found, and restored."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        make_files(folder, program)
        for example in EXAMPLES:
            restored = example.restore(folder, program)
            with Image.open(folder / example.file) as found:
                picture = grid([[found, restored]], ["file", "restored"], restored.width)
            picture.save(out / f"restored-{Path(example.file).stem}.jpg", quality=88, optimize=True)


def make_methods(out: Path, program: Path) -> None:
    """Writes methods.jpg: the methods with their preset natural, at most 100 evaluations, on one photograph."""
    with tempfile.TemporaryDirectory() as name:
        tasks = [argument for task in TASKS for argument in ("--task", task)]
        methods = [argument for method in METHODS for argument in ("--method", method)]
        results = Path(name) / "out"
        photograph = str(PHOTOGRAPHS / "chelsea.png")
        campaigns.run(program, photograph, *tasks, *methods, "--preset", "natural", "--size", "128", "--out", str(results), "--quiet")
        found, rows = items(results, "task", "method"), []
        for task in TASKS:
            first = found[task, METHODS[0]]
            files = [first / "measurement.png", *(found[task, method] / "restored.png" for method in METHODS), first / "truth.png"]
            rows.append([Image.open(file) for file in files])
        grid(rows, ["measurement", *METHODS, "truth"], 128).save(out / "methods.jpg", quality=90, optimize=True)


def make_demo(results: Path, picture: Path) -> None:
    """Writes the picture of the README."""
    found = items(results, "name", "task")
    for photograph, task in DEMO:
        if (photograph, task) not in found:
            sys.exit(f"{results} has no item of photograph {photograph}, task {task}; run make demo")
    rows = [[Image.open(found[column] / file) for column in DEMO] for file in ("measurement.png", "restored.png")]
    grid(rows, [task for _, task in DEMO], 128).save(picture, optimize=True)


if __name__ == "__main__":
    makers = {"restore": make_restored, "files": make_files, "methods": make_methods, "demo": make_demo}
    if len(sys.argv) not in (3, 4) or sys.argv[1] not in makers or (sys.argv[1] == "demo" and len(sys.argv) != 4):
        sys.exit(__doc__)
    makers[sys.argv[1]](Path(sys.argv[2]), Path(sys.argv[3] if len(sys.argv) == 4 else campaigns.REPO / "bin/ddiff").absolute())
