"""Training of the prior: data, loop, resuming and export, on tiny configurations."""

from __future__ import annotations

import io
import os
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
from prior_training import packed, pages, photographs, pool as pictures
from prior_training.held import SIGMAS, Held
from prior_training.export import card, export
from prior_training.leaves import dead_leaves, noise_field
from prior_training.loop import Config, Times, Trainer, train
from prior_training.muon import Muon, orthogonal
from prior_training.pool import Pool, recolour, recolouring, start

TINY = Config(widths=(8, 8, 16), depth=1, middle=1, embedding=16, frequencies=4, batch=3, side=16, late_side=24,
              late_batch=1, share_every=2)  # fmt: skip


@pytest.fixture(scope="module")
def pool() -> Pool:
    leaves = np.stack([dead_leaves(np.random.default_rng(i), 48) for i in range(3)])
    photo = np.random.default_rng(9).integers(0, 256, (40, 52, 3), dtype=np.uint8)
    return Pool([photo, photo[::2, ::2].repeat(2, axis=0)], leaves, 0.5)


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
    assert first.shape == (12, 3, 16, 16) and first.dtype == torch.float32 and first.is_contiguous()
    assert first.min() >= -1 and first.max() <= 1
    assert torch.equal(first, again) and not torch.equal(first, other)


