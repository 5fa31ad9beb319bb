"""Stable Diffusion 1.x and 2.x and SDXL: renames the weights of a diffusers folder to those of a single file, which ldm reads."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from torch import Tensor

from .checkpoint import State, read
from .diffusers_unet import weights
from .errors import ExportError
from .layout import scheduler

BLOCKS = 2  # residual blocks per resolution

RESIDUAL = {
    "norm1": "in_layers.0", "conv1": "in_layers.2", "time_emb_proj": "emb_layers.1", "norm2": "out_layers.0", "conv2": "out_layers.3",
    "conv_shortcut": "skip_connection",
}  # fmt: skip
OUTER = {
    "conv_in": "input_blocks.0.0", "time_embedding.linear_1": "time_embed.0", "time_embedding.linear_2": "time_embed.2", "conv_norm_out": "out.0",
    "conv_out": "out.2", "add_embedding.linear_1": "label_emb.0.0", "add_embedding.linear_2": "label_emb.0.2",
}  # fmt: skip
# Attention of the first stage, and its older names.
STAGE = {
    "group_norm": "norm", "to_q": "q", "to_k": "k", "to_v": "v", "to_out.0": "proj_out", "query": "q", "key": "k", "value": "v", "proj_attn": "proj_out",
}  # fmt: skip


def read_folder(folder: Path, text: bool = True) -> State:
    """The state dict of a folder in the diffusers layout (unet, vae, and with text text_encoder), with the names of a single file."""
    state: State = {}
    for part, prefix, names in (
        ("unet", "model.diffusion_model.", unet_names),
        ("vae", "first_stage_model.", stage_names),
        *([("text_encoder", "cond_stage_model.transformer.", dict)] if text else []),
    ):
        state |= {prefix + k: v for k, v in names(read(weights(folder / part))).items()}
    return state


def check_scheduler(folder: Path, prediction: str, schedule: str) -> None:
    """Refuses a folder whose scheduler states another prediction or schedule than the configuration."""
    said = scheduler(folder, folder)
    for name, want in (("prediction", prediction), ("schedule", schedule)):
        if said[name] != want:
            raise ExportError(
                f"{folder}: its scheduler states the {name} {said[name]}, --config has {want}; choose another --config, or state it with --field"
            )


def unet_names(state: Mapping[str, Tensor]) -> State:
    """A U-Net of diffusers under the names of adm.UNet."""
    levels = 1 + max((int(m[1]) for name in state if (m := re.match(r"down_blocks\.(\d+)\.", name))), default=-1)
    bare = {i for i in range(levels) if not any(name.startswith(f"up_blocks.{i}.attentions.") for name in state)}
    out: State = {}
    for name, value in state.items():
        stem, kind = name.rsplit(".", 1)
        if stem in OUTER:
            out[f"{OUTER[stem]}.{kind}"] = value
            continue
        m = re.match(r"(down|mid|up)_blocks?\.(?:(\d+)\.)?(resnets|attentions|downsamplers|upsamplers)\.(\d+)\.(.+)", name)
        if m is None:
            out[name] = value
            continue
        side, level, what, j, rest = m[1], int(m[2] or 0), m[3], int(m[4]), m[5]
        if what == "resnets":
            stem, kind = rest.rsplit(".", 1)
            rest = f"{RESIDUAL.get(stem, stem)}.{kind}"
        if side == "mid":
            place = f"middle_block.{2 * j if what == 'resnets' else 1}"
        elif what == "downsamplers":
            place, rest = f"input_blocks.{(BLOCKS + 1) * (level + 1)}.0", "op." + rest.removeprefix("conv.")
        elif what == "upsamplers":
            place = f"output_blocks.{(BLOCKS + 1) * level + BLOCKS}.{1 if level in bare else 2}"
        else:
            block = f"input_blocks.{(BLOCKS + 1) * level + j + 1}" if side == "down" else f"output_blocks.{(BLOCKS + 1) * level + j}"
            place = f"{block}.{0 if what == 'resnets' else 1}"
        out[f"{place}.{rest}"] = value
    return out


def stage_names(state: Mapping[str, Tensor]) -> State:
    """A first stage of diffusers under the names of vq.FirstStage."""
    levels = 1 + max((int(m[1]) for name in state if (m := re.match(r"decoder\.up_blocks\.(\d+)\.", name))), default=-1)
    out: State = {}
    for name, value in state.items():
        n = re.sub(r"down_blocks\.(\d+)\.resnets", r"down.\1.block", name)
        n = re.sub(r"down_blocks\.(\d+)\.downsamplers\.0", r"down.\1.downsample", n)
        n = re.sub(r"up_blocks\.(\d+)\.resnets", lambda m: f"up.{levels - 1 - int(m[1])}.block", n)
        n = re.sub(r"up_blocks\.(\d+)\.upsamplers\.0", lambda m: f"up.{levels - 1 - int(m[1])}.upsample", n)
        n = re.sub(r"mid_block\.resnets\.(\d)", lambda m: f"mid.block_{int(m[1]) + 1}", n)
        n = re.sub(r"mid_block\.attentions\.0\.(.+)\.", lambda m: f"mid.attn_1.{STAGE.get(m[1], m[1])}.", n)
        n = n.replace("conv_norm_out", "norm_out").replace("conv_shortcut", "nin_shortcut")
        if ".attn_1." in n and n.endswith("weight") and value.dim() == 2:
            value = value[:, :, None, None]  # a matrix as a convolution
        out[n] = value
    return out
