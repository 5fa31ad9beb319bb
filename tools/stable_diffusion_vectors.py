#!/usr/bin/env python3
"""Makes reference values for the exporter of Stable Diffusion from diffusers and transformers.

    python3 tools/stable_diffusion_vectors.py OUT.json.gz

Small networks with the structure of Stable Diffusion 1.5 and 2.1 and seeded weights. The file holds the names and shapes of
their weights and some of their results. diffusers 0.21.4 and transformers 4.33.3 with torch 1.13 made tests/stable_diffusion.json.gz.
"""

from __future__ import annotations

import gzip
import json
import sys
import zlib
from collections.abc import Sequence

import torch
from torch import Tensor

PARTS = ("unet", "vae", "text_encoder")
TOKENS, WORDS, CONTEXT = 7, 50, 24


def weight(part: str, name: str, shape: Sequence[int]) -> Tensor:
    """The seeded weight of this name: of a magnitude that preserves that of values."""
    noise = torch.randn(shape, generator=torch.Generator().manual_seed(zlib.crc32(f"{part}.{name}".encode())))
    if len(shape) > 1:
        return noise / max(noise[0].numel(), 1) ** 0.5
    return 0.1 * noise + (1.0 if name.endswith("weight") else 0.0)


def inputs() -> tuple[Tensor, Tensor, Tensor]:
    """Latents, times and images."""
    generator = torch.Generator().manual_seed(1)
    return torch.randn(2, 4, 16, 24, generator=generator), torch.tensor([10, 700]), torch.rand(1, 3, 64, 64, generator=generator) * 2 - 1


def some(values: Tensor) -> list[float]:
    """Every 97th value."""
    return [float(v) for v in values.flatten()[::97]]


def reference(second: bool) -> dict[str, object]:
    from diffusers import AutoencoderKL, UNet2DConditionModel
    from transformers import CLIPTextConfig, CLIPTextModel

    text = CLIPTextConfig(
        vocab_size=WORDS, hidden_size=CONTEXT, intermediate_size=4 * CONTEXT, num_hidden_layers=2, num_attention_heads=4,
        max_position_embeddings=TOKENS, hidden_act="gelu" if second else "quick_gelu",
    )
    models = dict(
        zip(
            PARTS,
            (
                UNet2DConditionModel(
                    block_out_channels=(32, 64, 32, 64), cross_attention_dim=CONTEXT, attention_head_dim=[2, 4, 2, 4] if second else 8,
                    use_linear_projection=second,
                ),
                AutoencoderKL(
                    block_out_channels=(32, 32, 32, 64), down_block_types=("DownEncoderBlock2D",) * 4, up_block_types=("UpDecoderBlock2D",) * 4,
                    latent_channels=4, layers_per_block=2,
                ),
                CLIPTextModel(text),
            ),
        )
    )
    shapes: dict[str, dict[str, list[int]]] = {}
    for part, model in models.items():
        model.eval()
        state = {name: value for name, value in model.state_dict().items() if value.is_floating_point()}
        shapes[part] = {name: list(value.shape) for name, value in state.items()}
        model.load_state_dict({name: weight(part, name, value.shape) for name, value in state.items()}, strict=False)
    z, t, x = inputs()
    with torch.no_grad():
        tokens = [WORDS - 2, WORDS - 1] + [0 if second else WORDS - 1] * (TOKENS - 2)
        context = models["text_encoder"](torch.tensor([tokens])).last_hidden_state
        return {
            "shapes": shapes,
            "unet": some(models["unet"](z, t, encoder_hidden_states=context.expand(2, -1, -1)).sample),
            "encoder": some(models["vae"].encode(x).latent_dist.mean * 0.18215),
            "decoder": some(models["vae"].decode(z / 0.18215).sample),
        }


def main(out: str) -> None:
    with open(out, "wb") as file, gzip.GzipFile(fileobj=file, mode="wb", mtime=0, filename="") as packed:
        packed.write(json.dumps({"sd15": reference(False), "sd21": reference(True)}).encode())


if __name__ == "__main__":
    main(sys.argv[1])
