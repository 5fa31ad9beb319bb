"""Training of the prior: data, loop, resuming and export, on tiny configurations."""

from __future__ import annotations

import re
import struct
from pathlib import Path

import numpy as np
import onnx
import onnx_interpreter
import pytest
import torch
from PIL import Image

from ddiff_torch.onnx_prior import load
from prior_training import pages, photographs
from prior_training.export import card, export
from prior_training.leaves import dead_leaves, noise_field
from prior_training.loop import Batches, Config, Trainer, train
from prior_training.muon import Muon, orthogonal
from prior_training.pool import Pool, build, recolour

TINY = Config(widths=(8, 8, 16), depth=1, middle=1, embedding=16, frequencies=4, batch=3, side=16, late_side=24,
              late_batch=1, share_every=2)  # fmt: skip


@pytest.fixture(scope="module")
def pool() -> Pool:
    leaves = np.stack([dead_leaves(np.random.default_rng(i), 48) for i in range(3)])
    photo = np.random.default_rng(9).integers(0, 256, (40, 52, 3), dtype=np.uint8)
    return Pool([[photo, photo[::2, ::2].repeat(2, axis=0)]], leaves, 0.5)


def test_leaves_are_seeded_pictures() -> None:
    first, again, other = (dead_leaves(np.random.default_rng([7, i]), 48) for i in (0, 0, 1))
    assert first.shape == (48, 48, 3) and first.dtype == np.uint8
    assert np.array_equal(first, again) and not np.array_equal(first, other)
    assert first.std() > 5  # something is drawn


def test_leaves_have_a_falling_spectrum() -> None:
    """Power falls with frequency as in photographs, about f^-2: neither noise nor blur."""
    power = np.zeros(33)
    for i in range(12):
        picture = dead_leaves(np.random.default_rng([3, i]), 64).mean(axis=2)
        spectrum = np.abs(np.fft.fft2((picture - picture.mean()) * np.outer(np.hanning(64), np.hanning(64)))) ** 2
        radius = np.hypot(*np.meshgrid(np.fft.fftfreq(64) * 64, np.fft.fftfreq(64) * 64)).round().astype(int)
        power += np.array([spectrum[radius == r].mean() for r in range(33)])
    slope = np.polyfit(np.log(np.arange(3, 28)), np.log(power[3:28]), 1)[0]
    assert -3.5 < slope < -1.2


def test_noise_field_has_the_requested_slope() -> None:
    field = noise_field(np.random.default_rng(1), 128, 1.5)
    assert abs(field.std() - 1) < 1e-3
    amplitude = np.abs(np.fft.fft2(field))[0, 4:60]
    assert np.polyfit(np.log(np.arange(4, 60)), np.log(amplitude), 1)[0] == pytest.approx(-1.5, abs=0.05)


def test_crops_are_seeded_and_in_range(pool: Pool) -> None:
    first, again, other = (pool.batch(np.random.default_rng(s), 12, 16) for s in (1, 1, 2))
    assert first.shape == (12, 3, 16, 16) and first.dtype == np.float32
    assert first.min() >= -1 and first.max() <= 1
    assert np.array_equal(first, again) and not np.array_equal(first, other)


def test_recolouring_stays_in_range() -> None:
    crop = np.random.default_rng(2).random((8, 8, 3)).astype(np.float32)
    for seed in range(50):
        out = recolour(np.random.default_rng(seed), crop)
        assert out.min() >= 0 and out.max() <= 1


def test_build_caches_the_procedural_pictures(tmp_path: Path) -> None:
    first = build(None, 2, 5, 0.5, tmp_path / "leaves.npy")
    again = build(None, 2, 5, 0.5, tmp_path / "leaves.npy")
    assert np.array_equal(first.leaves, again.leaves) and first.photo_share == 0
    with pytest.raises(ValueError, match="holds 2 pictures, not 3"):
        build(None, 3, 5, 0.5, tmp_path / "leaves.npy")


def test_licences_permit_publication() -> None:
    """Every licence permits publication of the weights, and no test photograph is used."""
    bundled = {p.stem for p in (Path(__file__).parents[2] / "examples/images").glob("*.png")}
    assert len(bundled) == 6
    for p in photographs.PHOTOGRAPHS + photographs.MORE:
        assert re.fullmatch(r"public domain|CC0-1\.0|CC-BY-\d\.\d", p.licence), p
        assert p.author and not any(name in p.name.lower() for name in bundled), p


