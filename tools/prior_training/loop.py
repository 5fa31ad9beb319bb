"""The training loop: noise levels, schedule by elapsed time, checkpoints, loss curve."""

from __future__ import annotations

import copy
import csv
import math
import os
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import torch
import torch.distributed as distributed
import torch.nn.functional as F
from torch import Tensor, nn

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
    average: float = 0.999  # decay of the average of the weights, which is the result
    low_share: float = 0.6  # share of the samples with log s uniform in `low`, s = noise / signal
    low: tuple[float, float] = (0.05, 1.2)
    half: bool = True  # convolutions in bfloat16

    def network(self) -> UNet:
        net = UNet(list(self.widths), self.depth, self.middle, self.embedding, self.frequencies, SPECTRUM.wiener())
        steps = torch.arange(self.frequencies) / self.frequencies
        net.frequencies.copy_(torch.exp(-math.log(10000) * steps))
        return net


# The configurations by size of the network; tiny is for a trial of the whole way in a minute of a CPU.
SIZES = {
    "tiny": Config(widths=(16, 16, 32), depth=1, middle=1, embedding=32, frequencies=8, batch=8, side=32, late_from=1.0),
    "small": Config(),
    "base": Config(widths=(96, 128, 256)),
}
GPU = {"batch": 64, "side": 128, "late_from": 1.0, "low": (0.02, 1.5)}  # other settings on a GPU


class _Norm(nn.GroupNorm):
    """Group norm computed in float32 for any input precision."""

    def forward(self, x: Tensor) -> Tensor:
        return F.group_norm(x.float(), self.num_groups, self.weight, self.bias, self.eps).to(x.dtype)


class Times:
    """Draws time indices: uniform in t or in log s, s = noise / signal, both stratified over the batch."""

    def __init__(self, config: Config) -> None:
        self.config = config
        alphas = np.asarray(alpha_bar(), dtype=np.float64)
        self.levels = np.sqrt((1 - alphas) / alphas)

    def draw(self, rng: np.random.Generator, count: int) -> np.ndarray:
        low = rng.permutation(count) < round(count * self.config.low_share)
        u = (rng.permutation(count) + rng.random(count)) / count
        a, b = np.log(self.config.low)
        by_level = np.searchsorted(self.levels, np.exp(a + (b - a) * u)).clip(0, 999)
        return np.where(low, by_level, np.floor(u * 1000).astype(np.int64).clip(0, 999))


