"""Converts published networks to ONNX files with a model card (`pip install 'ddiff[export]'`).

Each function is a command of `python -m ddiff_export`, whose options are its arguments:

    ddiff.export.diffusers("folder", out="prior.onnx", license="MIT")
"""

from __future__ import annotations

import os
from pathlib import Path


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


def _commands(float16: bool):  # type: ignore[no-untyped-def]
    try:
        from ddiff_export import commands
        from ddiff_export.write import Options
    except ModuleNotFoundError as err:
        raise ModuleNotFoundError(f"{err}; run: pip install 'ddiff[export]'") from err
    return commands, Options(half=float16)
