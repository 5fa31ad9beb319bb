"""The comparison of the methods: small campaigns through the program, and its counts."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import campaigns
import compare_methods
import pytest
from conftest import REPO

TINY = ["--size", "32", "--steps", "3", "--threads", "1", "--task", "super_resolution", "--method", "ddiff,daps"]


def test_campaigns_run_and_resume(program: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    args = ["--out", str(tmp_path / "out"), "--program", program, "--limit", "2", *TINY]
    assert compare_methods.main(args) == 0
    first = capfd.readouterr().out
    assert re.search(r"\nmethods=2 tasks=1 ddiff_highest=[01] failed=0\n$", first)
    assert compare_methods.main(args) == 0
    assert capfd.readouterr().out == first


def test_failed_items_are_counted(program: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    photographs = tmp_path / "photographs"
    photographs.mkdir()
    for name, share in (("astronaut.png", 1), ("chelsea.png", 2)):
        data = (REPO / "examples/images" / name).read_bytes()
        (photographs / name).write_bytes(data[: len(data) // share])
    assert compare_methods.main(["--out", str(tmp_path / "out"), "--program", program, "--images", str(photographs), *TINY]) == 1
    said = capfd.readouterr()
    assert re.search(r"\nmethods=2 tasks=1 ddiff_highest=[01] failed=[1-9]\d*\n$", said.out)
    assert "items failed or are dead" in said.err


def row(task: str, method: str, image: str, outcome: str = "done", **more: str) -> dict[str, str]:
    return {"task": task, "method": method, "image": image, "outcome": outcome, **more}


def test_a_failure_takes_its_image_out_of_the_task() -> None:
    rows = [row("hdr", "ddiff", "a"), row("hdr", "ddiff", "b"), row("hdr", "dps", "a", "dead"), row("hdr", "dps", "b"),
            row("hdr", "daps", "a", "failed"), row("hdr", "daps", "b", "failed"),  # out itself, and no other row with it
            row("blur", "ddiff", "a", "failed"), row("blur", "dps", "a")]
    assert compare_methods.restored_by_all(rows) == [rows[1], rows[3]]


def test_highest() -> None:
    rows = []
    for image, noise in enumerate([-1, 0, 1]):
        level = 20 + 5 * image
        for task, method, psnr in (("best", "ddiff", 1), ("best", "dps", 0), ("tied", "ddiff", 0), ("tied", "dps", 0.02 + 0.02 * noise),
                                   ("tied", "daps", -3), ("behind", "ddiff", 0), ("behind", "dps", 1 + 0.01 * noise), ("behind", "daps", -3),
                                   ("open", "ddiff", 0), ("open", "dps", 0.1 + noise), ("open", "daps", -3)):
            rows.append(row(task, method, str(image), psnr=str(level + psnr)))
    assert compare_methods.highest(rows) == (3, 4, 1)
    with pytest.raises(ValueError, match="two results"):
        compare_methods.highest([*rows, rows[0]])
    with pytest.raises(ValueError, match="the same images"):
        compare_methods.highest(rows[1:])


@pytest.mark.parametrize("sent", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_waits_for_checkpoints(tmp_path: Path, sent: signal.Signals) -> None:
    stand_in = tmp_path / "ddiff"
    stand_in.write_text('#!/bin/sh\ntrap \'echo >> "$0.interrupts"; sleep 1; echo > "$0.stored"; exit 130\' INT\n'
                        'echo > "$0.started"\nwhile :; do sleep 0.05; done\n')
    stand_in.chmod(0o755)
    tool = subprocess.Popen([sys.executable, str(REPO / "tools/compare_methods.py"), "--program", str(stand_in), "--out", str(tmp_path)],
                            start_new_session=True, stderr=subprocess.DEVNULL,
                            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL))  # a test run in the background ignores it
    deadline = time.monotonic() + 60
    while not Path(f"{stand_in}.started").exists():
        assert time.monotonic() < deadline and tool.poll() is None
        time.sleep(0.01)
    os.killpg(tool.pid, sent)  # as a terminal does
    assert tool.wait(60) in (-signal.SIGINT, 130)
    assert Path(f"{stand_in}.stored").exists() and Path(f"{stand_in}.interrupts").read_text() == "\n"


def test_an_interrupt_while_ddiff_starts_reaches_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stand_in, start = tmp_path / "ddiff", subprocess.Popen
    stand_in.write_text('#!/bin/sh\ntrap \'echo > "$0.stored"; exit 130\' INT\necho > "$0.started"\nwhile :; do sleep 0.05; done\n')
    stand_in.chmod(0o755)

    def interrupted(*args, **options):
        process = start(*args, **options)
        while not Path(f"{stand_in}.started").exists():
            time.sleep(0.01)
        os.kill(os.getpid(), signal.SIGTERM)
        return process

    monkeypatch.setattr(subprocess, "Popen", interrupted)
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)  # otherwise a fault would end the tests
    try:
        with pytest.raises(KeyboardInterrupt):
            campaigns.run(stand_in, "campaign.yaml")
    finally:
        signal.signal(signal.SIGTERM, before)
    assert Path(f"{stand_in}.stored").exists()


def test_a_choice_without_ddiff_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        compare_methods.main(["--method", "daps,dps"])
    assert ended.value.code == 2 and "without ddiff" in capsys.readouterr().err
