"""The best linear estimate of noise and image for the spectrum of natural images, at any noise level.

At high noise the score of a data set is close to the score of the normal distribution with the same mean and spectrum (B. Wang and
J. Vastola, "The unreasonable effectiveness of Gaussian score approximation for diffusion models", arXiv:2412.09726). A network that
predicts only the residual of this estimate cannot get the mean and the coarse colours wrong at noise levels where x_t contains little
of them.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from .schedule import alpha_bar

SCALES = 5
BANDS = SCALES + 2
# The cubic B-spline of the undecimated ("a trous") wavelet transform: J.-L. Starck et al., "The undecimated wavelet
# decomposition and its reconstruction", IEEE Transactions on Image Processing 16(2), 2007.
SPLINE = (1 / 16, 4 / 16, 6 / 16, 4 / 16, 1 / 16)
# Grey and two colour differences, orthogonal; the squares of the rows sum to 3, 2 and 6.
OPPONENT = ((1.0, 1.0, 1.0), (1.0, -1.0, 0.0), (1.0, 1.0, -2.0))


class _RepeatEdges(torch.autograd.Function):
    """Pads with the edge pixels and exports with constant pads. The export of F.pad alone has computed pads."""

    @staticmethod
    def forward(_: object, x: Tensor, rows: int, columns: int) -> Tensor:
        return F.pad(x, (columns, columns, rows, rows), mode="replicate")

    @staticmethod
    def symbolic(g: object, x: object, rows: int, columns: int) -> object:
        pads = g.op("Constant", value_t=torch.tensor([0, 0, rows, columns] * 2))
        return g.op("Pad", x, pads, mode_s="edge")


class Wiener(nn.Module):
    """Splits x into bands and estimates the shares of noise and image in each band.

    c_0 = T (x - sqrt(abar) mean) contains grey and two colour differences; c_k+1 is c_k smoothed by the spline with gaps of 2^k pixels
    and repeated edges. The bands are c_k - c_k+1 for k < SCALES, then c_SCALES minus its mean over the image, then this mean.
    Let S be the ratio of the power of the clean image to the power of white noise of variance 1 in a band. The conditional means of
    a normal image in each band are

        eps = sqrt(1-abar) / (abar S + 1 - abar) band,    z = mean + sqrt(abar) S / (abar S + 1 - abar) band

    and the inverse of T converts them to colours. The mean of white noise has only 1/(H W) of its power: the last S is for one pixel.
    `left` approximates the root mean square error of eps, which a network has to predict, and `error` that of z.
    """

    def __init__(self, mean: float, grey: tuple[float, ...], chroma: tuple[float, ...], white: tuple[float, ...]) -> None:
        """grey and chroma are S of each band; white is the power of white noise in each band, for 64x64 images."""
        super().__init__()
        abar = torch.from_numpy(alpha_bar())
        self.register_buffer("signal", abar.sqrt().float())
        self.register_buffer("noise", (1 - abar).sqrt().float())
        self.register_buffer("mean", torch.tensor([mean]))
        spectrum = torch.tensor([grey, chroma, chroma], dtype=torch.float64).t()
        self.register_buffer("spectrum", spectrum.float()[None])
        last = torch.tensor([0.0] * (BANDS - 1) + [1.0])
        self.register_buffer("last", last[None, :, None])

        pixels = torch.where(last > 0, 64 * 64, 1)[:, None]
        share = torch.tensor(white, dtype=torch.float64) / sum(white)
        s = abar[:, None, None] * spectrum * pixels
        left = (share[:, None] * s / (s + 1 - abar[:, None, None])).sum(1).mean(1)
        self.register_buffer("error", (left * (1 - abar) / abar).sqrt().float())

        spline = torch.tensor(SPLINE).expand(3, 1, 5)
        self.register_buffer("rows", spline[:, :, None, :].clone())
        self.register_buffer("columns", spline[:, :, :, None].clone())
        opponent = torch.tensor(OPPONENT)
        self.register_buffer("opponent", opponent[:, :, None, None].clone())
        self.register_buffer("colours", opponent.t()[:, :, None, None].clone())
        self.register_buffer("scale", 1 / opponent.square().sum(1))

    @property
    def left(self) -> Tensor:
        return self.error * self.signal / self.noise

    def smooth(self, x: Tensor) -> list[Tensor]:
        """[c_0, ..., c_SCALES, mean of c_SCALES] of an image minus its mean; the last entry is [batch, 3, 1, 1]."""
        c = F.conv2d(x, self.opponent)
        out = [c]
        for k in range(SCALES):
            gap = 2**k
            c = F.conv2d(_RepeatEdges.apply(c, 0, 2 * gap), self.rows, dilation=(1, gap), groups=3)
            c = F.conv2d(_RepeatEdges.apply(c, 2 * gap, 0), self.columns, dilation=(gap, 1), groups=3)
            out.append(c)
        return [*out, c.mean((2, 3), keepdim=True)]

    def forward(self, x: Tensor, t: Tensor) -> tuple[Tensor, Tensor]:
        """Estimates of eps and z, both with the shape of x, [batch, 3, height, width]; t is [batch]."""
        of_eps, of_z, smooth = self._shares(x, t)
        return self._mix(of_eps, smooth), self._mix(of_z, smooth) + self.mean

    def image(self, x: Tensor, t: Tensor) -> Tensor:
        """Estimate of z only."""
        _, of_z, smooth = self._shares(x, t)
        return self._mix(of_z, smooth) + self.mean

    def _shares(self, x: Tensor, t: Tensor) -> tuple[Tensor, Tensor, list[Tensor]]:
        """Weights of each band in eps and z, [batch, BANDS, 3], and the smoothed images whose differences are the bands."""
        signal, noise = self.signal[t][:, None, None], self.noise[t][:, None, None]
        pixels = (x[:, 0] * 0 + 1).sum((1, 2), keepdim=True)
        s = self.spectrum * (1 + self.last * (pixels - 1))
        total = signal * signal * s + noise * noise
        return noise / total, signal * s / total, self.smooth(x - signal[..., None] * self.mean)

    def _mix(self, share: Tensor, smooth: list[Tensor]) -> Tensor:
        """Converts sum_k share_k band_k to colours. share is [batch, BANDS, 3]; band_k is smooth_k - smooth_k+1."""
        share = (share * self.scale)[..., None, None]
        total = share[:, 0] * smooth[0]
        for k in range(1, BANDS):
            total = total + (share[:, k] - share[:, k - 1]) * smooth[k]
        return F.conv2d(total, self.colours)
