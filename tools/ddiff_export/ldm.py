"""Latent diffusion with a VQ or KL first stage, Stable Diffusion, SDXL and SiT too: reads a checkpoint and writes a bundle.

A bundle is a folder with encoder.onnx (x to z), quantizer.onnx (z to q, not for KL), decoder.onnx
(z or q to x), unet.onnx (z, t to eps) and the card bundle.json, with the digests of the files.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

import torch
from torch import Tensor, nn

from . import adm, card, clip, flow, sit, vq
from .adm_blocks import timestep_embedding
from .checkpoint import State, fit, part, without_init
from .errors import ExportError

SIZES = (1024, 1024, 0, 0, 1024, 1024)  # condition of SDXL: height and width before and after a crop, and its corner between them
SIZE_WIDTH = 256  # of the embedding of one of them

LICENSE = "MIT"  # licence of the code published with the weights


@dataclass(frozen=True)
class Config:
    """Configuration of a published latent diffusion model."""

    unet: adm.Config | sit.Config
    first_stage: vq.Config = field(default_factory=vq.Config)
    null_class: int | None = None  # the class that means "no class"
    text: clip.Config | None = None  # encoder of a prompt, instead of classes
    prediction: str = "epsilon"
    scale: float = 0.0  # of latents, where the file does not state it
    separate: bool = False  # the first stage is in another file
    published: str = ""

    def tiny(self) -> Config:
        """The same structure, narrower."""
        null = None if self.null_class is None else 6  # the last of seven
        unet = self.unet.tiny()
        text = None if self.text is None else self.text.tiny(unet.context)
        return replace(self, unet=unet, first_stage=self.first_stage.tiny(), null_class=null, text=text)


def _unet(width: int, multipliers: tuple[int, ...], **more: object) -> adm.Config:
    return adm.Config(
        64, width, multipliers, 2, attention=(2, 4, 8), learned_variance=False, scale_shift=False, resample_blocks=False,
        schedule="scaled_linear:0.0015:0.0195:1000", license=LICENSE, **more,
    )  # fmt: skip


def _stable(published: str, license: str, text: clip.Config, prediction: str = "epsilon", **heads: int) -> Config:
    unet = adm.Config(
        64, 320, (1, 2, 4, 4), 2, attention=(1, 2, 4), channels=4, learned_variance=False, scale_shift=False, resample_blocks=False,
        context=text.width, schedule="scaled_linear:0.00085:0.012:1000", license=license, **heads,
    )  # fmt: skip
    stage = vq.Config(128, (1, 2, 4, 4), latent=4, kind="kl")
    return Config(unet, stage, text=text, prediction=prediction, scale=0.18215, published=published)


_OPEN_CLIP = clip.Config(1024, 23, 16, quick_gelu=False, padded_with_end=False)  # without its last layer

CONFIGS: dict[str, Config] = {
    "ffhq256": Config(_unet(224, (1, 2, 3, 4), head_width=32), published="ldm_ffhq256.pt"),
    "imagenet256": Config(
        _unet(192, (1, 2, 3, 5), heads=1, classes=1001, context=512), null_class=1000, published="ldm_imagenet256.pt"
    ),
    "churches256": Config(
        adm.Config(
            32, 192, (1, 2, 2, 4, 4), 2, attention=(1, 2, 4, 8), heads=8, channels=4, learned_variance=False,
            schedule="scaled_linear:0.0015:0.0155:1000", license=LICENSE,
        ),
        first_stage=vq.Config(128, (1, 2, 4, 4), latent=4, kind="kl"), published="ldm_churches256.pt",
    ),
    "sd15": _stable("v1-5-pruned-emaonly.safetensors", "CreativeML Open RAIL-M", clip.Config(), heads=8),
    "sd21": _stable("v2-1_768-ema-pruned.safetensors", "CreativeML Open RAIL++-M", _OPEN_CLIP, "velocity", head_width=64),
    "sdxl": Config(
        adm.Config(
            128, 320, (1, 2, 4), 2, attention=(2, 4), head_width=64, channels=4, learned_variance=False, scale_shift=False, resample_blocks=False, context=2048,
            depth=(0, 2, 10), condition=1280 + len(SIZES) * SIZE_WIDTH, schedule="scaled_linear:0.00085:0.012:1000", license="CreativeML Open RAIL++-M",
        ),
        vq.Config(128, (1, 2, 4, 4), latent=4, kind="kl"), scale=0.13025, published="sd_xl_base_1.0.safetensors",
    ),
    "sit_xl_2": Config(
        sit.Config(), vq.Config(128, (1, 2, 4, 4), latent=4, kind="kl"), 1000, prediction="velocity", scale=0.18215, published="SiT-XL-2-256x256.pt",
        separate=True,
    ),
    "sd21_base": _stable("v2-1_512-ema-pruned.safetensors", "CreativeML Open RAIL++-M", _OPEN_CLIP, head_width=64),
}  # fmt: skip


class _Labels(nn.Module):
    """The class embedding."""

    def __init__(self, classes: int, width: int) -> None:
        super().__init__()
        self.embedding = nn.Embedding(classes, width)


@dataclass
class Model:
    """The networks of a checkpoint, ready for inference."""

    config: Config
    unet: nn.Module
    first_stage: vq.FirstStage
    scale: float
    label: int | None = None  # the class settled into the U-Net


def load(config: Config, state: State, source: str, label: int | None = None, ema: bool = True, words: list[int] | None = None) -> Model:
    """Loads the networks. label None selects the null class, if there is one; words are the tokens of a prompt, the empty one if None; ema
    selects the running averages of the network's weights, if the file has them."""
    with without_init():
        unet = sit.SiT(config.unet) if isinstance(config.unet, sit.Config) else adm.UNet(replace(config.unet, classes=0))
        stage = vq.FirstStage(config.first_stage)
    weights = part(state, "model.diffusion_model.")
    if not weights:
        raise ExportError(f"{source}: another architecture than --config: no name starts with model.diffusion_model.; is it a latent diffusion model?")
    if ema:
        weights = _averaged(weights, part(state, "model_ema."), source)
    for name, value in weights.items():
        if name.endswith(("proj_in.weight", "proj_out.weight")) and value.dim() == 2:  # a matrix as a convolution
            weights[name] = value[:, :, None, None]
    fit(unet, weights, f"{source} (model.diffusion_model)")
    fit(stage, part(state, "first_stage_model."), f"{source} (first_stage_model)", ignore=("loss.", "model_ema."))
    if label is not None and (config.text or not config.unet.classes):
        raise ExportError("--class: this network has no classes")
    context = None
    if isinstance(unet, sit.SiT):
        label = config.null_class if label is None else label
        unet.settle(label)
        unet = flow.Flow(unet)
    elif config.text:
        context = _prompt(config.text, state, source, words or config.text.empty())
    elif config.unet.condition:
        context, condition = unprompted(config.unet)
        unet.settle_condition(condition)
    elif config.unet.context:
        label = config.null_class if label is None else label
        context = _class(config, state, source, label)
    if context is not None:
        for module in unet.modules():
            if hasattr(module, "settle"):
                module.settle(context)
    scale = config.scale or (1.0 if config.first_stage.kind == "vq" else 0.0)
    scale = float(state.get("scale_factor", scale))
    if not scale:
        raise ExportError(f"{source}: scale_factor is missing, without which a KL first stage does not fit its U-Net; state it with --field scale=NUMBER")
    return Model(config, unet, stage, scale, label)


