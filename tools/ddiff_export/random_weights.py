"""Small networks of every architecture with random weights, saved in the formats of the published files.

Each network has the structure of a published configuration with smaller widths. The formats are
zip and older PyTorch checkpoints, a training checkpoint, pickled modules, and safetensors.
"""

from __future__ import annotations

import json
import pickle
import sys
import types
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from unittest import mock

import torch
from torch import Tensor, nn

from . import adm, bkse, clip, denoiser, diffusers_unet, edm, flow, ldm, lpips, onnx_file, pnp_flow, sit, tweedie, vq
from .checkpoint import State, write_safetensors
from .overrides import settings

ADM = ("ffhq_10m", "imagenet_64", "imagenet_128", "imagenet_256_uncond", "imagenet_512")
NARROW = 4  # divisor of the widths of LPIPS-VGG


@dataclass(frozen=True)
class Case:
    """The command line that exports an architecture's files, without --out."""

    name: str
    kind: str  # prior, bundle, operator or metric
    arguments: tuple[str, ...]
    # For a denoiser in an ONNX file: the PyTorch prior that the export must equal.
    reference: nn.Module | None = None


def randomise(module: nn.Module, seed: int, gain: float = 1.0) -> nn.Module:
    """Random weights that preserve the magnitude of values from layer to layer."""
    generator = torch.Generator().manual_seed(seed)
    for name, p in module.named_parameters():
        noise = torch.randn(p.shape, generator=generator)
        if p.dim() > 1:
            p.data = noise * gain / max(p[0].numel(), 1) ** 0.5
        else:
            p.data = 0.1 * noise + (1.0 if name.endswith("weight") else 0.0)
    return module.eval().requires_grad_(False)


def state(module: nn.Module) -> State:
    return OrderedDict((name, value.clone()) for name, value in module.state_dict().items())


def cases(out: Path, seed: int = 0) -> list[Case]:
    """Writes the files of all architectures to the folder out."""
    out.mkdir(parents=True, exist_ok=True)
    made = [_adm(out, name, seed) for name in ADM]
    made += [_ldm(out, name, seed) for name, c in ldm.CONFIGS.items() if not c.separate and name != "sd21_base"] + [_sit(out, seed)]
    made += [_flow(out, seed), _pnp_flow(out, seed), _edm(out, seed, adm=False), _edm(out, seed, adm=True)]
    made += [_diffusers(out, seed), *_drunet(out, seed), _bkse(out, seed)]
    return made + [_lpips(out, name, seed) for name in lpips.LAYERS]


def _fields(config: object) -> list[str]:
    return [word for setting in settings(config) for word in ("--field", setting)]


def shallow(c: adm.Config, levels: int = 3) -> adm.Config:
    """A narrow network with one block less, and with the first level and the deepest ones. PyTorch's exporter takes a time that grows with the square of
    the number of layers."""
    left_out = max(0, len(c.multipliers) - levels)
    return replace(
        c.tiny(), blocks=max(1, c.blocks - 1), multipliers=c.tiny().multipliers[:1] + c.tiny().multipliers[1 + left_out :],
        attention=tuple(min(factor, max(2, factor >> left_out)) for factor in c.attention),
    )  # fmt: skip


def _adm(out: Path, name: str, seed: int) -> Case:
    c = shallow(adm.CONFIGS[name])
    path = out / (adm.CONFIGS[name].published)
    torch.save(state(randomise(adm.UNet(c), seed)), path)
    label = ["--class", "3"] if c.classes else []
    return Case(f"adm_{name}", "prior", ("guided-diffusion", "--config", name, "--weights", str(path), *_fields(c), *label))


def _ldm(out: Path, name: str, seed: int) -> Case:
    c = replace(ldm.CONFIGS[name].tiny(), unet=shallow(ldm.CONFIGS[name].unet))
    if c.text or c.unet.condition:  # Stable Diffusion, whose first stage is that of churches256
        c = replace(c, first_stage=replace(c.first_stage, blocks=1))
    unet = randomise(adm.UNet(replace(c.unet, classes=0)), seed)
    stage = randomise(vq.FirstStage(c.first_stage), seed + 1)
    labels = torch.randn(c.unet.classes, c.unet.context, generator=torch.Generator().manual_seed(seed)) if c.unet.classes else None
    scale = c.scale or (0.5 if c.first_stage.kind == "kl" else 1.0)
    text = {f"transformer.text_model.{k}": v for k, v in randomise(clip.Encoder(c.text), seed + 2).state_dict().items()} if c.text else None
    weights = ldm.published(ldm.Model(c, unet, stage, scale), labels, text)
    averaged = {f"model_ema.diffusion_model{k.replace('.', '')}": v for k, v in unet.state_dict().items()}
    if name == "ffhq256":  # with running averages that differ from the last weights
        weights |= averaged | {"model_ema.decay": torch.tensor(0.9999), "model_ema.num_updates": torch.tensor(1)}
        weights = {k: v * 1.5 if k.startswith("model.diffusion_model.") else v for k, v in weights.items()}
    path = out / f"{Path(ldm.CONFIGS[name].published).stem}.ckpt"
    torch.save({"epoch": 1, "global_step": 2, "state_dict": OrderedDict(weights), "optimizer_states": [], "lr_schedulers": []}, path)
    return Case(f"ldm_{name}", "bundle", ("ldm", "--config", name, "--weights", str(path), *_fields(c)))


