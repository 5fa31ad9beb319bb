"""The parts of make parity-code that need neither the released code nor the program."""

from __future__ import annotations

import copy
import math
from pathlib import Path

import numpy as np
import pytest
import torch
from ddiff_export import bkse
from method_vectors.ddiff_code import Code
from parity_code import bench, compare, theirs
from parity_code.identity import keys
from parity_code.ours import MEASUREMENT, SIGMA, Item, normal
from PIL import Image
from torch import Tensor

# From the result.json of: ddiff run examples/images/astronaut.png --task motion_deblur --preset ffhq --size 256 --seed 1 --steps 2
ITEM = {
    "id": "cea1573241ce3c8a4f4b8f5fb6914b8ddccfa18fc36a57e55df77b062e0060c3",
    "image": {"path": "astronaut.png", "sha256": "6920df7795cecc620fde643c0caa984e5f36cc657d580c50185f298e65c4332b"},
    "width": 256, "height": 256, "fit": "center_crop", "task": "motion_deblur", "params": {"intensity": 0.5, "size": 61}, "sigma": 0.05, "seed": 1, "run": 0,
    "method": "ddiff",
    "solver": {
        "method": "ddiff", "steps": 2, "gamma0": 2.9, "a": 3.3, "b": 0.1, "t_gamma": 90, "t0": 80, "sigma_rule": "ddpm", "gradient": "unit", "answer": "x_t",
    },
    "prior": "17eef6f06dae1e74ec21850cd8f6ebe1b72e8093b8f90f731e4ca7aec64078a5",
}  # fmt: skip


def test_keys_follow_from_an_item_of_the_program() -> None:
    """With this key for the measurement, the stored y minus its noise was A(x) of the released code within 1e-5."""
    k = keys(ITEM)
    assert k.measurement == (2723560717, 2576716707, 2796359131)
    assert k.run == (532887290, 1768505585, 3407401834)


@pytest.mark.parametrize("name, value", [("seed", 2), ("run", 1), ("params", {"size": 61}), ("mask", {"path": "m.npy", "sha256": "00"}), ("tile", 128)])
def test_an_item_with_another_id_is_refused(name: str, value: object) -> None:
    with pytest.raises(ValueError, match="does not follow from its fields"):
        keys(ITEM | {name: value})


def inpainting(folder: Path, error: float) -> tuple[Code, Item]:
    """An item of 8x8 pixels whose A(x) differs from that of the code by error at one observed pixel."""
    g = np.random.default_rng(0)
    Image.fromarray(g.integers(0, 256, (8, 8, 3), dtype=np.uint8)).save(folder / "truth.png")
    mask = (g.random((8, 8)) < 0.5).astype(np.float32)
    mask[0, 0] = 1
    fields = copy.deepcopy(ITEM) | {"task": "inpaint_random", "width": 8, "height": 8}
    item = Item(folder, "inpaint_random", "x", fields, 20.0, keys(ITEM))
    y = item.truth() * torch.from_numpy(mask) + SIGMA * normal((1, 3, 8, 8), MEASUREMENT, 0, item.keys.measurement)
    y[0, 0, 0, 0] += error
    np.save(folder / "mask.npy", mask)
    np.save(folder / "measurement.npy", y[0].numpy())

    def forward(x: Tensor, _: str, given: Tensor) -> Tensor:
        return x * given

    return Code({"forward_grad_like": forward}), item


def test_operators_must_agree(tmp_path: Path) -> None:
    code, item = inpainting(tmp_path, 0)
    assert torch.equal(theirs.operator(code, item)[0, 2], item.array("mask")[0])
    code, item = inpainting(tmp_path, 0.001)
    with pytest.raises(ValueError, match="differ by"):
        theirs.operator(code, item)


def test_the_blur_is_that_of_the_operator_file() -> None:
    blur = theirs.Blur()
    x, k = torch.rand(1, 3, 128, 128) * 2 - 1, torch.randn(1, 4, 1, 1)
    want = bkse.Operator(blur.wizard)(x, k)
    got = (blur.adaptKernel((x + 1) / 2, kernel=k) * 2 - 1).clamp(-1, 1)
    assert float((got - want).abs().max()) < 1e-6
    assert float((want - x).abs().max()) > 0.1


def test_row_compares_clipped_images() -> None:
    truth = torch.zeros(1, 3, 2, 2)
    state = torch.full((1, 3, 2, 2), 0.2)
    assert compare.psnr(state, truth) == pytest.approx(20, abs=1e-4)
    state[0, 0, 0, 0] = 7
    picture = compare.pixels(state)
    assert picture.shape == (2, 2, 3) and picture[0, 0, 0] == 255 and picture[1, 1, 0] == 153
    picture[0, 0, 1] -= 3
    r = compare.row("hdr", "coffee", state, truth, 10.25, picture)
    assert (r.most, r.mean) == (3, 0.25)
    assert r.theirs == pytest.approx(-10 * math.log10((11 * 0.01 + 0.25) / 12), abs=1e-5)
    assert r.difference() == pytest.approx(10.25 - r.theirs)


def test_summary_needs_every_row_below_the_limit() -> None:
    def row(task: str, ours: float) -> compare.Row:
        return compare.Row(task, "coffee", 20.0, ours, 0.0, 0)

    assert compare.summary([row("hdr", 20.04), row("inpaint_box", 19.97)], 2) == ("tasks=2 max_db=0.04", True)
    assert compare.summary([row("hdr", 20.01)], 2) == ("tasks=1 max_db=0.01", False)
    assert compare.summary([row("hdr", 19.94)], 1) == ("tasks=1 max_db=0.06", False)
    assert compare.summary([row("hdr", math.nan), row("hdr", 20.0)], 2) == ("tasks=1 max_db=nan", False)
    assert compare.summary([], 0) == ("tasks=0 max_db=nan", False)


def test_bench_reads_the_table_of_the_program() -> None:
    printed = """task               batch   network ms  campaign ms   share         spread
hdr                    1        90.00       120.00   0.750  0.750..0.750
hdr                    4       320.00       400.00   0.800  0.800..0.800
share_light=0.80 ms_per_step=120.0
"""
    assert bench.campaigns(printed, "hdr") == {1: 0.12, 4: 0.4}
    with pytest.raises(ValueError, match="no row of inpaint_box"):
        bench.campaigns(printed, "inpaint_box")


def test_bench_table_has_hours_of_a_thousand_images() -> None:
    times = {"hdr": bench.Times([0.36, 9.0, 0.3], {1: [0.12, 0.18, 0.2], 4: [0.36, 0.4, 0.3]})}
    assert bench.table(times, 3).splitlines()[1].split() == "hdr 0.360 0.180 0.090 360 180 90 100.0 50.0 25.0".split()