def unprompted(c: adm.Config) -> tuple[Tensor, Tensor]:
    """What SDXL was trained with in place of a prompt: embeddings of zeros, of which one token stands for all, and pictures of 1024x1024."""
    sizes = timestep_embedding(torch.tensor(SIZES), SIZE_WIDTH).flatten()
    return torch.zeros(1, c.context), torch.cat([torch.zeros(c.condition - len(sizes)), sizes])


def _prompt(c: clip.Config, state: State, source: str, words: list[int]) -> Tensor:
    """The embeddings of a prompt, one for each token."""
    weights = clip.names(part(state, "cond_stage_model.transformer.") or part(state, "cond_stage_model.model."))
    if not weights:
        raise ExportError(f"{source}: it has no text encoder (cond_stage_model); give the whole checkpoint, or a folder in the diffusers layout")
    with without_init():
        encoder = clip.Encoder(c)
    fit(encoder, weights, f"{source} (cond_stage_model)", ignore=("embeddings.position_ids", f"encoder.layers.{c.layers}."))
    return encoder(torch.tensor(words))


def _class(config: Config, state: State, source: str, label: int | None) -> Tensor:
    """The embedding of a class, a context of one token."""
    with without_init():
        labels = _Labels(config.unet.classes, config.unet.context)
    fit(labels, part(state, "cond_stage_model."), f"{source} (cond_stage_model)")
    if label is None or not 0 <= label < config.unet.classes:
        raise ExportError(f"--class: {label} is outside 0..{config.unet.classes - 1}")
    return labels.embedding.weight.data[label : label + 1]