def _sit(out: Path, seed: int) -> Case:
    c = ldm.CONFIGS["sit_xl_2"].tiny()
    path, folder = out / ldm.CONFIGS["sit_xl_2"].published, out / "sd-vae"
    torch.save(state(randomise(sit.SiT(c.unet), seed)), path)
    folder.mkdir(exist_ok=True)
    write_safetensors(state(randomise(vq.FirstStage(c.first_stage), seed + 1)), folder / "diffusion_pytorch_model.safetensors")
    return Case("sit", "bundle", ("ldm", "--config", "sit_xl_2", "--weights", str(path), "--first-stage", str(folder), *_fields(c), "--class", "3"))


def _flow(out: Path, seed: int) -> Case:
    c = shallow(flow.CONFIGS["cfm_cifar10"])
    weights = state(randomise(adm.UNet(c), seed))
    path = out / flow.CONFIGS["cfm_cifar10"].published
    torch.save({"net_model": {k: 2 * v for k, v in weights.items()}, "ema_model": weights, "step": 400000}, path)
    return Case("flow_cfm", "prior", ("flow", "--config", "cfm_cifar10", "--weights", str(path), *_fields(c)))


def _pnp_flow(out: Path, seed: int) -> Case:
    c = flow.CONFIGS["pnp_celeba"].tiny()
    path = out / "model_final.pt"
    torch.save(state(randomise(pnp_flow.UNet(c), seed)), path)
    return Case("flow_pnp", "prior", ("flow", "--config", "pnp_celeba", "--weights", str(path), *_fields(c)))


def _edm(out: Path, seed: int, adm: bool) -> Case:
    arguments = {
        "img_resolution": 32, "in_channels": 3, "out_channels": 3, "label_dim": 10 if adm else 0, "augment_dim": 9, "dropout": 0.1,
        "model_channels": 32, "channel_mult": [1, 2], "num_blocks": 1, "attn_resolutions": [16],
    }  # fmt: skip
    path = out / f"edm-{'adm' if adm else 'vp'}.pkl"
    kind = "DhariwalUNet" if adm else "SongUNet"
    pickle_edm(randomise(edm.UNet(edm.config(kind, arguments, "the test")), seed), arguments, path)
    return Case(path.stem.replace("-", "_"), "prior", ("edm", "--weights", str(path), *(["--class", "3"] if adm else [])))


def _reconstruct_persistent_obj(meta: Mapping[str, Any]) -> None:
    """Stands for the function of this name, which runs the code of a pickle."""
    raise AssertionError("the code of a pickle was run")


class _Persistent(nn.Module):
    """A module that is pickled like those of torch_utils.persistence."""

    def __reduce__(self) -> tuple:
        fields = dict(self.__dict__)
        name = fields.pop("name")
        return _reconstruct_persistent_obj, ({"type": "class", "version": 6, "module_src": "raise SystemExit", "class_name": name, "state": fields},)


def _persistent(module: nn.Module, name: str = "", **more: Any) -> nn.Module:
    """A module with its parts in that form; dictionaries of modules are those of PyTorch."""
    plain = isinstance(module, nn.ModuleDict)
    out = nn.ModuleDict() if plain else _Persistent()
    out.__dict__.update(module.__dict__ | ({} if plain else {"name": name or type(module).__name__}) | more)
    out._modules = OrderedDict((k, _persistent(m)) for k, m in module._modules.items() if m is not None)
    return out


