"""Fixtures shared by the tests."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

REPO = Path(__file__).resolve().parents[2]
ENVIRONMENT = dict(os.environ)  # the user's, which the fixture program changes


@pytest.fixture(scope="session", autouse=True)
def one_thread() -> None:
    """Uses one thread: several threads wait for each other on a busy machine."""
    torch.set_num_threads(1)


@pytest.fixture(scope="session")
def prior_path() -> Path:
    """The score model named by DDIFF_PRIOR, or the bundled model."""
    path = Path(os.environ.get("DDIFF_PRIOR", REPO / "internal/restore/prior/bundled/prior.onnx"))
    if not path.exists():
        pytest.skip(f"no score model at {path}: set DDIFF_PRIOR to an ONNX file")
    return path


@pytest.fixture(scope="session")
def program(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The built program with the installed ONNX Runtime and an empty cache: without OpenVINO, whose compilation of a network takes
    most of the time of a small campaign."""
    path = REPO / "bin/ddiff"
    if not path.exists():
        pytest.skip(f"no {path}: run make build")
    runtime = subprocess.run([path, "runtime", "where"], capture_output=True, text=True, check=True).stdout.strip()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("DDIFF_ONNXRUNTIME", runtime)
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
        yield str(path)
