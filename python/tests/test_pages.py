import re
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
from PIL import Image

import ddiff

from conftest import execute, long, scene

WORK = Path(__file__).parent.parent


def blocks(page: str) -> list[str]:
    return re.findall(r"```python\n(.*?)```", (WORK / page).read_text(), re.S)


@long
def test_page(tmp_path, monkeypatch):
    """Runs the code of docs/python.md, but for a GPU, a cluster and PyTorch, which tests/pytorch has."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "photos").mkdir()
    Image.fromarray((255 * scene()).astype("u1")).save(tmp_path / "photos" / "a.png")
    Image.fromarray((255 * scene()[::2, ::2]).astype("u1")).save(tmp_path / "small.jpg", quality=98)
    names = {"np": np, "rng": np.random.default_rng(1), "clean": scene(), "pictures": [scene(1), scene(2)]}
    ran = 0
    for code in blocks("python.md"):
        if not re.search("cuda|Cluster|export|torch", code):
            exec(code, names)
            ran += 1
    assert ran == 3 and (tmp_path / "large.png").exists() and len(names["results"]) == 2
    t = names["t"]
    assert len(t) == 4 and set(t.method) == {"ddiff", "dpir"} and t.psnr.gt(10).all() and (tmp_path / "out" / "index.html").exists()
    assert (tmp_path / "figure.svg").read_text().startswith("<svg")


@long
def test_figure(tmp_path):
    (tmp_path / "photos").mkdir()
    for i, name in enumerate(["01", "02"]):
        Image.fromarray((255 * scene(i)).astype("u1")).save(tmp_path / "photos" / f"{name}.png")
    tasks = ["denoise", {"name": "super_resolution", "params": {"factor": 4}}]
    e = ddiff.run(tmp_path / "photos", tasks=tasks, methods=["ddiff", "dpir"], size=64, steps=2, out=tmp_path / "out")
    t = e.table()

    def parts(**choice):
        root = ElementTree.fromstring(e.figure(**choice).svg)
        space = "{http://www.w3.org/2000/svg}"
        return [t.text for t in root.iter(space + "text")], list(root.findall(space + "svg")), list(root.findall(space + "rect"))

    texts, pictures, frames = parts()
    assert texts[:4] == ["measurement", "ddiff", "dpir", "truth"] and len(pictures) == 16 and not frames
    assert sorted(x for x in texts if x.endswith(" dB")) == sorted(f"{p:.2f} dB" for p in t.psnr)
    name = t.image[1]
    (psnr,) = t[(t.image == name) & (t.method == "dpir") & (t.task == "super_resolution")].psnr
    texts, pictures, frames = parts(images=[name], tasks=["super_resolution"], methods=["dpir"], crop=(8, 0, 32, 48), zooms=[(10, 20, 8, 4)], side=20)
    assert texts[3:] == ["super_resolution", f"{psnr:.2f} dB", name]
    assert len(pictures) == 6 and len(frames) == 6
    whole, zoom = pictures[:2]
    assert whole.get("viewBox") == "8 0 32 48" and (whole.get("width"), whole.get("height")) == ("20", "30")
    assert zoom.get("viewBox") == "10 20 8 4" and (zoom.get("width"), zoom.get("height")) == ("8", "4")
    assert [float(frames[0].get(k)) for k in ("x", "width", "height")] == [1.25, 5, 2.5]
    with pytest.raises(ValueError, match="see table"):
        e.figure(methods=["daps"])


def test_run_paths(tmp_path, monkeypatch, clean):
    """Paths of settings are relative to the working directory, and settings of the dataset stand beside its path."""
    monkeypatch.chdir(tmp_path)
    Path("photos").mkdir()
    Image.fromarray((255 * clean).round().astype("u1")).save("photos/a.png")
    mask = np.ones((64, 64), "f4")
    mask[30:34] = 0
    np.save("mask.npy", mask)
    t = ddiff.run("photos", tasks=[{"name": "inpaint", "mask": "mask.npy"}], dataset={"fit": "pad"}, steps=np.int64(2), device="cpu").table()
    assert list(t.outcome) == ["done"] and list(t.fit) == ["pad"] and list(t.steps) == [2]
    with pytest.raises(ddiff.ProcessError, match=f"prior {tmp_path}/unet.onnx"):
        ddiff.run("photos", prior="unet.onnx", out="other")


def test_run_refused(tmp_path):
    with pytest.raises(ddiff.ProcessError, match="exit code 2: .*sharpen"):
        ddiff.run(tmp_path, tasks=["sharpen"], out=tmp_path / "out")
    with pytest.raises(ddiff.ProcessError, match="exit code 2: .*sharpen"):
        ddiff.run(tmp_path, "sharpen", out=tmp_path / "out")


def test_export_needs_torch():
    with pytest.raises(ModuleNotFoundError, match=r"pip install 'torch>=2\.4' 'onnx>=1\.16' safetensors$"):
        ddiff.export.diffusers("folder", "prior.onnx", license="MIT")


@pytest.mark.parametrize("book", ["compare_methods", "restore_your_photograph"])
def test_notebook(book):
    execute(book)