def _averaged(weights: State, ema: State, source: str) -> State:
    """The running averages, which are stored under names without dots."""
    ema = {k: v for k, v in ema.items() if k not in ("decay", "num_updates")}
    if not ema:
        return weights
    names = {("diffusion_model." + name).replace(".", ""): name for name in weights}
    lost = [name for short, name in names.items() if short not in ema]
    if lost:
        raise ExportError(f"{source}: the running averages lack {len(lost)} weights (first: {lost[0]}); export with --no-ema")
    return {name: ema[short] for short, name in names.items()}


def published(model: Model, labels: Tensor | None = None, text: State | None = None) -> State:
    """The state dict of a checkpoint with these networks, the embeddings of classes or the weights of an encoder of prompts."""
    out = {f"model.diffusion_model.{k}": v for k, v in model.unet.state_dict().items()}
    out |= {f"first_stage_model.{k}": v for k, v in model.first_stage.state_dict().items()}
    if model.scale not in (1, model.config.scale):
        out["scale_factor"] = torch.tensor(model.scale)
    out |= {f"cond_stage_model.{k}": v for k, v in (text or {}).items()}
    if labels is not None:
        out["cond_stage_model.embedding.weight"] = labels
    return out


def bundle_card(model: Model, name: str, training: str, files: Mapping[str, Path]) -> str:
    """The text of bundle.json."""
    c, stage = model.config.unet, model.config.first_stage
    settled = {} if model.label is None else {"class": "none" if model.label == model.config.null_class else str(model.label)}
    return card.bundle(
        files, name=name, license=c.license, training=training, first_stage=stage.kind, **settled, prediction=model.config.prediction, schedule=c.schedule,
        range="-1..1", channels=stage.channels, latent=stage.latent, factor=stage.factor, multiple_of=stage.factor * c.multiple, scale=model.scale,
    )  # fmt: skip


def parts(model: Model) -> dict[str, nn.Module]:
    """The modules of the bundle by role. Latents have the scale of the U-Net."""
    stage = model.first_stage
    quantizer = {"quantizer": vq.Quantize(stage, model.scale).eval()} if model.config.first_stage.kind == "vq" else {}
    return {
        "encoder": vq.Encode(stage, model.scale).eval(),
        **quantizer,
        "decoder": vq.Decode(stage, model.scale).eval(),
        "unet": model.unet,
    }


def example(role: str, model: Model, batch: int, height: int, width: int, seed: int) -> dict[str, Tensor]:
    """Example inputs of a part, for images of height x width."""
    generator = torch.Generator().manual_seed(seed)
    f, c = model.config.first_stage.factor, model.config.first_stage.latent
    latent = (batch, c, height // f, width // f)
    if role == "encoder":
        return {"x": torch.rand((batch, 3, height, width), generator=generator) * 2 - 1}
    if role == "quantizer":
        return {"z": vq.margin_latents(vq.Quantize(model.first_stage, model.scale), latent, seed)}
    z = {"z": torch.randn(latent, generator=generator)}
    t = torch.linspace(0.01, 0.9, batch) if isinstance(model.unet, flow.Flow) else torch.linspace(20, 900, batch).long()
    return z if role == "decoder" else z | {"t": t}