class Trainer:
    """Owns the network, its average, the optimisers and the counters of iterations and seconds."""

    def __init__(self, config: Config, rank: int = 0, processes: int = 1, device: str = "cpu") -> None:
        self.config, self.device = config, device
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
        self.average = copy.deepcopy(self.net).requires_grad_(False)
        kernels = [p for p in self.net.parameters() if p.ndim == 4]
        others = [p for p in self.net.parameters() if p.ndim != 4]
        self.optimisers = [
            Muon(kernels, lr=config.rate, decay=config.decay),
            torch.optim.AdamW(others, lr=config.rate, betas=(0.9, 0.99), weight_decay=config.decay),
        ]
        self.iteration, self.elapsed = 0, 0.0
        self.alpha_bar = torch.from_numpy(np.asarray(alpha_bar(), dtype=np.float32)).to(device)
        self.times, self.noise = Times(config), torch.Generator(device)
        self.rest = self.net.rest
        torch.backends.cudnn.benchmark = True

    def begin(self, network: UNet) -> None:
        """Begins with the weights of another network."""
        for net in (self.net, self.average):
            net.load_state_dict(network.state_dict())

    def compile(self) -> None:
        """Compiles the network for the first shape of the crops. If that fails, it says so, and training goes on without."""
        c = self.config
        try:
            self.rest = torch.compile(self.net.rest, dynamic=False)
            x0 = torch.zeros(c.batch, 3, c.side, c.side, device=self.device)
            self.losses(x0, torch.ones_like(x0), torch.zeros(c.batch, dtype=torch.int64, device=self.device)).mean().backward()
            if self.device != "cpu":
                torch.cuda.synchronize()
        except Exception as err:  # the compiler has no error class of its own
            print(f"train: the network is not compiled, training is slower: {type(err).__name__}: {err}"[:1000], flush=True)
            self.rest = self.net.rest
        self.net.zero_grad(set_to_none=True)

    def draw(self, pool: Pool, progress: float) -> tuple[Tensor, Tensor, Tensor]:
        """Clean crops, noise and time indices of this iteration, on the device.

        All draws depend on (seed, iteration, rank) only, so that a resumed run equals an undisturbed one.
        """
        c = self.config
        count, side = (c.batch, c.side) if progress < c.late_from else (c.late_batch, c.late_side)
        rng = np.random.default_rng([c.seed, 2, self.iteration, self.rank])
        x0 = pool.batch(rng, count, side)
        index = torch.from_numpy(self.times.draw(rng, count)).to(self.device)
        eps = torch.randn(x0.shape, device=self.device, generator=self.noise.manual_seed(int(rng.integers(2**62))))
        return x0, eps, index

    def losses(self, x0: Tensor, eps: Tensor, index: Tensor) -> Tensor:
        """The loss of each crop."""
        ab = self.alpha_bar[index][:, None, None, None]
        x = ab.sqrt() * x0 + (1 - ab).sqrt() * eps
        with torch.no_grad():
            of_eps, z = self.net.wiener(x, index)
            left = self.net.wiener.left[index][:, None, None, None]
            wanted = (eps - of_eps) / left
        with torch.autocast(self.device, dtype=torch.bfloat16, enabled=self.config.half):
            out = self.rest(torch.cat([x, z], dim=1).contiguous(), index)  # one layout, or it is compiled twice
        return (left * (out.float() - wanted).square()).mean(dim=(1, 2, 3))

    def step(self, pool: Pool, progress: float) -> tuple[Tensor, Tensor, float]:
        """Runs one iteration at progress 0..1 of the schedule; returns loss, loss below t = 200 (NaN without such a sample), learning rate."""
        c = self.config
        x0, eps, index = self.draw(pool, progress)
        falling = min(max(progress - c.decay_from, 0) / (1 - c.decay_from), 1)
        rate = c.rate * min(1, (self.iteration + 1) / c.warmup) * 0.5 * (1 + math.cos(math.pi * falling))
        for group in [g for o in self.optimisers for g in o.param_groups]:
            group["lr"] = rate
        each = self.losses(x0, eps, index)
        loss = each.mean()
        self.net.zero_grad(set_to_none=True)
        loss.backward()
        nn.utils.clip_grad_norm_(self.net.parameters(), c.clip)
        for optimiser in self.optimisers:
            optimiser.step()
        self.iteration += 1
        if self.iteration % c.share_every == 0:
            self._share_weights()
        self._average()
        few = index < 200
        return loss.detach(), (each.detach() * few).sum() / few.sum(), rate

    @torch.no_grad()
    def _average(self) -> None:
        """Moves the average towards the weights; the first iterations count less."""
        decay = min(self.config.average, (1 + self.iteration) / (10 + self.iteration))
        average, weights = list(self.average.parameters()), list(self.net.parameters())
        torch._foreach_mul_(average, decay)  # PyTorch 1.13 has no _foreach_lerp_
        torch._foreach_add_(average, weights, alpha=1 - decay)

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
        """Writes the checkpoint; an end at any moment leaves the one before or this one, whole."""
        state = {
            "config": asdict(self.config), "iteration": self.iteration, "elapsed": self.elapsed,
            "net": self.net.state_dict(), "average": self.average.state_dict(),
            "optimisers": [o.state_dict() for o in self.optimisers],
        }  # fmt: skip
        with open(f"{path}.tmp", "wb") as f:
            torch.save(state, f)
            f.flush()
            os.fsync(f.fileno())
        os.replace(f"{path}.tmp", path)

    def restore(self, path: Path) -> None:
        """Loads a checkpoint; raises ValueError if it has another configuration."""
        state = torch.load(path, map_location="cpu")
        if state["config"] != asdict(self.config):
            raise ValueError(f"train: {path} was written with another configuration; use another --out")
        self.net.load_state_dict(state["net"])
        self.average.load_state_dict(state["average"])
        for optimiser, kept in zip(self.optimisers, state["optimisers"]):
            optimiser.load_state_dict(kept)
        self.iteration, self.elapsed = state["iteration"], state["elapsed"]

    def trained(self) -> UNet:
        """The average of the weights as a float32 network for inference."""
        net = self.config.network()
        net.load_state_dict({name: value.cpu() for name, value in self.average.state_dict().items()})
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
    pool: Pool,
    out: Path,
    seconds: float,
    iterations: int = 0,
    every: float = 60,
    look: Callable[[], None] = lambda: None,
    clock: Callable[[], float] = time.monotonic,
) -> None:
    """Trains for `seconds` more, or up to `iterations` if positive.

    The learning rate depends on the completed share of the whole training: constant, then falling to zero.
    The end is thus always annealed. The function writes a checkpoint to out/checkpoint.pt every `every` seconds
    and at the end, and then calls `look`; both take part of the time. Raises ValueError if there is no time.
    """
    if seconds <= 0 and not iterations:
        raise ValueError("train: no time is left after the preparation; raise --seconds")
    checkpoint = out / "checkpoint.pt"
    if checkpoint.is_file():
        trainer.restore(checkpoint)
    first = trainer.rank == 0
    curve = Curve(out / "loss.csv", trainer.iteration) if first else None
    whole = trainer.elapsed + seconds
    before, saved = clock(), trainer.elapsed
    look()
    while True:
        progress = trainer.agree(trainer.iteration / iterations if iterations else trainer.elapsed / whole)
        together = trainer.processes == 1 or trainer.iteration % trainer.config.share_every == 0
        if progress >= 1 and together:
            break
        loss, low, rate = trainer.step(pool, progress)
        now = clock()
        trainer.elapsed, before = trainer.elapsed + now - before, now
        if curve:
            curve.add(trainer.iteration, trainer.elapsed, rate, loss, low)
        if first and trainer.elapsed - saved >= every:
            trainer.save(checkpoint)
            look()
            saved = trainer.elapsed
    if first:
        trainer.save(checkpoint)
        look()
