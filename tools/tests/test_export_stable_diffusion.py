"""The exporter of Stable Diffusion computes what diffusers and transformers compute, from a folder and from a single file."""

from __future__ import annotations

import gzip
import json
import subprocess
from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx
import pytest
import torch
from conftest import ENVIRONMENT
from PIL import Image

from ddiff_export import __main__ as cli
from ddiff_export import clip, ldm, random_weights, stable_diffusion, tokens
from ddiff_export.checkpoint import write_safetensors
from ddiff_export.errors import ExportError
from stable_diffusion_vectors import inputs, some, weight

STORED = json.loads(gzip.decompress((Path(__file__).parent / "stable_diffusion.json.gz").read_bytes()))


def folder(tmp_path: Path, name: str) -> Path:
    """A folder in the diffusers layout."""
    for part, shapes in STORED[name]["shapes"].items():
        (tmp_path / part).mkdir()
        weights = {k: weight(part, k, shape) for k, shape in shapes.items()}
        write_safetensors(weights, tmp_path / part / ("model.safetensors" if part == "text_encoder" else "diffusion_pytorch_model.safetensors"))
    said = {"beta_schedule": "scaled_linear", "beta_start": 0.00085, "beta_end": 0.012, "num_train_timesteps": 1000, "prediction_type": "epsilon"}
    (tmp_path / "scheduler").mkdir()
    (tmp_path / "scheduler" / "scheduler_config.json").write_text(json.dumps(said))
    return tmp_path


@pytest.mark.parametrize("name", STORED)
def test_equals_diffusers(name: str, tmp_path: Path) -> None:
    state = stable_diffusion.read_folder(folder(tmp_path, name), text=name != "sdxl")
    parts = ldm.parts(ldm.load(ldm.CONFIGS[name].tiny(), state, "test"))
    z, t, x = inputs()
    for part, given in (("unet", (z, t)), ("encoder", (x,)), ("decoder", (z,))):
        with torch.no_grad():
            torch.testing.assert_close(some(parts[part](*given)), STORED[name][part], rtol=0, atol=1e-4)


CAMPAIGN = """
name: stable diffusion
dataset: {path: pictures, size: 64}
prior: bundle
preset: ffhq
steps: 2
output: out
methods: [psld, resample, latent_daps, latent_ddiff]
tasks:
  - {name: super_resolution, methods: [psld, latent_daps, latent_ddiff]}
  - {name: super_resolution, methods: [resample], solver: {pixel_steps: 2, latent_steps: 2}}
"""


def test_latent_methods_restore(tmp_path: Path, program: str) -> None:
    """Each latent method makes two steps with a bundle: a small network, so that only size and range of the pictures can be expected."""
    case = random_weights._ldm(tmp_path, "sd15", 0)
    assert cli.main([*case.arguments, "--out", str(tmp_path / "bundle")]) == 0
    (tmp_path / "pictures").mkdir()
    noise = np.random.default_rng(1).integers(0, 256, (64, 64, 3), dtype=np.uint8)
    Image.fromarray(noise).save(tmp_path / "pictures" / "noise.png")
    (tmp_path / "campaign.yaml").write_text(CAMPAIGN)
    # The user's environment: with OpenVINO, where it is installed.
    done = subprocess.run([program, "run", "campaign.yaml"], cwd=tmp_path, env=ENVIRONMENT, capture_output=True, text=True)
    assert done.returncode == 0 and "done=4 failed=0" in done.stdout, done.stdout + done.stderr
    results = [json.loads(file.read_text()) for file in (tmp_path / "out/items").glob("*/result.json")]
    assert {each["item"]["solver"]["method"] for each in results} == {"psld", "resample", "latent_daps", "latent_ddiff"}
    for each in (tmp_path / "out/items").glob("*/restored.png"):
        picture = np.asarray(Image.open(each))
        assert picture.shape == (64, 64, 3) and picture.std() > 0


