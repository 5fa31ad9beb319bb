"""Fixtures shared by the tests."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
import torch

REPO = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="session", autouse=True)
def one_thread() -> None:
    """Uses one thread: several threads wait for each other on a busy machine."""
    torch.set_num_threads(1)


@pytest.fixture(scope="session")
def prior_path() -> Path:
    """The score model named by DDIFF_PRIOR, or the bundled model."""
    path = Path(os.environ.get("DDIFF_PRIOR", REPO / "restore/prior/bundled/prior.onnx"))
    if not path.exists():
        pytest.skip(f"no score model at {path}: set DDIFF_PRIOR to an ONNX file")
    return path


@pytest.fixture(scope="session")
def program() -> str:
    """The built program, which finds the installed ONNX Runtime."""
    path = REPO / "bin/ddiff"
    if not path.exists():
        pytest.skip(f"no {path}: run make build")
    return str(path)