def pickle_edm(network: edm.UNet, arguments: Mapping[str, Any], path: Path) -> None:
    """Writes a U-Net as a published pickle of EDM."""
    kind = "DhariwalUNet" if network.config.adm else "SongUNet"
    network.map_augment = nn.Linear(9, network.config.model_channels, bias=False)
    whole = _persistent(nn.Module(), "EDMPrecond", sigma_data=0.5)
    whole._modules["model"] = _persistent(network, kind, _init_args=(), _init_kwargs=dict(arguments), config=None)
    packages = {name: types.ModuleType(name) for name in ("torch_utils", "torch_utils.persistence")}
    packages["torch_utils.persistence"]._reconstruct_persistent_obj = _reconstruct_persistent_obj  # type: ignore[attr-defined]
    with mock.patch.dict(sys.modules, packages), mock.patch.object(_reconstruct_persistent_obj, "__module__", "torch_utils.persistence"), path.open("wb") as file:
        pickle.dump({"ema": whole, "loss_fn": None}, file)


def _diffusers(out: Path, seed: int) -> Case:
    fields = {
        "_class_name": "UNet2DModel", "act_fn": "silu", "attention_head_dim": None, "block_out_channels": [32, 32, 64], "center_input_sample": False,
        "down_block_types": ["DownBlock2D", "AttnDownBlock2D", "DownBlock2D"], "downsample_padding": 0, "flip_sin_to_cos": False, "freq_shift": 1,
        "in_channels": 3, "layers_per_block": 2, "mid_block_scale_factor": 1, "norm_eps": 1e-6, "norm_num_groups": 32, "out_channels": 3,
        "sample_size": 32, "time_embedding_type": "positional", "up_block_types": ["UpBlock2D", "AttnUpBlock2D", "UpBlock2D"],
    }  # fmt: skip
    folder = out / "ddpm-small"
    folder.mkdir(exist_ok=True)
    network = randomise(diffusers_unet.UNet(diffusers_unet.config(fields, "config")), seed)
    write_safetensors(network.state_dict(), folder / "diffusion_pytorch_model.safetensors")
    (folder / "config.json").write_text(json.dumps(fields))
    scheduler = {"_class_name": "DDPMScheduler", "beta_start": 0.0001, "beta_end": 0.02, "beta_schedule": "linear", "num_train_timesteps": 1000}
    (folder / "scheduler_config.json").write_text(json.dumps(scheduler))
    return Case("diffusers_unet", "prior", ("diffusers", "--directory", str(folder), "--license", "none"))


def _drunet(out: Path, seed: int) -> list[Case]:
    c = denoiser.CONFIGS["drunet_color"].tiny()
    # Residual blocks without normalisation amplify values: use smaller weights.
    network = randomise(denoiser.DRUNet(c), seed, gain=0.8)
    path = out / denoiser.CONFIGS["drunet_color"].published
    torch.save(state(network), path)
    known = Case("tweedie_drunet", "prior", ("drunet", "--config", "drunet_color", "--weights", str(path), *_fields(c)))

    x, s = torch.rand(1, 3, 16, 16), torch.tensor([0.1])
    image = ("n", 3, "h", "w")
    onnx_file.save(onnx_file.trace(network, {"x": (x, image), "s": (s, ("n",))}, {"y": image}), out / "denoiser.onnx")
    lo, hi = (2 * v for v in c.sigma)
    arguments = (
        "denoiser", "--onnx", str(out / "denoiser.onnx"), "--sigma", f"{c.sigma[0]},{c.sigma[1]}", "--multiple-of", str(c.multiple), "--license", "none",
    )  # fmt: skip
    return [known, Case("tweedie_onnx", "prior", arguments, tweedie.Prior(network, lo, hi, "0..1"))]


def _bkse(out: Path, seed: int) -> Case:
    c = bkse.CONFIGS["gopro_wvae"].tiny()
    path = out / bkse.CONFIGS["gopro_wvae"].published
    torch.save(state(randomise(bkse.Wizard(c), seed, gain=0.7)), path)
    return Case("bkse", "operator", ("bkse", "--config", "gopro_wvae", "--weights", str(path), *_fields(c)))


def _lpips(out: Path, name: str, seed: int) -> Case:
    narrow = NARROW if name == "vgg" else 1
    module = randomise(lpips.LPIPS(name, narrow), seed, gain=1.4)
    whole = {k: v.abs() if k.startswith("lin") else v for k, v in state(module).items()}
    trunk, linear = out / lpips.TRUNKS[name], out / f"{name}.pth"
    classifier: dict[str, Tensor] = {k: v for k, v in whole.items() if k.startswith("features.")}
    torch.save(OrderedDict(classifier | {"classifier.1.weight": torch.ones(2, 2)}), trunk, _use_new_zipfile_serialization=False)
    torch.save(OrderedDict((k, v) for k, v in whole.items() if k.startswith("lin")), linear, _use_new_zipfile_serialization=False)
    return Case(f"lpips_{name}", "metric", ("lpips", "--network", name, "--narrow", str(narrow), "--weights", str(trunk), str(linear)))


