"""Broken inputs: exit code 2 and one line that names the cause."""

from __future__ import annotations

import json
import os
import pickle
import struct
import sys
import types
from collections import OrderedDict
from pathlib import Path

import onnx
import pytest
import torch
from torch import nn

from ddiff_export import __main__ as cli
from ddiff_export import card, checkpoint, denoiser, diffusers_unet, edm, lpips, onnx_file, published, random_weights
from ddiff_export.checkpoint import write_safetensors
from ddiff_export.errors import ExportError
from ddiff_export.overrides import settings

TINY = denoiser.CONFIGS["drunet_color"].tiny()
FIELDS = [word for setting in settings(TINY) for word in ("--field", setting)]


def weights(path: Path, change: dict | None = None, drop: str = "") -> Path:
    state = dict(random_weights.state(random_weights.randomise(denoiser.DRUNet(TINY), 0, 0.8))) | (change or {})
    torch.save(OrderedDict((k, v) for k, v in state.items() if k != drop), path)
    return path


def refused(capsys: pytest.CaptureFixture, path: Path, *parts: str, fields: list[str] = FIELDS, command: str = "drunet", config: str = "drunet_color") -> None:
    """Exports the file and expects an error with these parts and no output file."""
    out = path.with_name("out.onnx")
    assert cli.main([command, "--config", config, "--weights", str(path), "--out", str(out), *fields]) == 2
    line = capsys.readouterr().err
    assert line.count("\n") == 1 and line.startswith("ddiff_export: "), line
    for part in parts:
        assert part in line, line
    assert not out.exists()


