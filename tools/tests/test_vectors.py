"""The committed reference vectors equal those written by the script."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from ddiff_torch import vectors
from ddiff_torch.operators import DEFAULTS

COMMITTED = Path(__file__).resolve().parents[2] / "restore/operator/testdata"


def test_writing_twice_gives_the_same_bytes(tmp_path: Path) -> None:
    for run in ("one", "two"):
        assert vectors.main([str(tmp_path / run)]) == 0
    files = sorted(p.relative_to(tmp_path / "one") for p in (tmp_path / "one").rglob("*") if p.is_file())
    assert len(files) > 100
    for path in files:
        assert (tmp_path / "one" / path).read_bytes() == (tmp_path / "two" / path).read_bytes(), path


@pytest.mark.parametrize("case", vectors.CASES, ids=lambda case: case.name)
def test_committed_vectors_are_current(case: vectors.Case) -> None:
    described = json.loads((COMMITTED / case.name / "case.json").read_text())
    files = vectors.arrays(case)
    assert (described["task"], described["params"]) == (case.task, case.params)
    assert described["shapes"] == {name: list(value.shape) for name, value in files.items()}
    for name, value in files.items():
        stored = np.load(COMMITTED / case.name / f"{name}.npy")
        assert stored.dtype == np.float32
        # The last bits depend on the version of torch.
        np.testing.assert_allclose(stored, value, rtol=1e-5, atol=1e-6, err_msg=name)


def test_every_task_has_a_case() -> None:
    assert {case.task for case in vectors.CASES if case.full} == set(DEFAULTS)
