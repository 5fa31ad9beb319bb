"""The program's side: ddiff run with the preset ffhq, and the files of its items."""

from __future__ import annotations

import csv
import hashlib
import json
import os
import pathlib
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from PIL import Image
from torch import Tensor

from method_vectors.noise import normal
from parity_code.identity import Keys, keys

ROOT = pathlib.Path(__file__).parents[2]
BLUR = ROOT / "restore/operator/testdata/bkse.onnx"  # of the task nonlinear_deblur
SIGMA = 0.05  # of the code, at the line "measurement noise standard deviation"
MEASUREMENT, START, STEP = 1, 2, 3  # purposes of internal/restore/noise


@dataclass(frozen=True)
class Item:
    """A finished item of ddiff run."""

    folder: pathlib.Path
    task: str
    photograph: str
    fields: dict  # the item in result.json
    psnr: float  # of the unrounded result, clipped to [-1, 1]
    keys: Keys

    def array(self, name: str) -> Tensor:
        """The stored measurement, mask or kernel, with one image."""
        return torch.from_numpy(np.load(self.folder / f"{name}.npy"))[None]

    def pixels(self, name: str) -> np.ndarray:
        """The stored picture truth or restored: [height, width, 3], 0 to 255."""
        with Image.open(self.folder / f"{name}.png") as picture:
            return np.asarray(picture.convert("RGB"))

    def truth(self) -> Tensor:
        """The true image [1, 3, height, width] in [-1, 1]."""
        return torch.from_numpy(self.pixels("truth").transpose(2, 0, 1).astype(np.float32) / 127.5 - 1)[None]

    def shape(self) -> tuple[int, ...]:
        return 1, 3, self.fields["height"], self.fields["width"]

    def setting(self, name: str) -> float:
        return self.fields["solver"][name]

    def start(self) -> Tensor:
        return normal(self.shape(), START, 0, self.keys.run)

    def noise(self, time: int) -> Tensor:
        """The noise of the step at a time."""
        return normal(self.shape(), STEP, time, self.keys.run)

    def clean(self) -> Tensor:
        """A(x) of this program: the stored y without its noise."""
        y = self.array("measurement")
        return y - SIGMA * normal(tuple(y.shape), MEASUREMENT, 0, self.keys.measurement)


# The preset ffhq has no row for an operator file; these are the values of its row nonlinear_deblur.
NONLINEAR = (
    "gamma0=2.5", "a=3.3", "b=0.1", "t_gamma=90", "t0=120", "sigma_rule=ddpm", "gradient=unit", "answer=x_t",
)  # fmt: skip


@dataclass(frozen=True)
class Program:
    """The program ddiff and how it runs the items."""

    path: str
    cache: pathlib.Path
    threads: int
    size: int

    def run(self, tasks: Sequence[str], photographs: Sequence[str]) -> list[Item]:
        """The finished items of all tasks and photographs. A second call with the same program computes only the unfinished ones."""
        items: list[Item] = []
        built_in = [task for task in tasks if task != "nonlinear_deblur"]
        if built_in:
            signed = ["--param", "phase_retrieval.signed=1"] if "phase_retrieval" in built_in else []
            items += self._campaign("ours", photographs, ["--task", ",".join(built_in), "--preset", "ffhq", *signed])
        if len(built_in) < len(tasks):
            solver = [word for value in NONLINEAR for word in ("--solver", value)]
            items += self._campaign("ours-blur", photographs, ["--operator", str(BLUR), "--steps", "1000", *solver])
        return sorted(items, key=lambda i: (tasks.index(i.task), photographs.index(i.photograph)))

    def _photograph(self, name: str) -> str:
        """The path of a photograph of the working size: its 8-bit picture is then exactly the true image."""
        path = ROOT / f"examples/images/{name}.png"
        with Image.open(path) as picture:
            if picture.size == (self.size, self.size):
                return str(path)
            path = self.cache / f"photographs-{self.size}" / f"{name}.png"
            path.parent.mkdir(exist_ok=True)
            picture.convert("RGB").resize((self.size, self.size), Image.LANCZOS).save(path)
        return str(path)

    def _campaign(self, name: str, photographs: Sequence[str], flags: Sequence[str]) -> list[Item]:
        out = self.cache / f"{name}-{digest(pathlib.Path(self.path))[:12]}"
        words = [
            self.path, "run", *map(self._photograph, photographs), *flags, "--size", str(self.size),
            "--sigma", str(SIGMA), "--seed", "1", "--precision", "float32", "--threads", str(self.threads), "--out", str(out), "--quiet",
        ]  # fmt: skip
        done = subprocess.run(words, stdout=subprocess.PIPE, text=True, env=os.environ | {"GOMAXPROCS": str(self.threads)})
        if done.returncode:
            sys.exit(f"{done.stdout}\nparity_code: ddiff run ended with code {done.returncode}")
        with (out / "results.csv").open(newline="") as rows:
            return [_read(out / "items" / row["item"]) for row in csv.DictReader(rows)]


def _read(folder: pathlib.Path) -> Item:
    result = json.loads((folder / "result.json").read_text())
    item = result["item"]
    task = "nonlinear_deblur" if item.get("operator") else item["task"]
    return Item(folder, task, item["name"], item, result["metrics"]["psnr"], keys(item))


def digest(path: pathlib.Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()
