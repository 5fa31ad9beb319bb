"""Campaigns on a cluster of real processes: a NATS server (the variable NATS_SERVER names the program), a coordinator and a worker."""

import os
import socket
import subprocess
import threading

import pytest
from PIL import Image

import ddiff
from ddiff._program import PROGRAM, environment

from conftest import execute, scene


LIMIT = 300  # of each wait, in seconds; a wait lasts a few


def free_ports(n):
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(n)]
    ports = [s.getsockname()[1] for s in sockets]
    for s in sockets:
        s.close()
    return ports


@pytest.fixture
def cluster(tmp_path):
    nats_port, api = free_ports(2)
    nats = ["--nats", f"nats://127.0.0.1:{nats_port}", "--nats-wait", "1m"]
    processes, lines, serves = [], [], threading.Event()
    admin = tmp_path / "admin"
    admin.write_text("the token of an administrator")

    def start(*args, stderr=subprocess.DEVNULL):
        p = subprocess.Popen([str(a) for a in args], stdout=subprocess.DEVNULL, stderr=stderr, env=environment(), text=True)
        processes.append(p)
        return p

    def listen(pipe):
        """Reads the pipe to its end: a full one would stop the coordinator."""
        for line in pipe:
            lines.append(line)
            if "serving the HTTP API" in line:
                serves.set()
        serves.set()

    try:
        start(os.environ["NATS_SERVER"], "-js", "-sd", tmp_path / "js", "-a", "127.0.0.1", "-p", nats_port)
        coordinator = start(PROGRAM, "coordinator", *nats, "--store", tmp_path / "store", "--listen", f"127.0.0.1:{api}", "--admin-token", admin, stderr=subprocess.PIPE)
        threading.Thread(target=listen, args=[coordinator.stderr], daemon=True).start()
        assert serves.wait(LIMIT) and coordinator.poll() is None, "the coordinator does not serve: " + "".join(lines)
        server = f"http://127.0.0.1:{api}"
        create = [PROGRAM, "token", "create", "--owner", "test", "--role", "submitter", "--server", server]
        token = subprocess.run(create, capture_output=True, env=environment() | {"DDIFF_TOKEN": admin.read_text()}, text=True, check=True, timeout=LIMIT).stdout.strip()
        yield ddiff.Cluster(server, token), lambda: start(PROGRAM, "worker", *nats, "--device", "cpu", "--threads", "2")
    finally:
        for p in processes[::-1]:
            p.terminate()
        for p in processes:
            try:
                p.wait(60)
            except subprocess.TimeoutExpired:
                p.kill()
                raise


def test_campaign(cluster, tmp_path):
    cluster, start_worker = cluster
    Image.fromarray((255 * scene()).astype("u1")).save(tmp_path / "a.png")
    spec = {"name": "python", "dataset": {"path": str(tmp_path / "a.png"), "size": 64}, "tasks": ["denoise"], "methods": ["ddiff", "dpir"]}
    campaign = cluster.submit(spec)
    assert cluster.submit(spec) == campaign  # idempotent
    with pytest.warns(UserWarning, match="all runs are equal of ddiff in denoise, dpir in denoise: "):
        cluster.submit({**spec, "name": "equal", "runs": 2}).cancel()
    with pytest.raises(TimeoutError, match="call wait again"):
        campaign.wait(0.2, 0)
    start_worker()
    assert campaign.wait(0.2, LIMIT).status()["phase"] == "finished"
    t = campaign.table()
    assert set(t.method) == {"ddiff", "dpir"} and set(t.outcome) == {"done"} and t.psnr.gt(20).all()
    with pytest.raises(ValueError, match="400|422"):
        cluster.submit({**spec, "tasks": ["sharpen"]})
    with pytest.raises(ValueError, match="404"):
        cluster.campaign("nothing-0123456789ab").status()
    with pytest.raises(ValueError, match="401"):
        ddiff.Cluster(cluster.url.removesuffix("/api/v1"), "wrong").submit(spec)


def test_notebook(cluster, tmp_path, monkeypatch):
    cluster, start_worker = cluster
    start_worker()
    Image.fromarray((255 * scene()).astype("u1")).save(tmp_path / "a.png")
    for name, value in {"URL": cluster.url.removesuffix("/api/v1"), "TOKEN": cluster._token, "PHOTOGRAPHS": str(tmp_path / "a.png")}.items():
        monkeypatch.setenv(f"DDIFF_{name}", value)
    execute("campaign_on_a_cluster")


def test_nobody_answers():
    with pytest.raises(ConnectionError, match="127.0.0.1"):
        ddiff.Cluster(f"http://127.0.0.1:{free_ports(1)[0]}", "token").submit({})


def test_stored_token(tmp_path, monkeypatch):
    monkeypatch.delenv("DDIFF_TOKEN", raising=False)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    assert ddiff.Cluster("http://host:1")._token == ""
    (tmp_path / "ddiff").mkdir()
    kept = tmp_path / "ddiff" / "tokens.json"
    kept.write_text('{"http://host:1": "kept"}')
    kept.chmod(0o644)
    with pytest.raises(PermissionError, match="run: chmod 600"):
        ddiff.Cluster("http://host:1")
    kept.chmod(0o600)
    assert ddiff.Cluster("http://host:1/")._token == "kept"
    assert ddiff.Cluster("http://host:1", "given")._token == "given"
    assert ddiff.Cluster("http://host:2")._token == ""
    kept.write_text("null")
    assert ddiff.Cluster("http://host:1")._token == ""
