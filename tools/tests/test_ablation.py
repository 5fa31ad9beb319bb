"""The study of the ablations: a small grid through the program, and its choice of settings."""

from __future__ import annotations

import argparse
from collections.abc import Callable

import ablation
import pytest

TINY = ["--size", "32", "--steps", "2", "--limit", "3", "--threads", "1", "--tasks", "hdr", "--gamma0", "3,8,20"]


def options(count: int = 1) -> argparse.Namespace:
    return argparse.Namespace(size=32, steps=5, tasks=["hdr"], gamma0=["3", "8", "20"], knobs=count)


def rows(psnr: Callable[[str, int, int], float]) -> list[dict[str, str]]:
    """Results with the PSNR of a method, index of gamma0 and photograph."""
    found = []
    for method in ablation.METHODS:
        for k, g in enumerate(["3", "8", "20"]):
            settings = f"steps=5;gamma0={g};a=3.3;b=1" + (";t0=300;sigma_rule=ddpm" if method.startswith("ddiff") else "")
            for image in range(3):
                found.append({"image": str(image), "task": "hdr", "size": "32x32", "method": method, "settings": settings, "outcome": "done",
                              "reason": "", "psnr": str(psnr(method, k, image))})
    return found


def test_campaign_runs_and_resumes(program: str, tmp_path, capsys: pytest.CaptureFixture[str]) -> None:
    args = ["--out", str(tmp_path), "--program", program, *TINY]
    ablation.main(args)
    first = capsys.readouterr().out
    assert "3 photographs, 32x32, 2 network evaluations, 9 cells per task and method; settings chosen on the other 2 photographs\n" in first
    assert "| hdr | ddiff_hqs | " in first and "ddiff > ddiff_hqs > diff_pnp_admm > diff_pnp_hqs | " in first and first.endswith(" of=1\n")
    results = {f: f.stat().st_mtime_ns for f in tmp_path.glob("items/*/result.json")}
    ablation.main([*args, "--knobs", "1"])  # fewer cells of the same output
    assert ", 3 cells per task" in capsys.readouterr().out
    assert results == {f: f.stat().st_mtime_ns for f in tmp_path.glob("items/*/result.json")}


def test_settings_are_chosen_on_other_photographs() -> None:
    def psnr(method: str, gamma0: int, image: int) -> float:
        if method == "ddiff" and gamma0 == 1:
            return 20
        if method == "ddiff" and gamma0 == image:  # the best cell of photographs 0 and 2 is bad for the others
            return 29
        return 25 if method == "diff_pnp_hqs" and gamma0 == 2 else 10

    scores = ablation.read(options(), rows(psnr))
    order = {"ddiff": 4.0, "ddiff_hqs": 3.0, "diff_pnp_admm": 2.0, "diff_pnp_hqs": 1.0}
    text = ablation.write(options(), scores, {"hdr": order})
    assert "| hdr | ddiff | 20.00 ± 0.00 |" in text  # not 29: a photograph never chooses its own settings
    assert "| hdr | diff_pnp_hqs | 25.00 ± 0.00 | -5.00 ± 0.00 | 10.00 | gamma0=20 b=1 (3) |" in text
    assert "| hdr | diff_pnp_hqs > ddiff > ddiff_hqs > diff_pnp_admm | ddiff > ddiff_hqs > diff_pnp_admm > diff_pnp_hqs | no |" in text
    assert "- hdr, diff_pnp_hqs: gamma0 at the border of the grid\n" in text
    assert text.endswith("first_place_as_published=0 of=1\ntasks_in_order=0 of=1")
    order["diff_pnp_hqs"] = 5.0
    assert ablation.write(options(), scores, {"hdr": order}).endswith("tasks_in_order=1 of=1")


def test_incomplete_grid_is_refused() -> None:
    def without(change: dict[str, str]) -> list[dict[str, str]]:
        found = rows(lambda *_: 20)
        found[5] |= change  # ddiff, gamma0 = 8, photograph 2
        return found

    with pytest.raises(ValueError, match="hdr, ddiff, gamma0=8 b=1 sigma_rule=ddpm t0=300: 2 of 3 photographs"):
        ablation.read(options(), without({"size": "64x64"}))
    with pytest.raises(ValueError, match="failed no file"):
        ablation.read(options(), without({"outcome": "failed", "reason": "no file"}))
    with pytest.raises(ValueError, match="0 of 0 photographs"):
        ablation.read(options(), [])


@pytest.mark.parametrize(("count", "want"), [(1, 3), (2, 9)])
def test_methods_have_equally_many_cells(count: int, want: int) -> None:
    o = options(count)
    for task in ablation.TASKS:
        ours = ablation.grid(o, task, "ddiff")
        for method in ablation.METHODS:
            cells = ablation.grid(o, task, method)
            assert len(cells) == want
            assert all(ablation.like(cells, cell)[0] == cell[0] for cell in ours)
