"""Results as other programs read them: pandas, Hugging Face datasets, Weights & Biases, MLflow.

`make programs-test` installs these packages and names the exports of a small campaign in DDIFF_EXPORTS: demo.parquet,
pictures, wandb, mlruns. Nothing is sent to a network.
"""

from __future__ import annotations

import http.server
import json
import os
import re
import shutil
import subprocess
import sys
import threading
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
    assert len(names["pictures"]) == len(names["rows"]) == 8
    from PIL import Image

    for row in names["pictures"]:
        for column in ("restored", "truth", "measurement"):
            stored = Image.open(exports / "out/items" / row["item"] / f"{column}.png")
            assert row[column].size == stored.size == (32, 32) and row[column].tobytes() == stored.tobytes()
    assert set(names["rows"]["item"]) == set(names["pictures"]["item"])


class Upload(http.server.BaseHTTPRequestHandler):
    """A stand-in for the server of Weights & Biases, which accepts runs and records the requests."""

    requests: list[tuple[str, dict]] = []

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])) or "{}")
        self.requests.append((self.path, body))
        answer: dict = {}
        if self.path.startswith("/graphql"):
            entity = {"id": "e", "name": "somebody"}
            bucket = {
                "id": "b", "name": body["variables"].get("name", ""), "displayName": "", "description": "", "config": "{}",
                "sweepName": None, "historyLineCount": 0, "project": {"id": "p", "name": "ddiff", "entity": entity},
            }
            answer = {"data": {"upsertBucket": {"bucket": bucket, "inserted": True}, "viewer": {"id": "u", "entity": "somebody", "flags": "{}"}}}
        data = json.dumps(answer).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_: object) -> None:
        pass


def test_wandb(exports: Path, tmp_path: Path) -> None:
    """`wandb sync` uploads each run with its name, configuration, summary and one step of history."""
    Upload.requests.clear()
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Upload)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        shutil.copytree(exports / "wandb", tmp_path / "wandb")  # sync leaves a mark
        runs = sorted(str(p) for p in (tmp_path / "wandb").glob("offline-run-*"))
        env = os.environ | {
            "WANDB_BASE_URL": f"http://127.0.0.1:{server.server_port}", "WANDB_API_KEY": "a" * 40, "HOME": str(tmp_path),
            "WANDB_ERROR_REPORTING": "false",
        }
        done = subprocess.run(
            [sys.executable, "-m", "wandb", "sync", *runs], env=env, cwd=tmp_path, timeout=120, capture_output=True, text=True
        )
        assert done.returncode == 0, done.stderr
    finally:
        server.shutdown()
    created = {b["variables"]["displayName"]: b["variables"] for p, b in Upload.requests if b.get("variables", {}).get("displayName")}
    assert set(created) == {"hdr.gamma0=4.ddiff", "hdr.gamma0=8.ddiff"}
    config = {k: v["value"] for k, v in json.loads(created["hdr.gamma0=8.ddiff"]["config"]).items()}
    assert config["task"] == "hdr" and config["sigma"] == 0.05 and config["params"] == {"scale": 2} and config["settings"]["gamma0"] == 8
    streams = [b for p, b in Upload.requests if p.endswith("/file_stream")]
    history = [json.loads(line) for b in streams for line in b.get("files", {}).get("wandb-history.jsonl", {}).get("content", [])]
    summaries = [json.loads(b["files"]["wandb-summary.json"]["content"][-1]) for b in streams if "wandb-summary.json" in b.get("files", {})]
    assert len(history) == 2 and all(h["images"] == 2 and 0 < h["psnr"] < 60 for h in history)
    assert {round(h["psnr"], 6) for h in history} <= {round(s["psnr"], 6) for s in summaries if "psnr" in s}
    assert sum(b.get("exitcode") == 0 and b.get("complete") for b in streams) == 2


def test_wandb_golden() -> None:
    """The package of W&B reads the file that the Go tests compare with."""
    import struct
    import zlib

    from wandb.proto import wandb_internal_pb2

    data = (REPO / "cmd/ddiff/export/testdata/run.wandb").read_bytes()
    records, at = [], 7
    while at < len(data):
        crc, size, kind = struct.unpack("<IHB", data[at : at + 7])
        body = data[at + 7 : at + 7 + size]
        assert kind == 1 and crc == zlib.crc32(bytes([kind]) + body)
        records.append(wandb_internal_pb2.Record.FromString(body))
        at += 7 + size
    assert [r.WhichOneof("record_type") for r in records] == ["header", "run", "history", "summary", "exit"]
    assert records[1].run.display_name == "hdr.gamma0=4.ddiff" and records[1].run.project == "ddiff"
    assert {i.key: i.value_json for i in records[3].summary.update} == {"images": "6", "psnr": "25.5"}


def test_mlflow(exports: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """MLflow finds the runs with parameters and metrics."""
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    import pandas
    from mlflow.tracking import MlflowClient

    client = MlflowClient(tracking_uri=str(exports / "mlruns"))
    runs = client.search_runs(["0"])
    assert sorted(r.info.run_name for r in runs) == ["hdr.gamma0=4.ddiff", "hdr.gamma0=8.ddiff"]
    for run in runs:
        assert run.data.params["settings.gamma0"] in run.info.run_name and run.data.metrics["images"] == 2
        rows = pandas.read_parquet("demo.parquet")
        rows = rows[rows.settings.str.contains(f"gamma0={run.data.params['settings.gamma0']};")]
        assert abs(run.data.metrics["psnr"] - rows.groupby("image").psnr.mean().mean()) < 1e-9  # as docs/scripting.md says
