import re
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import ddiff

from conftest import scene

WORK = Path(__file__).parent.parent


def blocks(page: str) -> list[str]:
    return re.findall(r"```python\n(.*?)```", (WORK / page).read_text(), re.S)


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


def test_run_refused(tmp_path):
    with pytest.raises(ddiff.ProcessError, match="exit code 2: .*sharpen"):
        ddiff.run(tmp_path, tasks=["sharpen"], out=tmp_path / "out")


def test_export_needs_torch():
    with pytest.raises(ModuleNotFoundError, match=r"pip install 'ddiff\[export\]'"):
        ddiff.export.diffusers("folder", "prior.onnx", license="MIT")


@pytest.mark.parametrize("book", sorted((WORK / "notebooks").glob("*.ipynb")), ids=lambda p: p.stem)
def test_notebook(book):
    import nbclient
    import nbformat

    nbclient.NotebookClient(nbformat.read(book, 4), timeout=300, kernel_name="python3", resources={"metadata": {"path": str(book.parent)}}).execute()
