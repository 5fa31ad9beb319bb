"""Stable Diffusion in ONNX files becomes the bundle that its weights become."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import types
from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx_interpreter
import pytest
import torch
from torch import Tensor, nn

from ddiff_export import __main__ as cli
from ddiff_export import adm, clip, ldm, onnx_file, stable_diffusion, vectors, vq
from ddiff_export.adm_blocks import TransformerBlock
from ddiff_export.checkpoint import fit, part, write_safetensors
from ddiff_export.overrides import settings
from ddiff_export.random_weights import randomise, shallow, state

TINY = ldm.CONFIGS["sd15"].tiny()
# The levels of Stable Diffusion, which make the factor of latents, and few layers: PyTorch's exporter takes a time that grows with the square of their number.
CONFIG = replace(TINY, unet=replace(shallow(TINY.unet, levels=4), attention=(4,)), first_stage=replace(TINY.first_stage, blocks=1))
LATENTS = ("batch", 4, "height", "width")
IMAGES = ("batch", 3, "height", "width")
WORDS = ["<|startoftext|>", "<|endoftext|>", "h", "hat</w>", "a", "t</w>", "at</w>"]
SCHEDULER = {"beta_schedule": "scaled_linear", "beta_start": 0.00085, "beta_end": 0.012, "num_train_timesteps": 1000, "prediction_type": "epsilon"}


class Prompted(nn.Module):
    """A U-Net with the context as an input, one for each picture."""

    def __init__(self, unet: nn.Module) -> None:
        super().__init__()
        self.unet = unet

    def forward(self, z: Tensor, t: Tensor, context: Tensor) -> Tensor:
        for block in self.unet.modules():
            if isinstance(block, TransformerBlock):
                block.keys, block.values = (block.attn2.split(f(context)) for f in (block.attn2.to_k, block.attn2.to_v))
        return self.unet(z, t)


class Texts(nn.Module):
    """An encoder of batches of texts."""

    def __init__(self, encoder: nn.Module) -> None:
        super().__init__()
        self.encoder = encoder

    def forward(self, tokens: Tensor) -> Tensor:
        return self.encoder(tokens[0].long())[None]


class Stage(nn.Module):
    """A half of a first stage of scale 1; the encoder returns latents with noise, or mean and variance."""

    def __init__(self, stage: nn.Module, decodes: bool, draws: bool) -> None:
        super().__init__()
        self.stage, self.decodes, self.draws = stage, decodes, draws

    def forward(self, x: Tensor) -> Tensor:
        if self.decodes:
            return self.stage.decoder(self.stage.post_quant_conv(x))
        parameters = self.stage.quant_conv(self.stage.encoder(x))
        mean, variance = parameters.chunk(2, dim=1)
        return mean + (0.5 * variance).exp() * torch.randn_like(mean) if self.draws else parameters


def published(weights: Path, out: Path, older: bool) -> Path:
    """The folder of ONNX files of a folder of weights: as older exports, or as Optimum's."""
    read = stable_diffusion.read_folder(weights)
    model = ldm.load(CONFIG, read, "test")
    text = fit(clip.Encoder(CONFIG.text), clip.names(part(read, "cond_stage_model.transformer.")), "test")
    t = torch.tensor([5.0, 5.0]) if older else torch.tensor([5])
    tokens = torch.ones(1, CONFIG.text.tokens, dtype=torch.int32 if older else torch.int64)
    latent = ("latent_sample", LATENTS) if older else ("latent_parameters", ("batch", 8, "height", "width"))
    parts = {
        "unet": (Prompted(model.unet), {
            "sample": (torch.randn(2, 4, 16, 16), LATENTS), "timestep": (t, ("steps",)),
            "encoder_hidden_states": (torch.randn(2, CONFIG.text.tokens, CONFIG.text.width), ("batch", "sequence", CONFIG.text.width)),
        }, ("out_sample", LATENTS)),
        "vae_encoder": (Stage(model.first_stage, False, older), {"sample": (torch.randn(1, 3, 64, 64), IMAGES)}, latent),
        "vae_decoder": (Stage(model.first_stage, True, False), {"latent_sample": (torch.randn(1, 4, 16, 16), LATENTS)}, ("sample", IMAGES)),
        "text_encoder": (Texts(text), {"input_ids": (tokens, ("batch", CONFIG.text.tokens))}, ("last_hidden_state", ("batch", "sequence", CONFIG.text.width))),
    }  # fmt: skip
    for name, (module, inputs, (output, dims)) in parts.items():
        onnx_file.save(onnx_file.trace(module.eval(), inputs, {output: dims}), out / name / "model.onnx", external=name == "unet")
    for name, said in (("scheduler/scheduler_config", SCHEDULER), ("tokenizer/vocab", {w: i for i, w in enumerate(WORDS, 48)} | dict.fromkeys(WORDS[2:], 3)),
                       ("tokenizer/tokenizer_config", {"model_max_length": CONFIG.text.tokens, "pad_token": {"content": "<|endoftext|>"}})):
        (out / name).parent.mkdir(exist_ok=True)
        (out / f"{name}.json").write_text(json.dumps(said))
    (out / "tokenizer/merges.txt").write_text("#version: 0.2\na t</w>\nh at</w>\n")
    return out