def test_photographs_are_never_enlarged() -> None:
    for size in ((300, 200), (1024, 768), (2000, 3000)):
        for version in photographs.versions(Image.new("RGB", size)):
            assert version.shape[0] <= 0.8 * size[1] + 1 and min(version.shape[:2]) >= 128


def test_resource_archives_are_read(tmp_path: Path) -> None:
    def name(text: str) -> bytes:
        return struct.pack(">HI", len(text), 0) + text.encode("utf-16-be")

    names = name("a") + name("b.webp")
    contents = struct.pack(">I", 3) + b"xyz"
    tree = struct.pack(">IHIIq", 0, 2, 1, 1, 0) + struct.pack(">IHIIq", 0, 2, 1, 2, 0)
    tree += struct.pack(">IHHHIq", len(name("a")), 0, 0, 0, 0, 0)
    at = 24
    header = b"qres" + struct.pack(">5I", 3, at, at + len(tree), at + len(tree) + len(contents), 0)
    data = header + tree + contents + names
    assert photographs._resource(data, "b.webp") == b"xyz"
    with pytest.raises(ValueError, match="no c.webp"):
        photographs._resource(data, "c.webp")
    with pytest.raises(ValueError, match="fetch the packages"):
        photographs.read(photographs.PHOTOGRAPHS[0], tmp_path)


def test_pages_are_seeded_text() -> None:
    files = pages.fonts()
    first, again, other = (pages.page(np.random.default_rng([7, i]), files, 96) for i in (0, 0, 1))
    assert first.shape == (96, 96, 3) and first.dtype == np.uint8
    assert np.array_equal(first, again) and not np.array_equal(first, other)
    assert first.std() > 20  # ink and paper


def test_pages_need_fonts(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="install packages such as fonts-dejavu-core"):
        pages.fonts(tmp_path)


def test_crops_of_pages_and_dark_crops(pool: Pool) -> None:
    white = np.full((2, 48, 48, 3), 255, dtype=np.uint8)
    bright = Pool(pool.photos, pool.leaves, 0.5, white, page_share=1).batch(np.random.default_rng(1), 8, 16)
    assert (bright.max(axis=(1, 2, 3)) == 1).any() and bright.min() > -0.5
    dark = Pool(pool.photos, pool.leaves, 0.5, white, page_share=1, dark=1).batch(np.random.default_rng(1), 8, 16)
    assert dark.max() < 0.21 and dark.min() >= -1


def test_times_cover_all_levels(pool: Pool) -> None:
    batches = Batches(TINY, pool, 0, 3, 16)
    t = batches.times(np.random.default_rng(0), 4000)
    assert t.min() == 0 and t.max() == 999
    low = (batches.levels[t] > TINY.low[0]) & (batches.levels[t] < TINY.low[1])
    assert 0.6 < low.mean() < 0.85  # the share at low noise and some of the uniform rest


def test_workers_draw_the_same_batches(pool: Pool) -> None:
    batches = Batches(TINY, pool, 0, 3, 16)
    for _, alone, ahead in zip(range(3), batches.start(5, 0), batches.start(5, 2)):
        assert torch.equal(alone[0], ahead[0]) and torch.equal(alone[1], ahead[1]) and alone[2] == ahead[2]


def test_updates_are_orthogonal() -> None:
    generator = torch.Generator().manual_seed(3)
    for shape in ((12, 40), (40, 12), (9, 9)):
        values = torch.linalg.svdvals(orthogonal(torch.randn(2, *shape, generator=generator)))
        assert 0.6 < values.min() and values.max() < 1.3, shape
    # Singular vectors are preserved: a matrix with equal singular values is only scaled.
    turn = torch.linalg.qr(torch.randn(16, 16, generator=generator)).Q
    scaled = orthogonal(turn[None] * 3)[0]
    assert (turn * 3).flatten() @ scaled.flatten() > 0.99 * 3 * 4 * scaled.norm()


