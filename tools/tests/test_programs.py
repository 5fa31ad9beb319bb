"""Results as other programs read them: pandas, Hugging Face datasets, and the recipes for Weights & Biases and MLflow.

`make programs-test` installs these packages and names the folder with a small campaign in DDIFF_EXPORTS: demo.parquet
and out/demo. Nothing is sent to a network.
"""

from __future__ import annotations

import json
import os
import re
import struct
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

REPO = Path(__file__).resolve().parents[2]
EXPORTS = os.environ.get("DDIFF_EXPORTS")

pytestmark = pytest.mark.skipif(not EXPORTS, reason="DDIFF_EXPORTS names no exports: run make programs-test")


def code_of(heading: str) -> str:
    """Returns the Python code below a heading of docs/scripting.md."""
    section = (REPO / "docs/scripting.md").read_text().split(f"## {heading}\n")[1].split("\n## ")[0]
    return "\n".join(re.findall(r"```python\n(.*?)```", section, re.S))


@pytest.fixture
def exports(monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(EXPORTS)
    return Path(EXPORTS)


def test_table(exports: Path) -> None:
    """The code of the page: two cells of two images each, two runs per image."""
    names: dict = {}
    exec(code_of("Tables"), names)
    table, rows = names["table"], names["t"]
    assert len(rows) == 8 and list(table["count"]) == [2, 2]
    first = rows[rows.settings.str.contains("gamma0=4;")]
    assert abs(table["mean"].iloc[0] - first.psnr.mean()) < 1e-9
    assert sorted(set(names["settings"].gamma0)) == ["4", "8"]


def test_pictures(exports: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The code of the page: rows with Pillow images that are the stored ones."""
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setenv("HF_HOME", str(tmp_path))
    names: dict = {}
    exec(code_of("Pictures"), names)
    assert len(names["pictures"]) == 8
    from PIL import Image

    for row in names["pictures"]:
        for column in ("restored", "truth", "measurement"):
            stored = Image.open(exports / "out/demo/items" / row["item"] / f"{column}.png")
            assert row[column].size == stored.size == (32, 32) and row[column].tobytes() == stored.tobytes()


def recipe(exports: Path, name: str, folder: Path, **environment: str) -> None:
    """Runs a recipe of examples/python on the summary of the campaign, in a folder."""
    script = REPO / "examples/python" / name
    env = os.environ | environment | {"HOME": str(folder), "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(
        [sys.executable, script, exports / "out/demo/summary.json"], env=env, cwd=folder, timeout=300, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr


def wandb_records(log: bytes) -> Iterator[bytes]:
    """Yields the records of a log of W&B: those of LevelDB, in blocks of 32 KiB, after a header of seven bytes."""
    at, record = 7, b""
    while at + 7 <= len(log):
        if -at % 32768 < 7:  # the rest of the block is padding
            at += -at % 32768
            continue
        size, kind = struct.unpack("<HB", log[at + 4 : at + 7])
        record += log[at + 7 : at + 7 + size]
        at += 7 + size
        if kind in (1, 4):  # a whole record, or the last part of one
            yield record
            record = b""


def test_wandb(exports: Path, tmp_path: Path) -> None:
    """Weights & Biases records each run offline with its name, configuration and scores."""
    from wandb.proto.wandb_internal_pb2 import Record

    recipe(exports, "wandb_runs.py", tmp_path, WANDB_MODE="offline", WANDB_ERROR_REPORTING="false")
    scores = {}
    for log in (tmp_path / "wandb").glob("offline-run-*/run-*.wandb"):
        records = {r.WhichOneof("record_type"): r for r in map(Record.FromString, wandb_records(log.read_bytes()))}
        run = records["run"].run
        config = {i.key: json.loads(i.value_json) for i in run.config.update}
        assert run.project == "ddiff" and config["task"] == "hdr" and config["sigma"] == 0.05 and config["params.scale"] == 2
        assert f"gamma0={config['settings.gamma0']}." in run.display_name
        scores[run.display_name] = {"".join(i.nested_key) or i.key: json.loads(i.value_json) for i in records["history"].history.item}
        assert records["exit"].exit.exit_code == 0
    assert set(scores) == {"hdr.gamma0=4.ddiff", "hdr.gamma0=8.ddiff"}
    assert all(s["images"] == 2 and 0 < s["psnr"] < 60 for s in scores.values())


def test_mlflow(exports: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """MLflow finds the runs with parameters and metrics; a second upload updates them."""
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    import pandas
    from mlflow.tracking import MlflowClient

    store = str(tmp_path / "mlruns")
    for _ in range(2):
        recipe(exports, "mlflow_runs.py", tmp_path, MLFLOW_TRACKING_URI=store)
    client = MlflowClient(tracking_uri=store)
    runs = client.search_runs([client.get_experiment_by_name("ddiff").experiment_id])
    assert sorted(r.info.run_name for r in runs) == ["hdr.gamma0=4.ddiff", "hdr.gamma0=8.ddiff"]
    for run in runs:
        assert f"gamma0={run.data.params['settings.gamma0']}." in run.info.run_name and run.data.metrics["images"] == 2
        rows = pandas.read_parquet("demo.parquet")
        rows = rows[(rows.run == 0) & rows.settings.str.contains(f"gamma0={run.data.params['settings.gamma0']};")]
        assert abs(run.data.metrics["psnr"] - rows.psnr.mean()) < 1e-9
