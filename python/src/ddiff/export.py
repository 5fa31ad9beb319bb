"""Converts published networks to ONNX files with a model card. Needs the packages of the extra `export`.

Each function is a command of `python -m ddiff_export`, whose options are its arguments:

    ddiff.export.diffusers("folder", out="prior.onnx", license="MIT")
"""

from __future__ import annotations

import copy
import os
from pathlib import Path
from typing import Any

from ._program import install


def diffusers(directory: str | os.PathLike[str], out: str | os.PathLike[str], *, license: str, name: str = "", float16: bool = False) -> list[Path]:
    """Exports a pixel U-Net of a local folder in the layout of diffusers as a prior, and returns the files: the prior and its reference vectors.

    license: of the weights, for the model card. float16: half precision. Raises ddiff_export's ExportError, a message of one line.
    """
    commands, options = _commands(float16)
    return commands.diffusers(Path(directory), Path(out), name, license, options)


def guided_diffusion(
    config: str, weights: str | os.PathLike[str], out: str | os.PathLike[str], *, label: int | None = None, name: str = "", license: str = "",
    float16: bool = False,
) -> list[Path]:  # fmt: skip
    """Exports a U-Net of guided diffusion (ADM): config is such as "ffhq_10m" or "imagenet_256_uncond", weights its published file."""
    commands, options = _commands(float16)
    return commands.guided_diffusion(config, [], Path(weights), Path(out), label, name, license, options)


def latent_diffusion(
    config: str, weights: str | os.PathLike[str], out: str | os.PathLike[str], *, label: int | None = None, prompt: str = "", name: str = "",
    license: str = "", float16: bool = False,
) -> list[Path]:  # fmt: skip
    """Exports a latent diffusion model as a bundle, to the folder out: config is "ffhq256", "imagenet256" or "churches256", or "sd15", "sd21"
    or "sd21_base" of Stable Diffusion, whose weights may be a folder in the diffusers layout; the prompt needs its tokenizer."""
    commands, options = _commands(float16)
    return commands.latent_diffusion(config, [], Path(weights), Path(out), label, prompt, True, name, license, options)


def denoiser(
    module: Any, out: str | os.PathLike[str], *, sigma: tuple[float, float], license: str, name: str = "", multiple_of: int = 1, float16: bool = False
) -> list[Path]:
    """Exports a PyTorch denoiser as a prior, by Tweedie's formula, and returns the files.

    module: D(x, sigma), from noisy images (n, 3, height, width) with black at 0 and white at 1, and the standard deviations (n,) of their noise in that
        unit, to images without noise.
    sigma: the lowest and the highest level of its training, 0 <= lowest < highest: elsewhere it is asked for the nearest one.
    multiple_of: of which height and width must be multiples."""
    _, options = _commands(float16)
    module = copy.deepcopy(module).cpu().eval()  # what is exported stays what it is
    from ddiff_export import card, tweedie, write

    lo, hi = (2 * s for s in sigma)  # images from -1 to 1 are twice as wide
    described = card.Card(name or type(module).__name__, license, tweedie.described(lo, hi), schedule=tweedie.SCHEDULE, multiple_of=multiple_of)
    return write.prior(tweedie.Prior(module, lo, hi, "0..1"), described, Path(out), options)


def _commands(float16: bool):  # type: ignore[no-untyped-def]
    try:
        from ddiff_export import commands
        from ddiff_export.write import Options
    except ModuleNotFoundError as err:
        raise ModuleNotFoundError(f"{err}; {install('export')}") from err
    return commands, Options(half=float16)