def test_missing_file(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    refused(capsys, tmp_path / "no.pth", "no.pth: no such file")


def test_another_architecture(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    path = weights(tmp_path / "w.pth")
    refused(capsys, path, "w.pth", "another architecture", "362 missing (first: time_embed.0.weight)", "unexpected (first: m_head.weight)", "--config", fields=[], command="guided-diffusion", config="ffhq_10m")
    refused(capsys, path, "another architecture", "no name starts with model.diffusion_model.", fields=[], command="ldm", config="ffhq256")
    refused(capsys, path, "shapes differ", "(first: m_head.weight is [8, 4, 3, 3], expected [64, 4, 3, 3])", fields=["--field", "blocks=1"])
    refused(capsys, weights(tmp_path / "less.pth", drop="m_tail.weight"), "of 22 names, 1 missing (first: m_tail.weight)")
    refused(capsys, weights(tmp_path / "more.pth", {"extra": torch.ones(1)}), "1 unexpected (first: extra)")


@pytest.mark.parametrize("older", [False, True], ids=["zip", "older"])
@pytest.mark.parametrize("part", [0.02, 0.5, 0.98])
def test_truncated(tmp_path: Path, capsys: pytest.CaptureFixture, older: bool, part: float) -> None:
    path = weights(tmp_path / "w.pth")
    if older:
        torch.save(torch.load(path), path, _use_new_zipfile_serialization=False)
    whole = path.read_bytes()
    path.write_bytes(whole[: int(part * len(whole))])
    refused(capsys, path, "w.pth: truncated", "download the file again")


@pytest.mark.parametrize("text", [b"", b"<html>not found</html>", b"version https://git-lfs.github.com/spec/v1\n"])
def test_no_checkpoint(tmp_path: Path, capsys: pytest.CaptureFixture, text: bytes) -> None:
    (tmp_path / "w.pth").write_bytes(text)
    refused(capsys, tmp_path / "w.pth", f"({len(text)} bytes)")


def test_not_finite(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    bad = torch.ones(3, 8, 3, 3)
    bad[0, 0, 0, 0], bad[1, 0, 0, 0] = float("nan"), float("inf")
    refused(capsys, weights(tmp_path / "w.pth", {"m_tail.weight": bad}), "m_tail.weight has 2 values that are NaN or infinite")


class Trap:
    """The content of a hostile checkpoint: a function call during reading."""

    def __init__(self, mark: Path) -> None:
        self.mark = mark

    def __reduce__(self) -> tuple:
        return os.mkdir, (str(self.mark),)


def test_code_is_not_run(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    mark = tmp_path / "was-run"
    for name, value in (("a", {"state_dict": {"x": Trap(mark)}}), ("b", {"state_dict": {}, "callbacks": Trap(mark)}), ("c", Trap(mark))):
        path = tmp_path / f"{name}.pth"
        torch.save(value, path)
        refused(capsys, path, "refused: the file names posix.mkdir")
        path.write_bytes(pickle.dumps(value))
        assert cli.main(["drunet", "--config", "drunet_color", "--weights", str(path), "--out", str(tmp_path / "o")]) == 2
        capsys.readouterr()
    assert not mark.exists()


def test_edm_pickles(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    """The source code in a pickle, which ends the process, and other functions are not run."""
    case = random_weights._edm(tmp_path, 0, adm=False)
    path, out = tmp_path / "edm-vp.pkl", tmp_path / "out.onnx"

    def refused(*parts: str) -> None:
        assert cli.main(["edm", "--weights", str(path), "--out", str(out)]) == 2
        line = capsys.readouterr().err
        assert line.count("\n") == 1 and all(part in line for part in parts), line

    whole = path.read_bytes()
    assert b"raise SystemExit" in whole
    assert cli.main([*case.arguments, "--out", str(out), "--no-vectors"]) == 0
    entries = onnx_file.metadata(onnx.load(str(out)))
    assert entries["ddiff.prediction"] == "edm:0.5" and entries["ddiff.schedule"] == "sigma:linear:1e-4:0.02:1000"
    capsys.readouterr()
    path.write_bytes(whole[: len(whole) // 2])
    refused("edm-vp.pkl: truncated, or not a pickle")
    path.write_bytes(whole.replace(b"EDMPrecond", b"VPPrecond2"))
    refused("it holds a VPPrecond2, only EDMPrecond is supported")
    mark = tmp_path / "was-run"
    path.write_bytes(pickle.dumps({"ema": Trap(mark)}))
    refused("refused: the file names posix.mkdir")
    assert not mark.exists()
    with pytest.raises(ExportError, match="embedding_type is 'fourier', only 'positional' is supported"):
        edm.config("SongUNet", {"embedding_type": "fourier"}, "p.pkl")


def test_schedules_of_diffusers(tmp_path: Path) -> None:
    def schedule(**fields: object) -> str:
        (tmp_path / "scheduler_config.json").write_text(json.dumps(fields))
        return diffusers_unet.scheduler(tmp_path, tmp_path)["schedule"]

    assert schedule(beta_schedule="scaled_linear", rescale_betas_zero_snr=True, prediction_type="v_prediction") == "zero_snr:scaled_linear:0.0001:0.02:1000"
    assert schedule(trained_betas=[0.5, 0.5]) == "table:0.5:0.25"
    with pytest.raises(ExportError, match="beta_schedule 'sigmoid' is not supported"):
        schedule(beta_schedule="sigmoid")


def test_training_checkpoint(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Callbacks of a framework are ignored; the framework need not be installed."""
    packages = {name: types.ModuleType(name) for name in ("pytorch_lightning", "pytorch_lightning.callbacks")}
    callback = type("ModelCheckpoint", (), {"__module__": "pytorch_lightning.callbacks"})
    packages["pytorch_lightning.callbacks"].ModelCheckpoint = callback
    with monkeypatch.context() as patch:
        for name, package in packages.items():
            patch.setitem(sys.modules, name, package)
        torch.save({"callbacks": {callback: {"best": 1}}, "state_dict": {"module.a": torch.ones(2)}, "more": callback()}, tmp_path / "last.ckpt")
        torch.save({"state_dict": {"a": callback()}}, tmp_path / "worse.ckpt")
    assert checkpoint.read(tmp_path / "last.ckpt").keys() == {"a"}
    with pytest.raises(ExportError, match="entry a is a pytorch_lightning.callbacks.ModelCheckpoint, not a tensor"):
        checkpoint.read(tmp_path / "worse.ckpt")


@pytest.mark.parametrize("older", [False, True], ids=["zip", "older"])
def test_reads_what_torch_writes(tmp_path: Path, older: bool) -> None:
    whole = torch.randn(4, 6)
    state = OrderedDict(
        a=whole, part=whole[1:3, ::2], turned=whole.t(), empty=torch.empty(0), scalar=torch.tensor(3.5), half=whole.half(),
        double=whole.double(), brain=whole.bfloat16(), count=torch.arange(5), flag=torch.tensor([True, False]),
        weight=nn.Parameter(torch.ones(2)),
    )  # fmt: skip
    torch.save(state, tmp_path / "w.pth", _use_new_zipfile_serialization=not older)
    found = checkpoint.read(tmp_path / "w.pth")
    assert found.keys() == state.keys()
    for name, value in state.items():
        assert found[name].dtype == value.dtype and torch.equal(found[name], value), name


def test_safetensors(tmp_path: Path) -> None:
    path = tmp_path / "w.safetensors"
    state = {"a": torch.randn(3, 4), "b": torch.randn(2)}
    write_safetensors(state, path)
    found = checkpoint.read(path)
    assert all(torch.equal(found[k], v) for k, v in state.items())
    whole = path.read_bytes()
    for cut in (4, 20, len(whole) - 3):
        path.write_bytes(whole[:cut])
        with pytest.raises(ExportError, match="truncated"):
            checkpoint.read(path)
    path.write_bytes(struct.pack("<Q", 4) + b"none")
    with pytest.raises(ExportError, match="its header is not JSON"):
        checkpoint.read(path)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"ddiff.channels": "4"}, "the card says 4 channels, the graph's x has 3"),
        ({"ddiff.learned_variance": "true"}, "the card says 6 channels, the graph's eps has 3"),
        ({"ddiff.prediction": "noise"}, "prediction is 'noise'"),
        ({"ddiff.schedule": "linear"}, "does not support the card's schedule 'linear'"),
        ({"ddiff.license": " "}, "the card lacks license"),
    ],
)
def test_card_contradicts_the_graph(tmp_path: Path, change: dict[str, str], message: str) -> None:
    out = tmp_path / "p.onnx"
    assert cli.main(["drunet", "--config", "drunet_color", "--weights", str(weights(tmp_path / "w.pth")), "--out", str(out), *FIELDS]) == 0
    model = onnx.load(str(out))
    card.check(model, "p.onnx")
    onnx_file.set_metadata(model, change)
    with pytest.raises(ExportError, match=message):
        card.check(model, "p.onnx")


def test_external_data(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    arguments = ["drunet", "--config", "drunet_color", "--weights", str(weights(tmp_path / "w.pth")), "--external-data", *FIELDS]
    out, data = tmp_path / "p.onnx", tmp_path / "p.onnx.data"
    assert cli.main([*arguments, "--out", str(out)]) == 0
    capsys.readouterr()
    model = onnx.load(str(out), load_external_data=False)
    offsets = [int(e.value) for t in model.graph.initializer for e in t.external_data if e.key == "offset"]
    assert len(offsets) > 3 and all(offset % 4096 == 0 for offset in offsets)
    onnx.checker.check_model(str(out))

    def half() -> str:
        assert cli.main(["half", "--onnx", str(out), "--out", str(tmp_path / "h.onnx")]) == 2
        return capsys.readouterr().err

    whole = data.read_bytes()
    data.write_bytes(whole[:-1] + bytes([whole[-1] ^ 1]))
    assert "p.onnx.data was altered" in half()
    data.unlink()
    assert "p.onnx.data is missing" in half()
    out.write_bytes(out.read_bytes()[:300])
    assert "p.onnx: not an ONNX file, or truncated" in half()


def test_diffusers_directories(tmp_path: Path) -> None:
    with pytest.raises(ExportError, match="config.json: no such file"):
        diffusers_unet.open_directory(tmp_path)
    (tmp_path / "config.json").write_text(json.dumps({"_class_name": "UNet2DConditionModel"}))
    with pytest.raises(ExportError, match="_class_name is UNet2DConditionModel"):
        diffusers_unet.open_directory(tmp_path)
    (tmp_path / "config.json").write_text(json.dumps({"time_embedding_type": "fourier"}))
    with pytest.raises(ExportError, match="time_embedding_type is 'fourier'"):
        diffusers_unet.open_directory(tmp_path)
    (tmp_path / "config.json").write_text("{}")
    with pytest.raises(ExportError, match="the directory holds no weights"):
        diffusers_unet.open_directory(tmp_path)


def test_lpips_of_another_network(tmp_path: Path) -> None:
    state = random_weights.state(random_weights.randomise(lpips.LPIPS("alex"), 0))
    with pytest.raises(ExportError, match="another architecture"):
        lpips.load("squeeze", [("alex.pth", state)])
    with pytest.raises(ExportError, match=r"resnet.pth: conv1.weight belongs neither to alexnet"):
        lpips.load("alex", [("resnet.pth", {"conv1.weight": torch.ones(1)})])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--config", "ffhq", "--weights", "w"], "--config: unknown configuration 'ffhq'; choose one of ffhq_10m"),
        (["--config", "ffhq_10m", "--weights", "w", "--field", "wide=2"], "no such field; the fields are image_size, width"),
        (["--config", "ffhq_10m", "--weights", "w", "--field", "width=wide"], "the value must be like 128"),
        (["--config", "ffhq_10m", "--weights", "w", "--class", "dog"], "--class: 'dog' is neither a number nor none"),
    ],
)
def test_wrong_arguments(capsys: pytest.CaptureFixture, arguments: list[str], message: str) -> None:
    assert cli.main(["guided-diffusion", "--out", "o.onnx", *arguments]) == 2
    assert message in capsys.readouterr().err


def test_sit_needs_its_first_stage(capsys: pytest.CaptureFixture) -> None:
    assert cli.main(["ldm", "--config", "sit_xl_2", "--weights", "SiT-XL-2-256x256.pt", "--out", "o"]) == 2
    assert "--first-stage is required: the file of sit_xl_2 has the network only" in capsys.readouterr().err


def test_published_files_are_found_by_name(tmp_path: Path) -> None:
    with pytest.raises(ExportError, match="the folder holds no file with a published name"):
        published.cases(tmp_path)
    for name in ("ffhq_10m.pt", "imagenet256.pt", "ldm_ffhq256.ckpt", "GOPRO_wVAE.pth", "alex.pth", "alexnet-owt-7be5be79.pth", "vgg.pth", "other.pt"):
        (tmp_path / name).touch()
    (tmp_path / "ddpm").mkdir()
    (tmp_path / "ddpm" / "config.json").touch()
    found = {case.name: case.arguments for case in published.cases(tmp_path)}
    assert set(found) == {"ffhq_10m", "imagenet256", "ldm_ffhq256", "GOPRO_wVAE", "lpips_alex_published", "ddpm"}
    assert found["imagenet256"][:3] == ("guided-diffusion", "--config", "imagenet_256_uncond")
    assert found["ldm_ffhq256"][:3] == ("ldm", "--config", "ffhq256")
