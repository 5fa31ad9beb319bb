"""The training loop: noise levels, schedule by elapsed time, checkpoints, loss curve."""

from __future__ import annotations

import csv
import itertools
import math
import os
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import torch
import torch.distributed as distributed
import torch.nn.functional as F
from torch import Tensor, nn
from torch.utils.data import DataLoader, Dataset

from ddiff_torch.onnx_prior import UNet
from ddiff_torch.schedule import alpha_bar

from .muon import Muon
from .pool import Pool
from .spectrum import Spectrum


# The result of spectrum.measure for the pool of tools/train_prior.py.
SPECTRUM = Spectrum(
    mean=-0.09,
    grey=(0.0272, 0.328, 1.93, 8.76, 30.9, 159.0, 0.348),
    chroma=(0.000963, 0.0147, 0.0891, 0.406, 1.51, 10.4, 0.0487),
    white=(0.783, 0.0412, 0.00786, 0.00203, 0.000631, 0.000651, 0.000244),
)


@dataclass(frozen=True)
class Config:
    """Configuration of a training run, stored in its checkpoints."""

    widths: tuple[int, ...] = (48, 64, 128)
    depth: int = 2
    middle: int = 2
    embedding: int = 192
    frequencies: int = 32
    seed: int = 1
    batch: int = 8  # of each process
    side: int = 64
    late_batch: int = 2  # from late_from on: larger crops, with norm statistics closer to whole images
    late_side: int = 128
    late_from: float = 0.65
    rate: float = 2e-3
    warmup: int = 200
    decay_from: float = 0.5  # progress from which the learning rate falls to zero
    decay: float = 0.01
    share_every: int = 8  # iterations between averages of the processes' weights
    clip: float = 1.0
    low_share: float = 0.6  # share of the samples with log s uniform in `low`, s = noise / signal
    low: tuple[float, float] = (0.05, 1.2)
    half: bool = True  # convolutions in bfloat16

    def network(self) -> UNet:
        net = UNet(list(self.widths), self.depth, self.middle, self.embedding, self.frequencies, SPECTRUM.wiener())
        steps = torch.arange(self.frequencies) / self.frequencies
        net.frequencies.copy_(torch.exp(-math.log(10000) * steps))
        return net


# The configurations by size of the network.
SIZES = {"small": Config(), "base": Config(widths=(96, 128, 256), batch=64, side=128, late_from=1.0, low=(0.02, 1.5))}


class _Norm(nn.GroupNorm):
    """Group norm computed in float32 for any input precision."""

    def forward(self, x: Tensor) -> Tensor:
        return F.group_norm(x.float(), self.num_groups, self.weight, self.bias, self.eps).to(x.dtype)


class Batches(Dataset):
    """The batches of one process by iteration: all draws depend on (seed, iteration, rank) only, so that a resumed run equals an undisturbed one."""

    def __init__(self, config: Config, pool: Pool, rank: int, count: int, side: int) -> None:
        self.config, self.pool, self.rank, self.count, self.side = config, pool, rank, count, side
        alphas = np.asarray(alpha_bar(), dtype=np.float64)
        self.levels = np.sqrt((1 - alphas) / alphas)

    def __getitem__(self, iteration: int) -> tuple[Tensor, Tensor, int]:
        """Clean crops [count, 3, side, side], time indices [count], and the seed of the noise, which the device draws."""
        rng = np.random.default_rng([self.config.seed, 2, iteration, self.rank])
        x0 = self.pool.batch(rng, self.count, self.side)
        return torch.from_numpy(x0), torch.from_numpy(self.times(rng, self.count)), int(rng.integers(2**62))

    def times(self, rng: np.random.Generator, count: int) -> np.ndarray:
        """Time indices of a batch: uniform in t or in log s, both stratified over the batch."""
        low = rng.permutation(count) < round(count * self.config.low_share)
        u = (rng.permutation(count) + rng.random(count)) / count
        a, b = np.log(self.config.low)
        by_level = np.searchsorted(self.levels, np.exp(a + (b - a) * u)).clip(0, 999)
        return np.where(low, by_level, np.floor(u * 1000).astype(np.int64).clip(0, 999))

    def start(self, first: int, workers: int) -> Iterator[tuple[Tensor, Tensor, int]]:
        """The batches from iteration `first` on, without end; `workers` processes draw them ahead, none with 0."""
        return iter(DataLoader(self, batch_size=None, sampler=itertools.count(first), num_workers=workers, pin_memory=workers > 0))


