"""The commands: each converts files of weights to files for ddiff."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import torch
from onnx import ModelProto
from torch import Tensor

from . import (
    adm, bkse, card, checkpoint, denoiser, diffusers_unet, edm, flow, ldm, lpips, onnx_file, sit, stable_diffusion, tokens, tweedie, tweedie_onnx, vectors,
    write,
)  # fmt: skip
from .errors import ExportError
from .onnx_file import IMAGE
from .overrides import apply, choose
from .write import Options, Ports


def guided_diffusion(config: str, fields: Sequence[str], weights: Path, out: Path, label: int | None, name: str, license: str, o: Options) -> list[Path]:
    """Exports a U-Net of guided diffusion as a prior."""
    c = apply(choose(adm.CONFIGS, config), fields)
    network = adm.load(c, checkpoint.read(weights), str(weights), label)
    training = f"guided diffusion, configuration {config}"
    if c.classes:
        training += f", class {label}" if label is not None else ", class left out, which it was not trained for"
    described = card.Card(name or config, license or c.license, training, schedule=c.schedule, channels=c.channels, multiple_of=c.multiple)
    return write.prior(network, described, out, o)


def latent_diffusion(
    config: str, fields: Sequence[str], weights: Path, stage: Path | None, out: Path, label: int | None, prompt: str, ema: bool, name: str, license: str, o: Options,
) -> list[Path]:
    """Exports a latent diffusion model as a bundle. weights is a file, or a folder in the diffusers layout."""
    c = apply(choose(ldm.CONFIGS, config), fields)
    if license:
        c = replace(c, unet=replace(c.unet, license=license))
    if prompt and c.text is None:
        raise ExportError(f"--prompt: {config} takes none")
    if prompt and not (weights / "tokenizer").is_dir():
        raise ExportError(f"--prompt: {weights} has no folder tokenizer; give a folder in the diffusers layout")
    words = c.text.framed(tokens.words(prompt, weights / "tokenizer")) if c.text and prompt else None
    xl = isinstance(c.unet, adm.Config) and c.unet.condition > 0
    if (c.text or xl) and weights.is_dir():
        stable_diffusion.check_scheduler(weights, c.prediction, c.unet.schedule)
        state = stable_diffusion.read_folder(weights, text=not xl)
    elif c.separate:
        if stage is None:
            raise ExportError(f"--first-stage is required: the file of {config} has the network only; give a folder with an AutoencoderKL of diffusers")
        first = stable_diffusion.stage_names(checkpoint.read(diffusers_unet.weights(stage)))
        state = {"model.diffusion_model." + k: v for k, v in checkpoint.read(weights).items()} | {"first_stage_model." + k: v for k, v in first.items()}
    else:
        state = checkpoint.read(weights)
    model = ldm.load(c, state, str(weights), label, ema, words)
    training = f"latent diffusion, configuration {config}"
    if c.text:
        training += f", prompt {json.dumps(prompt)}"
    elif xl:
        training += ", without a prompt"
    elif c.unet.classes:
        training += f", class {label}" if label is not None else f", the null class {c.null_class}"
    f, latent = c.first_stage.factor, c.first_stage.latent
    small = ("batch", latent, f"height/{f}", f"width/{f}")
    free = ("batch", latent, "height", "width")
    own = ("batch", latent, c.unet.size, c.unet.size) if isinstance(c.unet, sit.Config) else free
    large = ("batch", c.first_stage.channels, f"height*{f}", f"width*{f}")
    ports = {
        "encoder": Ports({"x": IMAGE}, {"z": small}),
        "quantizer": Ports({"z": free}, {"q": free}),
        "decoder": Ports({"z": free}, {"x": large}),
        "unet": Ports({"z": own, "t": write.TIME}, {"eps": own}),
    }
    files: dict[str, Path] = {}
    out.mkdir(parents=True, exist_ok=True)
    for role, module in ldm.parts(model).items():
        side = f * c.unet.multiple
        least, more = (side, 0) if c.separate else (max(64, 2 * side), side)  # PyTorch refuses group normalisations of one pixel

        def example(which: int, role: str = role) -> Mapping[str, Tensor]:
            return ldm.example(role, model, 1 + which, least, least + which * more, o.seed + which)

        def mark(m: ModelProto, role: str = role) -> None:
            onnx_file.set_metadata(m, card.described("latent-" + role, name or f"ldm_{config}", c.unet.license))

        # The quantizer stays in float: half precision would select other codes. So does the first stage of SDXL, whose values exceed its range.
        options = replace(o, half=o.half and role != "quantizer" and (not xl or role == "unet"))
        files[role] = write.module(module, ports[role], example, mark, out / f"{role}.onnx", options)[0]
    path = out / "bundle.json"
    path.write_text(ldm.bundle_card(model, name or f"ldm_{config}", training, files))
    return [path, *files.values()]


def diffusers(directory: Path, out: Path, name: str, license: str, o: Options) -> list[Path]:
    """Exports a pixel U-Net of a directory in the diffusers layout as a prior."""
    if not license:
        raise ExportError("--license is required: the directory does not contain the licence of the weights")
    network, said = diffusers_unet.open_directory(directory)
    c = network.config
    described = card.Card(
        name or directory.resolve().name, license, "a diffusers UNet2DModel", said["prediction"], said["schedule"],
        c.in_channels, c.multiple, f"int64 index 0..{said['steps'] - 1}",
    )  # fmt: skip
    return write.prior(network, described, out, o, steps=said["steps"])


def flow_matching(config: str, fields: Sequence[str], weights: Path, out: Path, name: str, license: str, o: Options) -> list[Path]:
    """Exports a U-Net of flow matching as a prior."""
    c = apply(choose(flow.CONFIGS, config), fields)
    network = flow.load(c, checkpoint.read(weights), str(weights))
    described = card.Card(
        name or config, license or c.license, f"flow matching, configuration {config}", "velocity", c.schedule, c.channels, c.multiple, "float t: 1 is noise"
    )
    return write.prior(network, described, out, o, times=(0.01, 0.9))


def edm_pickle(weights: Path, out: Path, label: int | None, name: str, license: str, o: Options) -> list[Path]:
    """Exports the network of a pickle of EDM as a prior."""
    network, deviation = edm.load(weights, label)
    c = network.config
    training = "EDM" + (f", class {label}" if label is not None else "")
    described = card.Card(
        name or weights.stem, license or "CC-BY-NC-SA-4.0", training, f"edm:{deviation:g}", edm.SCHEDULE, c.in_channels, c.multiple, "float ln(sigma)/4"
    )
    return write.prior(network, described, out, o, times=(-1.1, 1.0))


def denoiser_prior(config: str, fields: Sequence[str], weights: Path, out: Path, name: str, license: str, o: Options) -> list[Path]:
    """Exports a DRUNet as a prior by Tweedie's formula."""
    c = apply(choose(denoiser.CONFIGS, config), fields)
    network = denoiser.load(c, checkpoint.read(weights), str(weights))
    lo, hi = (2 * s for s in c.sigma)  # images in [-1, 1] are twice as wide
    described = card.Card(
        name or config, license or c.license, tweedie.described(lo, hi), schedule=tweedie.SCHEDULE, channels=c.channels, multiple_of=c.multiple
    )
    return write.prior(tweedie.Prior(network, lo, hi, "0..1"), described, out, o)