def test_crops_are_turned_parts_of_the_pictures(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without recolouring every crop is a part of its picture, in each of the eight orientations of a square, and of pages in four."""
    monkeypatch.setattr(pictures, "recolour", lambda crops, _: crops)
    picture = np.random.default_rng(3).integers(0, 256, (9, 13, 3), dtype=np.uint8)
    other = np.zeros((4, 4, 3), np.uint8)
    parts = {}
    for y in range(9 - 4 + 1):
        for x in range(13 - 4 + 1):
            for turn in range(8):
                part = picture[y : y + 4, x : x + 4]
                part = np.rot90(part[:, ::-1] if turn > 3 else part, turn % 4)
                parts[part.tobytes()] = (y, x, turn)
    for pool, turns in ((Pool([picture], other[None], 1), 8), (Pool([], other[None], 0, picture[None], page_share=1), 4)):
        crops = pool.batch(np.random.default_rng(1), 800, 4)
        found = [parts[((c.permute(1, 2, 0) + 1) * 127.5).round().byte().numpy().tobytes()] for c in crops]
        assert {t for _, _, t in found} == set(range(turns))
        assert {(y, x) for y, x, _ in found} == {(y, x) for y in range(6) for x in range(10)}


def test_recolouring_stays_in_range() -> None:
    changes = recolouring(np.random.default_rng(2), 50)
    crops = torch.rand(50, 3, 8, 8, generator=torch.Generator().manual_seed(2))
    out = recolour(crops, torch.from_numpy(changes))
    assert out.min() >= 0 and out.max() <= 1 and out.isfinite().all()
    same = recolour(crops, torch.tensor([[1.0, 1, 1, 1, 1]]))
    torch.testing.assert_close(same, crops)


def test_procedural_pictures_are_drawn_once(tmp_path: Path) -> None:
    first = start([], 2, 5, 0.5, tmp_path / "leaves.npy")()
    again = start([], 2, 5, 0.5, tmp_path / "leaves.npy")()
    assert torch.equal(first.pixels, again.pixels) and first.photo_share == 0
    with pytest.raises(ValueError, match="holds 2 pictures, not 3"):
        start([], 3, 5, 0.5, tmp_path / "leaves.npy")


def _die() -> Image.Image:
    os._exit(1)


def test_a_dead_process_is_reported() -> None:
    with pytest.raises(ValueError, match="a process that draws the pictures died"):
        start([_die], 1, 5, 0.5)()


def _packages(folder: Path, *pictures: Image.Image) -> list[photographs.Photograph]:
    wanted = []
    for i, picture in enumerate(pictures):
        (folder / "package").mkdir(exist_ok=True)
        picture.save(folder / f"package/p{i}.png")
        wanted.append(photographs.Photograph("package", f"p{i}.png", "CC0-1.0", "nobody"))
    return wanted


def test_a_pack_returns_what_was_packed(tmp_path: Path) -> None:
    y, x = np.mgrid[:300, :400]
    picture = Image.fromarray(np.uint8(np.stack([x / 2, y / 2, (x + y) / 4], axis=2)))
    large = picture.resize((2000, 1500))
    (tmp_path / "held").mkdir()
    picture.save(tmp_path / "held/other.png")
    size = packed.write(tmp_path / "p.zip", tmp_path, _packages(tmp_path, picture, large), tmp_path / "held")
    assert size == (tmp_path / "p.zip").stat().st_size and not (tmp_path / "p.zip.tmp").exists()

    photos, held = packed.read(tmp_path / "p.zip", tmp_path / "fonts")
    assert [p().size for p in photos] == [(400, 300), (1000, 750)] and [p().size for p in held] == [(400, 300)]
    assert {p.name for p in pages.fonts(tmp_path / "fonts")} == {p.name for p in pages.fonts()}
    error = np.asarray(photos[0](), dtype=float) - np.asarray(picture)
    assert np.abs(error).mean() < 1.5
    for photo in photos:  # no crop has the pixels of the compression
        assert all(max(v.shape) <= 0.8 * max(photo().size) + 1 for v in photographs.versions(photo()))


def test_a_broken_pack_is_refused(tmp_path: Path) -> None:
    packed.write(tmp_path / "p.zip", tmp_path, _packages(tmp_path, Image.new("RGB", (200, 200))))
    (tmp_path / "half.zip").write_bytes((tmp_path / "p.zip").read_bytes()[:-100])
    with pytest.raises(ValueError, match="half.zip is not a whole pack"):
        packed.read(tmp_path / "half.zip", tmp_path / "fonts")
    packed.write(tmp_path / "none.zip", tmp_path, [])
    with pytest.raises(ValueError, match="none.zip has no photographs"):
        packed.read(tmp_path / "none.zip", tmp_path / "fonts")


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


def test_crops_of_pages_and_dark_crops() -> None:
    white = np.full((2, 48, 48, 3), 255, dtype=np.uint8)
    bright = Pool([], white, 0.5, white, page_share=1).batch(np.random.default_rng(1), 8, 16)
    assert (bright.amax(dim=(1, 2, 3)) == 1).any() and bright.min() > -0.5
    dark = Pool([], white, 0.5, white, page_share=1, dark=1).batch(np.random.default_rng(1), 8, 16)
    assert dark.max() < 0.21 and dark.min() >= -1


def test_times_cover_all_levels() -> None:
    times = Times(TINY)
    t = times.draw(np.random.default_rng(0), 4000)
    assert t.min() == 0 and t.max() == 999
    low = (times.levels[t] > TINY.low[0]) & (times.levels[t] < TINY.low[1])
    assert 0.6 < low.mean() < 0.85  # the share at low noise and some of the uniform rest


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
    trainer = Trainer(TINY)
    before = {k: v.clone() for k, v in trainer.net.state_dict().items()}
    train(trainer, pool, tmp_path, seconds=60, iterations=3)
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
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
    straight = Trainer(TINY)
    train(straight, pool, tmp_path / "a", seconds=60, iterations=5)

    calls = iter(range(100))

    def clock() -> float:
        """One second per call; the fourth iteration is interrupted."""
        now = next(calls)
        if now == 4:
            raise _Interrupted
        return float(now)

    with pytest.raises(_Interrupted):
        train(Trainer(TINY), pool, tmp_path / "b", seconds=60, iterations=5, every=1, clock=clock)
    resumed = Trainer(TINY)
    train(resumed, pool, tmp_path / "b", seconds=60, iterations=5)

    assert resumed.iteration == straight.iteration == 5
    for net in ("net", "average"):
        for name, value in getattr(straight, net).state_dict().items():
            assert torch.equal(value, getattr(resumed, net).state_dict()[name]), f"{net} {name}"
    for ours, theirs in zip(straight.optimisers, resumed.optimisers):
        for a, b in zip(ours.state_dict()["state"].values(), theirs.state_dict()["state"].values()):
            assert all(torch.equal(torch.as_tensor(a[k]), torch.as_tensor(b[k])) for k in a)


def test_an_end_while_writing_keeps_the_checkpoint_before(pool: Pool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    trainer = Trainer(TINY)
    trainer.save(tmp_path / "checkpoint.pt")
    trainer.step(pool, 0)
    whole = torch.save

    def half(state: object, file: io.BufferedWriter) -> None:
        whole(state, file)
        file.truncate(file.tell() // 2)
        raise _Interrupted

    monkeypatch.setattr(torch, "save", half)
    with pytest.raises(_Interrupted):
        trainer.save(tmp_path / "checkpoint.pt")
    resumed = Trainer(TINY)
    resumed.restore(tmp_path / "checkpoint.pt")
    assert resumed.iteration == 0


def test_time_of_earlier_calls_moves_the_end(pool: Pool, tmp_path: Path) -> None:
    """Two calls of three seconds, one iteration each second: the second goes on at the half of the schedule."""
    for whole in (3, 6):
        trainer = Trainer(TINY)
        train(trainer, pool, tmp_path, seconds=3, clock=map(float, range(100)).__next__)
        assert trainer.iteration == trainer.elapsed == whole
    with pytest.raises(ValueError, match="raise --seconds"):
        train(Trainer(TINY), pool, tmp_path / "other", seconds=0)


def test_the_average_follows_the_weights(pool: Pool) -> None:
    trainer = Trainer(TINY)
    start = {k: v.clone() for k, v in trainer.net.named_parameters()}
    first = trainer.step(pool, 0)
    decay = 2 / 11  # after one iteration
    for (name, ours), theirs in zip(trainer.average.named_parameters(), trainer.net.parameters()):
        torch.testing.assert_close(ours, decay * start[name] + (1 - decay) * theirs.detach())
    assert first[0] > 0 and not any(p.requires_grad for p in trainer.average.parameters())


def test_held_photographs_are_measured(pool: Pool) -> None:
    """The figure is that of the exported network, and the gain counts from the first look."""
    photo = Image.fromarray(np.random.default_rng(5).integers(0, 256, (200, 260, 3), dtype=np.uint8))
    trainer, said = Trainer(TINY), []
    held = Held([lambda: photo], "cpu", 3, 24)
    look = held.look(trainer, said.append)
    look()
    trainer.step(pool, 0)
    trainer.average.out.bias.fill_(0.3)
    look()
    assert said[0].endswith("mean_gain=+0.000") and "iteration=1" in said[1] and not said[1].endswith("mean_gain=+0.000")
    net = trainer.trained()
    ratio = net.wiener.noise / net.wiener.signal
    for sigma, found in zip(SIGMAS, held.psnr(net, half=False)):
        t = (ratio - 2 * sigma).abs().argmin()
        z = net(net.wiener.signal[t] * held.crops + net.wiener.noise[t] * held.noise, t.repeat(3)).clamp(-1, 1)
        assert found == pytest.approx(float((-10 * ((z - held.crops) / 2).square().mean((1, 2, 3)).log10()).mean()), abs=1e-3)


def test_a_network_that_does_not_compile_is_trained(pool: Pool, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture) -> None:
    def broken(*_: object, **__: object) -> None:
        raise RuntimeError("no compiler")

    monkeypatch.setattr(torch, "compile", broken, raising=False)
    trainer, other = Trainer(TINY), Trainer(TINY)
    trainer.compile()
    assert "not compiled, training is slower: RuntimeError: no compiler" in capsys.readouterr().out
    assert torch.equal(trainer.step(pool, 0)[0], other.step(pool, 0)[0])


def test_another_configuration_is_refused(tmp_path: Path) -> None:
    trainer = Trainer(TINY)
    trainer.save(tmp_path / "checkpoint.pt")
    other = Trainer(Config(**{**TINY.__dict__, "seed": 2}))
    with pytest.raises(ValueError, match="another configuration"):
        other.restore(tmp_path / "checkpoint.pt")