class Trainer:
    """Owns the network, the optimisers and the counters of iterations and seconds.

    On another device than the CPU the network is compiled, and `workers` processes draw the batches.
    """

    def __init__(self, config: Config, pool: Pool, rank: int = 0, processes: int = 1, device: str = "cpu", workers: int = 0) -> None:
        self.config, self.pool, self.device, self.workers = config, pool, device, workers
        self.rank, self.processes = rank, processes
        torch.manual_seed(config.seed)
        self.net = config.network().to(device, memory_format=torch.channels_last)
        blocks = [m for m in self.net.modules() if hasattr(m, "c2")]
        for layer in [self.net.out, *(b.c2 for b in blocks)]:  # every block is initially the identity
            nn.init.zeros_(layer.weight)
            nn.init.zeros_(layer.bias)
        for m in self.net.modules():
            if isinstance(m, nn.GroupNorm):
                m.__class__ = _Norm
        kernels = [p for p in self.net.parameters() if p.ndim == 4]
        others = [p for p in self.net.parameters() if p.ndim != 4]
        self.optimisers = [
            Muon(kernels, lr=config.rate, decay=config.decay),
            torch.optim.AdamW(others, lr=config.rate, betas=(0.9, 0.99), weight_decay=config.decay),
        ]
        self.iteration, self.elapsed = 0, 0.0
        self.alpha_bar = torch.from_numpy(np.asarray(alpha_bar(), dtype=np.float32)).to(device)
        self.rest = self.net.rest if device == "cpu" else torch.compile(self.net.rest)
        torch.backends.cudnn.benchmark = True
        self.batches, self.shape, self.noise = None, None, torch.Generator(device)

    def draw(self, progress: float) -> tuple[Tensor, Tensor, Tensor]:
        """Clean crops, noise and time indices of this iteration, on the device."""
        c = self.config
        shape = (c.batch, c.side) if progress < c.late_from else (c.late_batch, c.late_side)
        if shape != self.shape:
            self.shape, self.batches = shape, Batches(c, self.pool, self.rank, *shape).start(self.iteration, self.workers)
        crops, index, seed = next(self.batches)
        x0 = crops.to(self.device, non_blocking=True)
        eps = torch.randn(x0.shape, device=self.device, generator=self.noise.manual_seed(seed))
        return x0, eps, index.to(self.device, non_blocking=True)

    def step(self, progress: float) -> tuple[Tensor, Tensor, float]:
        """Runs one iteration at progress 0..1 of the schedule; returns loss, loss below t = 200 (NaN without such a sample), learning rate."""
        c = self.config
        x0, eps, index = self.draw(progress)
        ab = self.alpha_bar[index][:, None, None, None]
        x = ab.sqrt() * x0 + (1 - ab).sqrt() * eps
        with torch.no_grad():
            of_eps, z = self.net.wiener(x, index)
            left = self.net.wiener.left[index][:, None, None, None]
            wanted = (eps - of_eps) / left
        falling = min(max(progress - c.decay_from, 0) / (1 - c.decay_from), 1)
        rate = c.rate * min(1, (self.iteration + 1) / c.warmup) * 0.5 * (1 + math.cos(math.pi * falling))
        for group in [g for o in self.optimisers for g in o.param_groups]:
            group["lr"] = rate
        with torch.autocast(self.device, dtype=torch.bfloat16, enabled=c.half):
            out = self.rest(torch.cat([x, z], dim=1), index)
        each = (left * (out.float() - wanted).square()).mean(dim=(1, 2, 3))
        loss = each.mean()
        self.net.zero_grad(set_to_none=True)
        loss.backward()
        nn.utils.clip_grad_norm_(self.net.parameters(), c.clip)
        for optimiser in self.optimisers:
            optimiser.step()
        self.iteration += 1
        if self.iteration % c.share_every == 0:
            self._share_weights()
        few = index < 200
        return loss.detach(), (each.detach() * few).sum() / few.sum(), rate

    @torch.no_grad()
    def _share_weights(self) -> None:
        """Averages the weights over the processes, which train independently in between.

        Sharing gradients at every iteration would make all processes wait for the slowest.
        """
        if self.processes == 1:
            return
        flat = torch.cat([p.reshape(-1) for p in self.net.parameters()])
        distributed.all_reduce(flat)
        start = 0
        for p in self.net.parameters():
            p.copy_(flat[start : start + p.numel()].view_as(p) / self.processes)
            start += p.numel()

    def agree(self, progress: float) -> float:
        """Returns the progress of the first process after weights were shared, so that all processes stop together."""
        if self.processes == 1 or self.iteration % self.config.share_every:
            return progress
        value = torch.tensor([progress], dtype=torch.float64)
        distributed.broadcast(value, 0)
        return float(value)

    def save(self, path: Path) -> None:
        """Writes the checkpoint atomically."""
        torch.save(
            {
                "config": asdict(self.config), "iteration": self.iteration, "elapsed": self.elapsed,
                "net": self.net.state_dict(),
                "optimisers": [o.state_dict() for o in self.optimisers],
            },
            f"{path}.tmp",
        )  # fmt: skip
        os.replace(f"{path}.tmp", path)

    def restore(self, path: Path) -> None:
        """Loads a checkpoint; raises ValueError if it has another configuration."""
        state = torch.load(path, map_location="cpu")
        if state["config"] != asdict(self.config):
            raise ValueError(f"train: {path} was written with another configuration; use another --out")
        self.net.load_state_dict(state["net"])
        for optimiser, kept in zip(self.optimisers, state["optimisers"]):
            optimiser.load_state_dict(kept)
        self.iteration, self.elapsed = state["iteration"], state["elapsed"]

    def trained(self) -> UNet:
        """The current weights as a float32 network for inference."""
        net = self.config.network()
        net.load_state_dict({name: value.cpu() for name, value in self.net.state_dict().items()})
        return net.eval().requires_grad_(False)