class Session:
    """An ONNX Runtime for the text encoder."""

    def __init__(self, path: str) -> None:
        self.path = path

    def run(self, outputs: list[str], feeds: dict[str, np.ndarray]) -> list[np.ndarray]:
        found = onnx_interpreter.run(self.path, {name: torch.from_numpy(value) for name, value in feeds.items()})
        return [found[name].numpy() for name in outputs]


@pytest.fixture(scope="module")
def weights(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the tokenizer, and the bundles of two prompts, in the diffusers layout."""
    out = tmp_path_factory.mktemp("weights")
    parts = {"unet": adm.UNet(CONFIG.unet), "vae": vq.FirstStage(CONFIG.first_stage), "text_encoder": clip.Encoder(CONFIG.text)}
    for seed, (name, module) in enumerate(parts.items()):
        (out / name).mkdir()
        write_safetensors(state(randomise(module, seed)), out / name / ("model.safetensors" if name == "text_encoder" else "diffusion_pytorch_model.safetensors"))
    published(out, out / "older", older=True)
    published(out, out / "optimum", older=False)
    for said in ("tokenizer", "scheduler"):
        shutil.copytree(out / "older" / said, out / said)
    return out


@pytest.mark.parametrize(("prompt", "kind"), [("", "older"), ("hat", "optimum")])
def test_bundle_of_onnx_files_equals_that_of_weights(weights: Path, prompt: str, kind: str, tmp_path: Path, program: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "onnxruntime", types.SimpleNamespace(InferenceSession=Session))
    fields = [word for field in settings(CONFIG) for word in ("--field", field)]
    assert cli.main(["ldm", "--config", "sd15", "--weights", str(weights), *fields, "--prompt", prompt, "--out", str(tmp_path / "weights")]) == 0
    first = json.loads((tmp_path / "weights/bundle.json").read_text())
    out = tmp_path / kind
    assert cli.main(["stable-diffusion", "--directory", str(weights / kind), "--license", "none", "--prompt", prompt, "--out", str(out)]) == 0
    card = json.loads((out / "bundle.json").read_text())
    assert {k for k in card if card[k] != first[k]} == {"name", "license", "training", "files"}
    for role in card["files"]:
        vectors.copy(tmp_path / "weights" / f"{role}.onnx", out / f"{role}.onnx", "float32")
    done = subprocess.run([program, "prior", "check", str(out), "--json", "--size", "64"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    differences = [p["vectors"]["max_abs"] for p in json.loads(done.stdout)["parts"]]
    assert len(differences) == 3 and max(differences) < 1e-5


def test_needs_no_pytorch(weights: Path, tmp_path: Path) -> None:
    """A stand-in evaluates the text encoder."""
    code = "import sys; sys.modules['torch'] = None; from ddiff_export import __main__ as m; sys.exit(m.main(sys.argv[1:]))"
    command = [sys.executable, "-c", code, "stable-diffusion", "--directory", str(weights / "older"), "--license", "none", "--out", str(tmp_path)]
    stand_in = tmp_path / "packages/onnxruntime.py"
    stand_in.parent.mkdir()
    stand_in.write_text(
        "import numpy\nclass InferenceSession:\n    def __init__(self, path): pass\n"
        f"    def run(self, outputs, feeds): return [numpy.ones((1, {CONFIG.text.tokens}, {CONFIG.text.width}), numpy.float32)]\n"
    )
    tools = Path(cli.__file__).parents[1]
    done = subprocess.run(command, capture_output=True, text=True, env={"PYTHONPATH": f"{stand_in.parent}:{tools}"})
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "bundle.json").is_file()


def test_bad_folders(weights: Path, tmp_path: Path, capsys: pytest.CaptureFixture, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "onnxruntime", types.SimpleNamespace(InferenceSession=Session))

    def refused(message: str, *more: str) -> None:
        given = ["--license", "none", *more] if "--license" not in message else []
        assert cli.main(["stable-diffusion", "--directory", str(tmp_path / "sd"), "--out", str(tmp_path / "out"), *given]) == 2
        line = capsys.readouterr().err
        assert message in line and line.count("\n") == 1, line

    refused("--license is required")
    refused("unet/model.onnx is missing")
    shutil.copytree(weights / "older", tmp_path / "sd")
    refused("has letters outside ASCII", "--prompt", "é")
    shutil.move(tmp_path / "sd/vae_encoder", tmp_path / "sd/other")
    refused("vae_encoder/model.onnx is missing; for weights of PyTorch use: ldm --config sd15")
    shutil.copytree(tmp_path / "sd/vae_decoder", tmp_path / "sd/vae_encoder")
    refused("vae_encoder/model.onnx: it has the inputs latent_sample, want sample")
    shutil.copytree(tmp_path / "sd/unet", tmp_path / "sd/text_encoder", dirs_exist_ok=True)
    refused("text_encoder/model.onnx: it has the inputs sample, timestep, encoder_hidden_states, want input_ids")
    (tmp_path / "sd/scheduler/scheduler_config.json").unlink()
    refused("scheduler_config.json: no such file")
    (tmp_path / "sd/text_encoder_2").mkdir()
    refused("it has text_encoder_2, as SDXL")


def test_prompt_needs_an_evaluator(weights: Path, tmp_path: Path, capsys: pytest.CaptureFixture, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    monkeypatch.setitem(sys.modules, "onnx.reference", None)
    assert cli.main(["stable-diffusion", "--directory", str(weights / "older"), "--license", "none", "--out", str(tmp_path)]) == 2
    assert "needs the package onnxruntime, or onnx 1.13 or later" in capsys.readouterr().err
