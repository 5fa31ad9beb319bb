"""Denoising of crops of photographs that the training does not see, printed while it runs."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from PIL import Image
from torch import Tensor

from ddiff_torch.onnx_prior import UNet

from . import photographs
from .loop import Trainer
from .pool import Pool

SIGMAS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5)  # of images in 0..1


class Held:
    """As many crops as a batch has, with noise, the same in every look."""

    def __init__(self, photos: list[Callable[[], Image.Image]], device: str, count: int, side: int) -> None:
        rng = np.random.default_rng([1, 4])
        pictures = [v for p in photos for v in photographs.versions(p())]
        self.crops = Pool(pictures, np.empty((0, side, side, 3), np.uint8), 1, device=device).batch(rng, count, side)
        self.noise = torch.from_numpy(rng.standard_normal(self.crops.shape, dtype=np.float32)).to(device)

    @torch.no_grad()
    def psnr(self, net: UNet, half: bool) -> list[float]:
        """Mean PSNR in dB of one evaluation at the levels SIGMAS."""
        found = []
        ratio = (net.wiener.noise / net.wiener.signal).cpu()
        for sigma in SIGMAS:
            t = int((ratio - 2 * sigma).abs().argmin())
            x = net.wiener.signal[t] * self.crops + net.wiener.noise[t] * self.noise
            errors = []
            for part, clean in zip(x.split(16), self.crops.split(16)):
                index = torch.full((len(part),), t, device=x.device)
                with torch.autocast(x.device.type, dtype=torch.bfloat16, enabled=half):
                    z = self._image(net, part, index)
                errors.append(((z.float().clamp(-1, 1) - clean) / 2).square().mean((1, 2, 3)))
            found.append(float((-10 * torch.cat(errors).log10()).mean()))
        return found

    @staticmethod
    def _image(net: UNet, x: Tensor, index: Tensor) -> Tensor:
        """The estimate, with a linear part in float32 as in training."""
        with torch.autocast(x.device.type, enabled=False):
            z = net.wiener.image(x, index)
        return z - net.wiener.error[index][:, None, None, None] * net.rest(torch.cat([x, z], dim=1), index).float()

    def look(self, trainer: Trainer, say: Callable[[str], None]) -> Callable[[], None]:
        """A function that prints the PSNR of the weights and of their average, with the gain of the average since its first call."""
        begun: list[list[float]] = []

        def look() -> None:
            now, average = (self.psnr(net, trainer.config.half) for net in (trainer.net, trainer.average))
            begun.append(average)
            gain = np.subtract(average, begun[0])
            table = " ".join(f"{s:g}:{a:.2f}/{b:.2f}({g:+.2f})" for s, a, b, g in zip(SIGMAS, now, average, gain))
            say(f"iteration={trainer.iteration} trained={trainer.elapsed:.0f}s held sigma:dB/average(gain) {table} mean_gain={gain.mean():+.3f}")

        return look
