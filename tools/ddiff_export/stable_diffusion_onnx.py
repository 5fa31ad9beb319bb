"""Stable Diffusion in ONNX files, as Optimum writes them: a folder with unet, vae_encoder, vae_decoder and text_encoder. Needs no PyTorch.

The graphs get the inputs and outputs of a bundle: the U-Net one prompt as a constant, the encoder the mean of the latents, both stages
the scale of the U-Net.
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import onnx
from onnx import ModelProto, TensorProto, ValueInfoProto, helper, numpy_helper

from . import card, onnx_file, tokens, write
from .errors import ExportError
from .layout import fields, scheduler
from .onnx_file import IMAGE, Dims
from .write import Options

PARTS = ("unet", "vae_encoder", "vae_decoder", "text_encoder")
LATENT, FACTOR, MULTIPLE, SCALE = 4, 8, 64, 0.18215  # of all versions 1 and 2
LATENTS: Dims = ("batch", LATENT, "height", "width")
FLOAT = TensorProto.FLOAT


def export(folder: Path, out: Path, prompt: str, name: str, license: str, o: Options) -> list[Path]:
    """Converts a folder to a bundle."""
    if not license:
        raise ExportError("--license is required: the folder does not contain the licence of the weights")
    if (folder / "text_encoder_2").is_dir():
        raise ExportError(f"{folder}: it has text_encoder_2, as SDXL; for its weights of PyTorch use: ldm --config sdxl")
    for part in PARTS:
        if not (folder / part / "model.onnx").is_file():
            raise ExportError(f"{folder}: {part}/model.onnx is missing; for weights of PyTorch use: ldm --config sd15")
    said = scheduler(folder, folder)
    config = folder / "vae_decoder" / "config.json"
    scale = fields(config).get("scaling_factor", SCALE) if config.is_file() else SCALE
    context = _embedding(folder / "text_encoder" / "model.onnx", _tokens(folder / "tokenizer", prompt))
    name = name or folder.resolve().name
    files: dict[str, Path] = {}
    for role, part in (("encoder", "vae_encoder"), ("decoder", "vae_decoder"), ("unet", "unet")):
        graph = _Graph(folder / part / "model.onnx")
        if role == "unet":
            _unet(graph, context)
        elif role == "encoder":
            _encoder(graph, scale)
        else:
            _decoder(graph, scale)
        onnx_file.set_metadata(graph.model, card.described("latent-" + role, name, license))
        files[role] = write.model_file(graph.model, out / f"{role}.onnx", o)[0]
    path = out / "bundle.json"
    path.write_text(card.bundle(
        files, name=name, license=license, training=f"Stable Diffusion, prompt {json.dumps(prompt)}", first_stage="kl", prediction=said["prediction"],
        schedule=said["schedule"], range="-1..1", channels=3, latent=LATENT, factor=FACTOR, multiple_of=MULTIPLE, scale=scale,
    ))  # fmt: skip
    return [path, *files.values()]


class _Graph:
    """A graph that gets other inputs and outputs."""

    def __init__(self, path: Path) -> None:
        self.path, self.model = path, onnx_file.open_model(path)
        graph = self.model.graph
        constants = {t.name for t in graph.initializer}
        self.inputs = {p.name: p for p in graph.input if p.name not in constants}
        self.outputs = [p.name for p in graph.output]
        self.before: list = []
        for node in graph.node:
            for names in (node.input, node.output):
                names[:] = [value and self.inner(value) for value in names]
        for tensor in graph.initializer:
            tensor.name = self.inner(tensor.name)
        del graph.input[:], graph.output[:], graph.value_info[:], self.model.metadata_props[:]

    @staticmethod
    def inner(name: str) -> str:
        return f"published/{name}"

    def take(self, *names: str) -> list[ValueInfoProto]:
        """The inputs with these names, which must be all."""
        if set(self.inputs) != set(names):
            raise ExportError(f"{self.path}: it has the inputs {', '.join(self.inputs)}, want {', '.join(names)}")
        return [self.inputs[name] for name in names]

    def constant(self, name: str, value: np.ndarray) -> str:
        self.model.graph.initializer.append(numpy_helper.from_array(value, name))
        return name

    def feed(self, port: ValueInfoProto, value: str) -> None:
        """Makes a value the former input, in its element type."""
        self.before.append(helper.make_node("Cast", [value], [self.inner(port.name)], to=port.type.tensor_type.elem_type))

    def finish(self, inputs: dict[str, tuple[int, Dims]], output: str, dims: Dims, then: list) -> None:
        """Adds the inputs and the output; then are the nodes after the former output, which is the value result in float."""
        graph = self.model.graph
        after = [helper.make_node("Cast", [self.inner(self.outputs[0])], ["result"], to=FLOAT), *then]
        nodes = [*self.before, *graph.node, *after]
        del graph.node[:]
        graph.node.extend(nodes)
        graph.input.extend(helper.make_tensor_value_info(name, kind, list(of)) for name, (kind, of) in inputs.items())
        graph.output.append(helper.make_tensor_value_info(output, FLOAT, list(dims)))


def _unet(g: _Graph, context: np.ndarray) -> None:
    sample, time, hidden = g.take("sample", "timestep", "encoder_hidden_states")
    g.feed(sample, "z")
    ints = {n: g.constant(n, np.asarray(v, dtype=np.int64)) for n, v in (("zero", 0), ("first", [0]), ("second", [1]), ("size", context.shape[1:]))}
    scalar = not time.type.tensor_type.shape.dim
    if scalar:
        g.before.append(helper.make_node("Gather", ["t", ints["zero"]], ["time"]))
    g.feed(time, "time" if scalar else "t")
    # The prompt once for each picture: the attention of diffusers takes the batch from it.
    g.before += [
        helper.make_node("Shape", ["z"], ["shape"]),
        helper.make_node("Slice", ["shape", ints["first"], ints["second"]], ["pictures"]),
        helper.make_node("Concat", ["pictures", ints["size"]], ["prompts"], axis=0),
        helper.make_node("Expand", [g.constant("prompt", context), "prompts"], ["each_prompt"]),
    ]
    g.feed(hidden, "each_prompt")
    g.finish({"z": (FLOAT, LATENTS), "t": (TensorProto.INT64, (1,) if scalar else write.TIME)}, "eps", LATENTS, [helper.make_node("Identity", ["result"], ["eps"])])


def _encoder(g: _Graph, scale: float) -> None:
    g.feed(g.take("sample")[0], "x")
    for node in g.model.graph.node:
        if node.op_type in ("RandomNormalLike", "RandomNormal"):  # older exports draw the latents: without noise they are the mean
            kind = next((a.i for a in node.attribute if a.name == "dtype"), g.inputs["sample"].type.tensor_type.elem_type)
            node.CopyFrom(helper.make_node("Constant", [], list(node.output), value=helper.make_tensor("noise", kind, [], [0.0])))
    bounds = [g.constant(n, np.asarray([v], dtype=np.int64)) for n, v in (("from", 0), ("to", LATENT), ("axis", 1))]
    then = [
        helper.make_node("Slice", ["result", *bounds], ["mean"]),  # latent_parameters has the logarithms of the variances, too
        helper.make_node("Mul", ["mean", g.constant("scale", np.float32(scale))], ["z"]),
    ]
    g.finish({"x": (FLOAT, IMAGE)}, "z", ("batch", LATENT, f"height/{FACTOR}", f"width/{FACTOR}"), then)


def _decoder(g: _Graph, scale: float) -> None:
    latents = g.take("latent_sample")[0]
    g.before.append(helper.make_node("Div", ["z", g.constant("scale", np.float32(scale))], ["unscaled"]))
    g.feed(latents, "unscaled")
    g.finish({"z": (FLOAT, LATENTS)}, "x", ("batch", 3, f"height*{FACTOR}", f"width*{FACTOR}"), [helper.make_node("Identity", ["result"], ["x"])])


def _tokens(folder: Path, prompt: str) -> list[int]:
    """The tokens of a prompt, as the files of the tokenizer say."""
    words = tokens.words(prompt, folder)
    vocabulary, config = fields(folder / "vocab.json"), folder / "tokenizer_config.json"
    said = fields(config) if config.is_file() else {}
    end = "<|endoftext|>"
    padding = said.get("pad_token", end)
    if isinstance(padding, dict):
        padding = padding["content"]
    missing = [word for word in ("<|startoftext|>", end, padding) if word not in vocabulary]
    if missing:
        raise ExportError(f"{folder}/vocab.json: it has no word {missing[0]}")
    return tokens.framed(words, vocabulary["<|startoftext|>"], vocabulary[end], vocabulary[padding], said.get("model_max_length", 77))


def _embedding(path: Path, words: list[int]) -> np.ndarray:
    """The embeddings [1, L, width] of tokens, by ONNX Runtime or by the evaluator of onnx."""
    model: ModelProto = onnx.load(str(path), load_external_data=False)
    names = [p.name for p in model.graph.input]
    if names != ["input_ids"]:
        raise ExportError(f"{path}: it has the inputs {', '.join(names)}, want input_ids")
    kind = np.int32 if model.graph.input[0].type.tensor_type.elem_type == TensorProto.INT32 else np.int64
    try:
        from onnxruntime import InferenceSession as evaluator
    except ModuleNotFoundError:
        try:
            from onnx.reference import ReferenceEvaluator as evaluator
        except ModuleNotFoundError:
            raise ExportError("the embedding of the prompt needs the package onnxruntime, or onnx 1.13 or later; install one of them") from None
    return np.asarray(evaluator(str(path)).run(["last_hidden_state"], {"input_ids": np.asarray([words], dtype=kind)})[0])
