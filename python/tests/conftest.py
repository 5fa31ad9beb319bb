import os
from pathlib import Path

import numpy as np
import pytest

import ddiff

long = pytest.mark.skipif("DDIFF_SHORT" in os.environ, reason="takes some seconds: make test-all")


def scene(seed: int = 0) -> np.ndarray:
    """A picture of 64×64 pixels from 0 to 1: smooth colours with a few edges."""
    i, j = np.mgrid[0:64, 0:64] / 64
    x = np.stack([0.5 + 0.3 * np.sin(4 * i + seed), 0.4 + 0.3 * np.cos(3 * j), 0.5 + 0.2 * np.sin(5 * (i + j))], -1)
    x[16:40, 20:44] = [0.8, 0.3, 0.2]
    return x.astype("f4")


def execute(book: str) -> None:
    """Executes a notebook; a cell that fails is an error."""
    nbclient = pytest.importorskip("nbclient", reason="needs packages of PyPI: make python-test")
    nbformat = pytest.importorskip("nbformat")
    path = Path(__file__).parent.parent / "notebooks" / f"{book}.ipynb"
    nbclient.NotebookClient(nbformat.read(path, 4), timeout=300, kernel_name="python3", resources={"metadata": {"path": str(path.parent)}}).execute()


@pytest.fixture
def clean() -> np.ndarray:
    return scene()


@pytest.fixture
def noisy(clean: np.ndarray) -> np.ndarray:
    return (clean + 0.05 * np.random.default_rng(7).standard_normal(clean.shape)).astype("f4")


@pytest.fixture(scope="session")
def session():
    with ddiff.Session(device="cpu", threads=2) as s:
        yield s