class Curve:
    """Writes the loss curve: one row of means for every `every` iterations."""

    HEADER = ("iteration", "seconds", "rate", "loss", "loss_below_200")

    def __init__(self, path: Path, start: int, every: int = 50) -> None:
        self.path, self.every, self.rows = path, every, []
        kept = []
        if path.is_file():
            with path.open() as f:
                kept = [row for row in csv.reader(f) if row and row[0].isdigit() and int(row[0]) <= start]
        with path.open("w", newline="") as f:
            csv.writer(f, lineterminator="\n").writerows([self.HEADER, *kept])

    def add(self, iteration: int, seconds: float, rate: float, loss: Tensor, low: Tensor) -> None:
        self.rows.append(torch.stack((loss, low)))
        if iteration % self.every == 0:  # the only wait for the device
            loss, low = np.nanmean(torch.stack(self.rows).cpu().numpy(), axis=0)
            self.rows = []
            with self.path.open("a", newline="") as f:
                row = (iteration, f"{seconds:.0f}", f"{rate:.3g}", f"{loss:.5f}", f"{low:.5f}")
                csv.writer(f, lineterminator="\n").writerow(row)


def train(
    trainer: Trainer,
    out: Path,
    seconds: float,
    iterations: int = 0,
    every: float = 60,
    clock: Callable[[], float] = time.monotonic,
) -> None:
    """Trains for `seconds` in total, or up to `iterations` if positive.

    The learning rate depends on the completed share of the limit: constant, then falling to zero.
    The end is thus always annealed, and the last weights are the result. The function writes a
    checkpoint to out/checkpoint.pt every `every` seconds and at the end.
    """
    out.mkdir(parents=True, exist_ok=True)
    checkpoint = out / "checkpoint.pt"
    if checkpoint.is_file():
        trainer.restore(checkpoint)
    first = trainer.rank == 0
    curve = Curve(out / "loss.csv", trainer.iteration) if first else None
    before, saved = clock(), trainer.elapsed
    while True:
        progress = trainer.agree(trainer.iteration / iterations if iterations else trainer.elapsed / seconds)
        together = trainer.processes == 1 or trainer.iteration % trainer.config.share_every == 0
        if progress >= 1 and together:
            break
        loss, low, rate = trainer.step(progress)
        now = clock()
        trainer.elapsed, before = trainer.elapsed + now - before, now
        if curve:
            curve.add(trainer.iteration, trainer.elapsed, rate, loss, low)
        if first and trainer.elapsed - saved >= every:
            trainer.save(checkpoint)
            saved = trainer.elapsed
    if first:
        trainer.save(checkpoint)
