"""The masks that paper_protocol.py draws are those of examples/paper/protocol."""

import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import paper_protocol

FILES = Path(__file__).resolve().parents[2] / "examples" / "paper" / "protocol"


def test_writes_the_stored_files(tmp_path: Path) -> None:
    assert paper_protocol.main([str(tmp_path)]) == 0
    for name, dropped in (("box_mask.png", 128 * 128), ("random_mask.png", 46234)):
        mask = np.asarray(Image.open(tmp_path / name))
        assert np.array_equal(mask, np.asarray(Image.open(FILES / name)))
        assert (mask == 0).sum() == dropped and (mask == 255).sum() == mask.size - dropped
    code = np.load(FILES / "blur_code.npy")
    assert code.shape == (512, 2, 2) and code.dtype == np.float32
    np.testing.assert_allclose(np.load(tmp_path / "blur_code.npy"), code, rtol=1e-6)


def test_kernel_of_the_code(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kernel = np.load(FILES / "motion_kernel.npy")
    assert kernel.shape == (61, 61) and kernel.dtype == np.float32 and abs(kernel.sum() - 1) <= 1e-6
    (tmp_path / "motionblur").mkdir()
    (tmp_path / "motionblur" / "motionblur.py").write_text(
        "import numpy as np\nclass Kernel:\n    def __init__(self, size, intensity):\n        self.kernelMatrix = np.random.rand(*size) * intensity\n"
    )
    monkeypatch.setattr(sys, "path", list(sys.path))
    assert np.array_equal(paper_protocol.motion_kernel(tmp_path), np.random.RandomState(0).rand(61, 61) * 0.5)


def test_refuses_a_folder_without_the_code(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as end:
        paper_protocol.main([str(tmp_path / "out"), "--code", str(tmp_path)])
    assert end.value.code == 2 and "has no motionblur/motionblur.py" in capsys.readouterr().err
