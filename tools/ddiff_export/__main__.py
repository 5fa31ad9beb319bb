"""The command line: python3 -m ddiff_export COMMAND ..."""

from __future__ import annotations

import argparse
import importlib
import os
import sys
from pathlib import Path

# torch reads this when it loads: waiting threads sleep instead of spinning.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")


def main(args: list[str]) -> int:
    """Runs one command; an error ends with exit code 2 and one line on stderr."""
    from .errors import ExportError

    o = parser().parse_args(args)
    try:
        for path in o.run(importlib.import_module(o.module, __package__), o):
            print(path)
    except ExportError as err:
        print(f"ddiff_export: {err}", file=sys.stderr)
        return 2
    return 0


def parser() -> argparse.ArgumentParser:
    p = argparse.ArgumentParser(prog="ddiff_export", description="Convert published checkpoints to ONNX files with a model card.")
    sub = p.add_subparsers(required=True, metavar="COMMAND")

    c = _command(sub, "guided-diffusion", "export a U-Net of guided diffusion (ADM) as a prior")
    _configured(c, "ffhq_10m, imagenet_64 .. imagenet_512, imagenet_256_uncond, lsun_*")
    _labelled(c)
    c.set_defaults(run=lambda m, o: m.guided_diffusion(o.config, o.field, o.weights, o.out, _label(o.label), o.name, o.license, _options(o)))

    c = _command(sub, "ldm", "export a latent diffusion model, such as Stable Diffusion, as a bundle; --out is a folder")
    _configured(c, "ffhq256, imagenet256, churches256, sd15, sd21, sd21_base, sdxl or sit_xl_2")
    _labelled(c)
    c.add_argument("--prompt", default="", help="text of Stable Diffusion, with the tokenizer of a folder in the diffusers layout (default: empty)")
    c.add_argument("--first-stage", type=Path, help="folder of the first stage of SiT, an AutoencoderKL of diffusers such as sd-vae-ft-mse")
    c.add_argument("--no-ema", action="store_true", help="use the last weights instead of their running averages")
    c.set_defaults(run=lambda m, o: m.latent_diffusion(
        o.config, o.field, o.weights, o.first_stage, o.out, _label(o.label), o.prompt, not o.no_ema, o.name, o.license, _options(o),
    ))  # fmt: skip

    c = _command(sub, "stable-diffusion", "convert Stable Diffusion in ONNX files to a bundle, without PyTorch; --out is a folder")
    c.add_argument("--directory", type=Path, required=True, help="folder with unet/model.onnx, vae_encoder, vae_decoder, text_encoder, tokenizer and scheduler")
    c.add_argument("--prompt", default="", help="text whose embedding is fixed in the bundle (default: empty)")
    c.set_defaults(module=".stable_diffusion_onnx", run=lambda m, o: m.export(o.directory, o.out, o.prompt, o.name, o.license, _options(o)))

    c = _command(sub, "diffusers", "export a pixel U-Net of a local directory in the diffusers layout as a prior")
    c.add_argument("--directory", type=Path, required=True, help="directory with config.json, weights and scheduler_config.json")
    c.set_defaults(run=lambda m, o: m.diffusers(o.directory, o.out, o.name, o.license, _options(o)))

    c = _command(sub, "flow", "export a U-Net of flow matching as a prior")
    _configured(c, "cfm_cifar10")
    c.set_defaults(run=lambda m, o: m.flow_matching(o.config, o.field, o.weights, o.out, o.name, o.license, _options(o)))

    c = _command(sub, "edm", "export the network of a pickle of EDM as a prior; its code is not run")
    c.add_argument("--weights", type=Path, required=True, help="published file, such as edm-ffhq-64x64-uncond-vp.pkl")
    _labelled(c)
    c.set_defaults(run=lambda m, o: m.edm_pickle(o.weights, o.out, _label(o.label), o.name, o.license, _options(o)))

    c = _command(sub, "drunet", "export the denoiser DRUNet as a prior by Tweedie's formula")
    _configured(c, "drunet_color or drunet_gray")
    c.set_defaults(run=lambda m, o: m.denoiser_prior(o.config, o.field, o.weights, o.out, o.name, o.license, _options(o)))

    c = _command(sub, "denoiser", "convert a denoiser D(x, sigma) in an ONNX file to a prior by Tweedie's formula")
    c.add_argument("--onnx", type=Path, required=True, help="file of the denoiser")
    c.add_argument("--sigma", type=_pair, required=True, metavar="LO,HI", help="noise levels of its training, in the scale of its images")
    c.add_argument("--range", default="0..1", choices=["-1..1", "0..1", "0..255"], help="scale of its images (default: 0..1)")
    c.add_argument("--multiple-of", type=int, default=1, help="image sides must be a multiple of this number (default: 1)")
    c.set_defaults(run=lambda m, o: m.denoiser_onnx(o.onnx, o.sigma, o.range, o.multiple_of, o.out, o.name, o.license, _options(o)))

    c = _command(sub, "bkse", "export the learned blur of BKSE as an operator")
    _configured(c, "gopro_wvae, gopro_wovae, reds_wovae or mix_wovae")
    c.set_defaults(run=lambda m, o: m.learned_blur(o.config, o.field, o.weights, o.out, o.name, o.license, _options(o)))

    c = _command(sub, "lpips", "export the metric LPIPS")
    c.add_argument("--network", required=True, choices=["alex", "vgg", "squeeze"])
    c.add_argument("--weights", type=Path, nargs="+", required=True, help="file of the classifier and file of the metric, or one file with both")
    c.add_argument("--narrow", type=int, default=1, help=argparse.SUPPRESS)
    c.set_defaults(run=lambda m, o: m.perceptual(o.network, o.weights, o.out, o.name, o.license, o.narrow, _options(o)))

    c = _command(sub, "half", "convert an exported file or bundle to half precision, and copy its vectors")
    c.add_argument("--onnx", type=Path, required=True, help="exported file, or folder of the bundle")
    c.set_defaults(run=lambda m, o: m.halved(o.onnx, o.out, _options(o)))
    return p