def denoiser_onnx(path: Path, sigma: tuple[float, float], scale: str, multiple: int, out: Path, name: str, license: str, o: Options) -> list[Path]:
    """Converts a denoiser in an ONNX file to a prior by Tweedie's formula. Writes no vectors,
    because they would come from the file itself."""
    if not license:
        raise ExportError("--license is required: name the licence of the denoiser")
    lo, hi = (s / tweedie.RANGES[scale][0] for s in sigma)
    model = tweedie_onnx.wrap(onnx_file.open_model(path), lo, hi, scale, str(path))
    channels = model.graph.input[0].type.tensor_type.shape.dim[1].dim_value
    described = card.Card(name or path.stem, license, tweedie.described(lo, hi), schedule=tweedie.SCHEDULE, channels=channels, multiple_of=multiple)
    card.write(model, described)
    return write.model_file(model, out, o)


def learned_blur(config: str, fields: Sequence[str], weights: Path, out: Path, name: str, license: str, o: Options) -> list[Path]:
    """Exports the learned blur of BKSE as an operator y = A(x; k)."""
    c = apply(choose(bkse.CONFIGS, config), fields)
    network = bkse.load(c, checkpoint.read(weights), str(weights))
    m = bkse.MULTIPLE
    code = ("batch", c.code, f"height/{m}", f"width/{m}")

    def example(which: int) -> Mapping[str, Tensor]:
        generator = torch.Generator().manual_seed(o.seed + which)
        n, columns = 1 + which, 1 + which
        return {
            "x": torch.rand((n, 3, m, m * columns), generator=generator) * 2 - 1,
            "k": torch.randn((n, c.code, 1, columns), generator=generator) * bkse.CODE_STD,
        }

    def mark(model: ModelProto) -> None:
        entries = card.described(
            "operator", name or f"bkse_{config}", license or c.license, range="-1..1", channels=3, multiple_of=m,
            linear="false", parameter="k", parameter_std=bkse.CODE_STD,
        )  # fmt: skip
        onnx_file.set_metadata(model, entries)

    ports = Ports({"x": IMAGE, "k": code}, {"y": IMAGE})
    return write.module(network, ports, example, mark, out, o)


