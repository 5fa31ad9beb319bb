#!/usr/bin/env python3
"""Makes reference values for the exporter of Stable Diffusion from diffusers and transformers.

    python3 tools/stable_diffusion_vectors.py OUT.json.gz

Small networks with the structure of Stable Diffusion 1.5, 2.1 and XL and seeded weights. The file holds the names and shapes of
their weights and some of their results. diffusers 0.21.4 and transformers 4.33.3 with torch 1.13 made tests/stable_diffusion.json.gz.
"""

from __future__ import annotations

import gzip
import json
import sys
import zlib
from collections.abc import Callable, Sequence

import torch
from torch import Tensor, nn

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


def first_stage() -> nn.Module:
    from diffusers import AutoencoderKL

    return AutoencoderKL(
        block_out_channels=(32, 32, 32, 64), down_block_types=("DownEncoderBlock2D",) * 4, up_block_types=("UpDecoderBlock2D",) * 4, latent_channels=4,
        layers_per_block=2,
    )  # fmt: skip


def reference(second: bool) -> dict[str, object]:
    from diffusers import UNet2DConditionModel
    from transformers import CLIPTextConfig, CLIPTextModel

    text = CLIPTextModel(
        CLIPTextConfig(
            vocab_size=WORDS, hidden_size=CONTEXT, intermediate_size=4 * CONTEXT, num_hidden_layers=2, num_attention_heads=4,
            max_position_embeddings=TOKENS, hidden_act="gelu" if second else "quick_gelu",
        )
    )  # fmt: skip
    unet = UNet2DConditionModel(
        block_out_channels=(32, 64, 32, 64), cross_attention_dim=CONTEXT, attention_head_dim=[2, 4, 2, 4] if second else 8, use_linear_projection=second
    )

    def predict(z: Tensor, t: Tensor) -> Tensor:
        tokens = [WORDS - 2, WORDS - 1] + [0 if second else WORDS - 1] * (TOKENS - 2)
        context = text(torch.tensor([tokens])).last_hidden_state
        return unet(z, t, encoder_hidden_states=context.expand(2, -1, -1)).sample

    return results({"unet": unet, "vae": first_stage(), "text_encoder": text}, predict, 0.18215)


def reference_xl() -> dict[str, object]:
    """SDXL without a prompt: the pipeline of diffusers replaces its embeddings by zeros."""
    from diffusers import UNet2DConditionModel

    unet = UNet2DConditionModel(
        block_out_channels=(32, 64, 32), down_block_types=("DownBlock2D", "CrossAttnDownBlock2D", "CrossAttnDownBlock2D"),
        up_block_types=("CrossAttnUpBlock2D", "CrossAttnUpBlock2D", "UpBlock2D"), transformer_layers_per_block=[1, 2, 2], attention_head_dim=[2, 4, 2],
        cross_attention_dim=CONTEXT, use_linear_projection=True, addition_embed_type="text_time", addition_time_embed_dim=256,
        projection_class_embeddings_input_dim=2816,
    )  # fmt: skip

    def predict(z: Tensor, t: Tensor) -> Tensor:
        added = {"text_embeds": torch.zeros(2, 1280), "time_ids": torch.tensor([[1024, 1024, 0, 0, 1024, 1024]] * 2)}
        return unet(z, t, encoder_hidden_states=torch.zeros(2, 77, CONTEXT), added_cond_kwargs=added).sample

    return results({"unet": unet, "vae": first_stage()}, predict, 0.13025)


def results(models: dict[str, nn.Module], predict: Callable[[Tensor, Tensor], Tensor], scale: float) -> dict[str, object]:
    """Shapes and results of models with seeded weights."""
    shapes: dict[str, dict[str, list[int]]] = {}
    for part, model in models.items():
        model.eval()
        state = {name: value for name, value in model.state_dict().items() if value.is_floating_point()}
        shapes[part] = {name: list(value.shape) for name, value in state.items()}
        model.load_state_dict({name: weight(part, name, value.shape) for name, value in state.items()}, strict=False)
    z, t, x = inputs()
    with torch.no_grad():
        return {
            "shapes": shapes,
            "unet": some(predict(z, t)),
            "encoder": some(models["vae"].encode(x).latent_dist.mean * scale),
            "decoder": some(models["vae"].decode(z / scale).sample),
        }


def main(out: str) -> None:
    with open(out, "wb") as file, gzip.GzipFile(fileobj=file, mode="wb", mtime=0, filename="") as packed:
        packed.write(json.dumps({"sd15": reference(False), "sd21": reference(True), "sdxl": reference_xl()}).encode())


if __name__ == "__main__":
    main(sys.argv[1])