def _command(sub: argparse._SubParsersAction, name: str, text: str) -> argparse.ArgumentParser:
    c = sub.add_parser(name, help=text, description=text[0].upper() + text[1:] + ".")
    c.set_defaults(module=".commands")
    c.add_argument("--out", type=Path, required=True, help="file or folder to write")
    c.add_argument("--name", default="", help="name in the model card")
    c.add_argument("--license", default="", help="licence in the model card, instead of the licence of the publication")
    c.add_argument("--float16", action="store_true", help="use half precision; norms, softmax, time, inputs and outputs stay in float")
    c.add_argument("--external-data", action="store_true", help="store the weights in a second file (always above 2 GiB)")
    c.add_argument("--no-vectors", action="store_true", help="write no reference vectors")
    return c


def _configured(c: argparse.ArgumentParser, known: str) -> None:
    c.add_argument("--config", required=True, help=known)
    c.add_argument("--weights", type=Path, required=True, help="published file; of Stable Diffusion also a folder in the diffusers layout")
    c.add_argument("--field", action="append", default=[], metavar="FIELD=VALUE", help="change a field of the configuration (repeatable)")


def _labelled(c: argparse.ArgumentParser) -> None:
    c.add_argument("--class", dest="label", default="none", help="class of a class-conditional network, or none (default)")


def _label(text: str) -> int | None:
    from .errors import ExportError

    if text == "none":
        return None
    if not text.isdigit():
        raise ExportError(f"--class: {text!r} is neither a number nor none")
    return int(text)


def _pair(text: str) -> tuple[float, float]:
    lo, hi = (float(part) for part in text.split(","))
    return lo, hi


def _options(o: argparse.Namespace) -> object:
    from .write import Options

    return Options(half=o.float16, external=o.external_data, vectors=not o.no_vectors)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
