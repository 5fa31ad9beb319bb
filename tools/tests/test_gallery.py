from __future__ import annotations

from pathlib import Path

import campaigns
import gallery
import numpy as np
from classical_methods import psnr
from PIL import Image


def test_page_has_the_commands_that_made_its_pictures():
    page = (campaigns.REPO / "docs/photographs.md").read_text()
    assert [line for line in page.splitlines() if line.startswith("ddiff restore ")] == [e.command for e in gallery.EXAMPLES]
    for example in gallery.EXAMPLES:
        name = f"images/restored-{example.file.partition('.')[0]}.jpg"
        assert f"]({name})" in page
        assert (campaigns.REPO / "docs" / name).exists()


def test_example_restores(tmp_path, program):
    (example,) = (e for e in gallery.EXAMPLES if e.file == "squeezed.jpg")
    example.degrade(tmp_path, 0)
    restored = example.restore(tmp_path, Path(program))
    truth = np.asarray(Image.open(gallery.PHOTOGRAPHS / "coffee.png").convert("RGB"), float) / 255
    before = psnr(np.asarray(Image.open(tmp_path / "squeezed.jpg"), float) / 255, truth)
    assert psnr(np.asarray(restored, float) / 255, truth) > before + 1
