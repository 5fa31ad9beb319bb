"""The text encoder of Stable Diffusion (CLIP): the tokens of a prompt, and their embeddings, which an export fixes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from . import tokens
from .checkpoint import State


@dataclass(frozen=True)
class Config:
    """Configuration of a published encoder. The last two words of the vocabulary begin and end a text."""

    width: int = 768
    layers: int = 12
    heads: int = 12
    tokens: int = 77
    words: int = 49408
    quick_gelu: bool = True  # x * sigmoid(1.702 x)
    padded_with_end: bool = True  # after the end, instead of the word 0

    def tiny(self, width: int) -> Config:
        """The same structure, narrower."""
        return replace(self, width=width, layers=2, heads=4, tokens=7, words=50)

    def empty(self) -> list[int]:
        """The tokens of the empty prompt."""
        return self.framed([])

    def framed(self, words: list[int]) -> list[int]:
        """Words between the begin and the end, padded to the number of tokens."""
        end = self.words - 1
        return tokens.framed(words, self.words - 2, end, end if self.padded_with_end else 0, self.tokens)


class Layer(nn.Module):
    """x + attention(norm(x)) over this and earlier tokens, then x + mlp(norm(x))."""

    def __init__(self, c: Config) -> None:
        super().__init__()
        self.config = c
        self.layer_norm1, self.layer_norm2 = nn.LayerNorm(c.width), nn.LayerNorm(c.width)
        self.self_attn = nn.Module()
        for name in ("q_proj", "k_proj", "v_proj", "out_proj"):
            setattr(self.self_attn, name, nn.Linear(c.width, c.width))
        self.mlp = nn.Module()
        self.mlp.fc1, self.mlp.fc2 = nn.Linear(c.width, 4 * c.width), nn.Linear(4 * c.width, c.width)

    def forward(self, x: Tensor) -> Tensor:
        a, c = self.self_attn, self.config
        h = self.layer_norm1(x)
        q, k, v = (f(h).reshape(len(x), c.heads, -1).transpose(0, 1) for f in (a.q_proj, a.k_proj, a.v_proj))
        later = torch.full((len(x), len(x)), float("-inf")).triu(1)
        weight = torch.softmax(q @ k.transpose(1, 2) * q.shape[2] ** -0.5 + later, dim=-1)
        x = x + a.out_proj((weight @ v).transpose(0, 1).reshape(x.shape))
        h = self.mlp.fc1(self.layer_norm2(x))
        return x + self.mlp.fc2(h * torch.sigmoid(1.702 * h) if c.quick_gelu else F.gelu(h))


class Encoder(nn.Module):
    """Tokens to embeddings [L, width], with the names of the transformers library."""

    def __init__(self, c: Config) -> None:
        super().__init__()
        self.embeddings, self.encoder = nn.Module(), nn.Module()
        self.embeddings.token_embedding = nn.Embedding(c.words, c.width)
        self.embeddings.position_embedding = nn.Embedding(c.tokens, c.width)
        self.encoder.layers = nn.ModuleList(Layer(c) for _ in range(c.layers))
        self.final_layer_norm = nn.LayerNorm(c.width)

    def forward(self, tokens: Tensor) -> Tensor:
        x = self.embeddings.token_embedding(tokens) + self.embeddings.position_embedding.weight
        for layer in self.encoder.layers:
            x = layer(x)
        return self.final_layer_norm(x)


# Names of OpenCLIP and their names here, within a layer and outside.
OPEN_LAYER = {"ln_1": "layer_norm1", "ln_2": "layer_norm2", "mlp.c_fc": "mlp.fc1", "mlp.c_proj": "mlp.fc2", "attn.out_proj": "self_attn.out_proj"}
OPEN = {"token_embedding.weight": "embeddings.token_embedding.weight", "positional_embedding": "embeddings.position_embedding.weight"}


def names(state: Mapping[str, Tensor]) -> State:
    """The weights of an encoder of the transformers library or of OpenCLIP under the names of Encoder."""
    out: State = {}
    for name, value in state.items():
        bare = name.removeprefix("text_model.")
        if bare.startswith(("embeddings.", "encoder.", "final_layer_norm.")):
            out[bare] = value
        elif name in OPEN:
            out[OPEN[name]] = value
        elif name.startswith("ln_final."):
            out["final_layer_norm." + name.removeprefix("ln_final.")] = value
        elif name.startswith("transformer.resblocks."):
            number, rest = name.removeprefix("transformer.resblocks.").split(".", 1)
            layer = f"encoder.layers.{number}."
            stem, kind = rest.rsplit(".", 1)
            if rest.startswith("attn.in_proj_"):  # q, k and v in one
                for each, third in zip("qkv", value.chunk(3)):
                    out[f"{layer}self_attn.{each}_proj.{rest.removeprefix('attn.in_proj_')}"] = third
            else:
                out[f"{layer}{OPEN_LAYER.get(stem, stem)}.{kind}"] = value
    return out