def test_first_stage_of_sdxl_stays_in_float(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    arguments = [*random_weights._ldm(tmp_path, "sdxl", 0).arguments, "--float16", "--out", str(tmp_path / "bundle")]
    assert cli.main(arguments) == 0
    half = {role: any(t.data_type == onnx.TensorProto.FLOAT16 for t in onnx.load(str(tmp_path / f"bundle/{role}.onnx")).graph.initializer) for role in ("encoder", "decoder", "unet")}
    assert half == {"encoder": False, "decoder": False, "unet": True}
    assert cli.main([*arguments, "--prompt", "a cat"]) == 2
    assert "--prompt: sdxl takes none" in capsys.readouterr().err


def test_open_clip_in_a_single_file(tmp_path: Path) -> None:
    state = stable_diffusion.read_folder(folder(tmp_path, "sd21"))
    c = ldm.CONFIGS["sd21"].tiny()
    prefix, other = "cond_stage_model.transformer.text_model.", "cond_stage_model.model."
    text = {k.removeprefix(prefix): state.pop(k) for k in list(state) if k.startswith(prefix)}
    back = {v: k for k, v in clip.OPEN_LAYER.items()}
    for name, value in text.items():
        if name in clip.OPEN.values():
            state[other + next(k for k, v in clip.OPEN.items() if v == name)] = value
        elif name.startswith("final_layer_norm."):
            state[other + name.replace("final_layer_norm", "ln_final")] = value
        elif ".q_proj." in name:
            layer, kind = name.split(".self_attn.")[0], name.rsplit(".", 1)[1]
            joined = torch.cat([text[f"{layer}.self_attn.{each}_proj.{kind}"] for each in "qkv"])
            state[f"{other}{layer.replace('encoder.layers', 'transformer.resblocks')}.attn.in_proj_{kind}"] = joined
        elif not any(f".{each}_proj." in name for each in "kv"):
            _, _, number, rest = name.split(".", 3)
            stem, kind = rest.rsplit(".", 1)
            state[f"{other}transformer.resblocks.{number}.{back[stem]}.{kind}"] = value
    state[other + "transformer.resblocks.2.ln_1.weight"] = torch.ones(3)  # the last layer, which is not evaluated
    state[other + "logit_scale"] = torch.ones(())
    z, t, _ = inputs()
    with torch.no_grad():
        torch.testing.assert_close(some(ldm.load(c, state, "test").unet(z, t)), STORED["sd21"]["unet"], rtol=0, atol=1e-4)


def test_words_by_byte_pairs(tmp_path: Path) -> None:
    merges = ["h i", "hi </w>", "a t</w>", "h at</w>"]
    (tmp_path / "merges.txt").write_text("#version: 0.2\n" + "\n".join(merges))
    vocabulary = ["a", "h", "i", "t", "a</w>", "h</w>", "i</w>", "t</w>", "!</w>", "1</w>", "hi", "at</w>", "hat</w>"]
    (tmp_path / "vocab.json").write_text(json.dumps({word: i for i, word in enumerate(vocabulary)}))
    assert tokens.words("A  HAT\nhia !11", tmp_path) == [4, 12, 10, 4, 8, 9, 9]
    for text, why in (("chât", "ASCII"), ("b", "no word 'b</w>'")):
        with pytest.raises(ExportError, match=why):
            tokens.words(text, tmp_path)
    with pytest.raises(ExportError, match="tokenizer"):
        tokens.words("hat", tmp_path / "none")


def test_sd21_and_sd21_base_differ_in_what_they_predict() -> None:
    """The self-test exports the first one only."""
    base, other = ldm.CONFIGS["sd21_base"], ldm.CONFIGS["sd21"]
    assert base == replace(other, prediction="epsilon", published=base.published, unet=base.unet)
    assert base.unet == replace(other.unet, license=base.unet.license)


def test_tokens_of_a_prompt_are_framed() -> None:
    first, second = (ldm.CONFIGS[name].text.tiny(24) for name in ("sd15", "sd21"))
    assert first.empty() == [48, 49, 49, 49, 49, 49, 49]
    assert second.empty() == [48, 49, 0, 0, 0, 0, 0]
    assert first.framed(list(range(5))) == [48, 0, 1, 2, 3, 4, 49]
    with pytest.raises(ExportError, match="it has 6 tokens, at most 5"):
        first.framed(list(range(6)))


def test_refuses_another_scheduler(tmp_path: Path) -> None:
    (tmp_path / "scheduler").mkdir()
    said = {"beta_schedule": "scaled_linear", "beta_start": 0.00085, "beta_end": 0.012, "prediction_type": "v_prediction"}
    (tmp_path / "scheduler" / "scheduler_config.json").write_text(json.dumps(said))
    c = ldm.CONFIGS["sd21"]
    stable_diffusion.check_scheduler(tmp_path, c.prediction, c.unet.schedule)
    with pytest.raises(ExportError, match="states the prediction velocity, --config has epsilon"):
        stable_diffusion.check_scheduler(tmp_path, "epsilon", c.unet.schedule)


def test_refuses_a_folder_without_a_part(tmp_path: Path) -> None:
    with pytest.raises(ExportError, match="unet: the directory holds no weights"):
        stable_diffusion.read_folder(tmp_path)


def test_refuses_other_networks_and_missing_parts(tmp_path: Path) -> None:
    state = stable_diffusion.read_folder(folder(tmp_path, "sd15"))
    c = ldm.CONFIGS["sd15"].tiny()
    with pytest.raises(ExportError, match="no text encoder"):
        ldm.load(c, {k: v for k, v in state.items() if not k.startswith("cond_stage_model.")}, "test")
    for names in (stable_diffusion.unet_names, stable_diffusion.stage_names):
        assert names({"layers.0.weight": torch.ones(1)}) == {"layers.0.weight": torch.ones(1)}
    (tmp_path / "unet" / "diffusion_pytorch_model.safetensors").rename(tmp_path / "unet" / "diffusion_pytorch_model-1.safetensors")
    (tmp_path / "unet" / "diffusion_pytorch_model.safetensors.index.json").write_text("{}")
    with pytest.raises(ExportError, match="in several files"):
        stable_diffusion.read_folder(tmp_path)