def perceptual(network: str, weights: Sequence[Path], out: Path, name: str, license: str, narrow: int, o: Options) -> list[Path]:
    """Exports LPIPS as a metric."""
    module = lpips.load(network, [(str(path), checkpoint.read(path)) for path in weights], narrow)

    def example(which: int) -> Mapping[str, Tensor]:
        generator = torch.Generator().manual_seed(o.seed + which)
        x = torch.rand((1 + which, 3, 64, 64 + 16 * which), generator=generator) * 2 - 1
        return {"x": x, "y": (x + 0.3 * torch.randn(x.shape, generator=generator)).clamp(-1, 1)}

    def mark(model: ModelProto) -> None:
        entries = card.described(
            "metric", name or f"lpips_{network}", license or "BSD-2-Clause", range="-1..1", channels=3, multiple_of=1,
            metric=f"lpips_{network}", metric_version=1, backbone=network, weights_sha256=lpips.digest(module), min_size=lpips.minimum(module),
        )  # fmt: skip
        onnx_file.set_metadata(model, entries)

    ports = Ports({"x": IMAGE, "y": IMAGE}, {"distance": ("batch",)})
    return write.module(module, ports, example, mark, out, o)


def halved(path: Path, out: Path, o: Options) -> list[Path]:
    """Converts a file or bundle that was exported in float to half precision."""
    if not path.is_dir():
        return _halved_file(path, out, o)
    try:
        described = json.loads((path / "bundle.json").read_text())
        parts = {role: part["file"] for role, part in described["files"].items()}
        foreign = [name for name in parts.values() if Path(name).name != name]
    except (OSError, ValueError, KeyError, TypeError) as err:
        raise ExportError(f"{path}: not a bundle: cannot read bundle.json: {err}") from None
    if foreign:
        raise ExportError(f"{path}: bundle.json names {foreign[0]!r}, which is no file of the bundle")
    files = {role: _halved_file(path / name, out / name, o, keep=role == "quantizer")[0] for role, name in parts.items()}
    described["files"] = {role: {"file": f.name, "sha256": onnx_file.file_digest(f)} for role, f in files.items()}
    (out / "bundle.json").write_text(json.dumps(described, indent=1) + "\n")
    return [out / "bundle.json", *files.values()]


def _halved_file(path: Path, out: Path, o: Options, keep: bool = False) -> list[Path]:
    if path.resolve() == out.resolve():
        raise ExportError(f"--out: {out} is the input file; choose another path")
    options = replace(o, half=not keep)
    files = write.model_file(onnx_file.open_model(path), out, options)
    if o.vectors and vectors.folder(path).is_dir():
        vectors.copy(path, files[0], options.precision)
    return files