def test_muon_descends_with_updates_of_one_size() -> None:
    """A least-squares problem with curvatures that differ by a factor of 1000."""
    generator = torch.Generator().manual_seed(4)
    scale = torch.logspace(0, 1.5, 8)
    wanted = torch.randn(8, 2, 2, 2, generator=generator)
    kernel = torch.zeros(8, 2, 2, 2, requires_grad=True)
    muon = Muon([kernel], lr=0.05)
    losses = []
    for step in range(400):
        muon.param_groups[0]["lr"] = 0.05 * (1 - step / 400)
        loss = ((kernel - wanted) * scale[:, None, None, None]).square().mean()
        muon.zero_grad()
        loss.backward()
        before = kernel.detach().clone()
        muon.step()
        losses.append(float(loss.detach()))
        if step == 0:
            moved = (kernel.detach() - before).square().mean().sqrt()
            assert 0.6 * 0.2 * 0.05 < moved < 1.3 * 0.2 * 0.05  # independent of the gradient's size
    assert losses[-1] < 1e-2 * losses[0]


def test_training_exports_the_trained_weights(pool: Pool, tmp_path: Path) -> None:
    trainer = Trainer(TINY, pool)
    before = {k: v.clone() for k, v in trainer.net.state_dict().items()}
    train(trainer, tmp_path, seconds=60, iterations=3)
    assert trainer.iteration == 3
    for k, v in trainer.net.state_dict().items():
        constant = k == "frequencies" or k.startswith("wiener.")
        assert constant == torch.equal(before[k], v), f"{k} was {'changed' if constant else 'not trained'}"

    network = trainer.trained()
    size = export(network, tmp_path / "p.onnx", card(0.1, "a CPU", 3, 19))
    assert size == (tmp_path / "p.onnx").stat().st_size
    model = onnx.load(str(tmp_path / "p.onnx"))
    assert {p.key for p in model.metadata_props} == set(card(0.1, "a CPU", 3, 19))
    norms = sum(n.op_type == "InstanceNormalization" for n in model.graph.node)
    assert norms == 2 * (3 * (2 * TINY.depth + 1) + TINY.middle) + 1

    for p in network.parameters():
        if p.ndim >= 2:
            p.copy_(p.half().float())
    x = torch.randn(2, 3, 24, 32, generator=torch.Generator().manual_seed(1))
    for t in (torch.tensor([0, 999]), torch.tensor([37, 500])):
        (out,) = onnx_interpreter.run(tmp_path / "p.onnx", {"x": x, "t": t}).values()
        torch.testing.assert_close(out, network(x, t), rtol=0, atol=1e-4)
        torch.testing.assert_close(load(tmp_path / "p.onnx")(x, t), network(x, t), rtol=0, atol=1e-4)


def test_the_default_fits_the_limit() -> None:
    """The default configuration's float16 weights and graph are below 12 MB."""
    assert 2 * sum(p.numel() for p in Config().network().parameters()) + 300_000 < 12_000_000


def test_export_refuses_weights_that_are_not_finite(tmp_path: Path) -> None:
    network = TINY.network()
    network.out.bias.data[0] = torch.nan
    with pytest.raises(ValueError, match="out.bias is not finite"):
        export(network, tmp_path / "p.onnx", card(0, "a CPU", 0, 0))
    assert not (tmp_path / "p.onnx").exists()


class _Interrupted(Exception):
    pass


def test_resuming_gives_the_same_state(pool: Pool, tmp_path: Path) -> None:
    straight = Trainer(TINY, pool)
    train(straight, tmp_path / "a", seconds=60, iterations=5)

    calls = iter(range(100))

    def clock() -> float:
        """One second per call; the fourth iteration is interrupted."""
        now = next(calls)
        if now == 4:
            raise _Interrupted
        return float(now)

    with pytest.raises(_Interrupted):
        train(Trainer(TINY, pool), tmp_path / "b", seconds=60, iterations=5, every=1, clock=clock)
    resumed = Trainer(TINY, pool)
    train(resumed, tmp_path / "b", seconds=60, iterations=5)

    assert resumed.iteration == straight.iteration == 5
    for name, value in straight.net.state_dict().items():
        assert torch.equal(value, resumed.net.state_dict()[name]), name


def test_another_configuration_is_refused(pool: Pool, tmp_path: Path) -> None:
    trainer = Trainer(TINY, pool)
    trainer.save(tmp_path / "checkpoint.pt")
    other = Trainer(Config(**{**TINY.__dict__, "seed": 2}), pool)
    with pytest.raises(ValueError, match="another configuration"):
        other.restore(tmp_path / "checkpoint.pt")
