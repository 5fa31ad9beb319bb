import threading
import time

import numpy as np
import pytest
from PIL import Image

import ddiff

from conftest import long


def error(x, y):
    return float(np.sqrt(np.mean((np.asarray(x) - y) ** 2)))


def test_restore(clean, noisy):
    r = ddiff.restore(noisy, task="denoise", sigma=0.1)
    assert r.image.shape == clean.shape and r.image.dtype == np.float32 and 0 <= r.image.min() and r.image.max() <= 1
    assert error(r.image, clean) < 0.6 * error(noisy, clean)
    assert r.method == "ddiff" and "measured" in r.choice and r.sigma == 0.1
    assert len(r.curves["timestep"]) == r.record["steps"] == len(r.curves["data_norm"])
    assert np.abs(np.asarray(r.pillow()) / 255 - r.image).max() < 1 / 255  # the PNG file is the same picture


def test_parameters(session, clean):
    small = clean.reshape(16, 4, 16, 4, 3).mean((1, 3))
    r = session.restore(small, "super_resolution", factor=4, sigma=0.02)
    assert r.image.shape == (64, 64, 3) and error(r.image, clean) < error(np.kron(small, np.ones((4, 4, 1))), clean)


def test_mask(session, clean):
    mask = np.ones((64, 64), bool)
    mask[30:34] = False
    r = session.restore(np.where(mask[..., None], clean, 0), "inpaint", mask=mask, sigma=0.01)
    assert error(r.image[mask], clean[mask]) < 0.01 and error(r.image[~mask], clean[~mask]) < 0.1


def test_numpy_settings(session, clean):
    """Settings may be numbers of NumPy, and a mask of zeros and ones has any type."""
    mask = np.ones((64, 64), "u1")
    mask[30:34] = 0
    same = {"task": "inpaint", "method": "ddiff"}
    want = session.restore(clean, mask=mask > 0, sigma=0.25, steps=4, seed=3, range=(0, 1), states=2, solver={"lambda": 8}, **same)
    settings = {
        "sigma": np.float32(0.25), "steps": np.int64(4), "seed": np.arange(4)[3], "range": np.array([0, 1]), "states": np.array([0, 2, 4]),
        "solver": {"lambda": np.float32(8)},
    }  # fmt: skip
    for kind in "u1", "u2", "i8", "f8":
        r = session.restore(clean, mask=mask.astype(kind), **settings, **same)
        np.testing.assert_array_equal(r.image, want.image)
        assert list(r.states) == list(want.states)


def test_kinds_of_arrays(session, noisy, tmp_path):
    """The same picture gives the same result, whatever its array is."""
    byte = (255 * np.clip(noisy, 0, 1)).round().astype("u1")
    Image.fromarray(byte).save(tmp_path / "a.png")
    wide = np.zeros((64, 64, 6), "f8")
    wide[..., ::2] = byte / 255
    results = [session.restore(y, "denoise", sigma=0.1) for y in [byte, Image.fromarray(byte), wide[..., ::2], byte.astype("u2") * 257, tmp_path / "a.png"]]
    for r in results[1:]:
        np.testing.assert_allclose(r.image, results[0].image, atol=2e-4)
    grey = session.restore(noisy[..., 0], "denoise", sigma=0.1)
    assert grey.image.shape == (64, 64, 3) and error(grey.image[..., 0], grey.image[..., 1]) < 1e-4


def test_pillow_images(session, noisy, tmp_path):
    """A Pillow image gives the result of its file: with transparency, 16 bits or one."""
    byte = (255 * np.clip(noisy, 0, 1)).round().astype("u1")
    clear = np.dstack([byte, np.where(np.arange(64) < 32, 0, 255).astype("u1") * np.ones((64, 1), "u1")])
    wide = byte[..., 0].astype("u2") * 257
    palette = Image.fromarray(byte).convert("P")
    palette.info["transparency"] = int(np.asarray(palette)[0, 0])
    for picture in Image.fromarray(clear), Image.fromarray(clear).convert("LA"), palette, Image.fromarray(wide), Image.fromarray(byte).convert("L"):
        picture.save(tmp_path / "a.png", **picture.info)
        want = session.restore(tmp_path / "a.png", "denoise", sigma=0.1, method="dpir", steps=2).image
        np.testing.assert_allclose(session.restore(picture, "denoise", sigma=0.1, method="dpir", steps=2).image, want, atol=2e-4)
    big = Image.frombytes("I;16B", (64, 64), wide.astype(">u2").tobytes())
    np.testing.assert_array_equal(session.restore(big, "denoise", sigma=0.1).image, session.restore(wide, "denoise", sigma=0.1).image)
    with pytest.raises(ddiff.RestoreError, match="type int32"):
        session.restore(Image.fromarray(wide.astype("i4")), "denoise", sigma=0.1)


def test_range_of_integers(session, noisy):
    """range has the values of black and white in the array, also of integers."""
    want = session.restore(np.round(4095 * np.clip(noisy, 0, 1)) / 4095, "denoise", sigma=0.1).image
    twelve = np.round(4095 * np.clip(noisy, 0, 1)).astype("u2")
    np.testing.assert_allclose(session.restore(twelve, "denoise", sigma=0.1, range=(0, 4095)).image, want, atol=2e-4)
    with pytest.raises(ddiff.RestoreError, match="two numbers"):
        session.restore(twelve, "denoise", sigma=0.1, range=(0, 4095, 1))
    byte = (255 * np.clip(noisy, 0, 1)).round().astype("u1")
    np.testing.assert_allclose(session.restore(byte, "denoise", sigma=0.1, range=(0, 255)).image, session.restore(byte, "denoise", sigma=0.1).image, atol=2e-4)


def test_batch(session, noisy):
    batch = session.restore([noisy + i / 1000 for i in range(16)], "denoise", sigma=0.1, method="dpir", steps=2)
    assert len(batch) == 16 and {r.record["batch"] for r in batch} == {16}
    np.testing.assert_allclose(session.restore(noisy + 3 / 1000, "denoise", sigma=0.1, method="dpir", steps=2).image, batch[3].image, atol=1e-4)
    assert session.restore([], "denoise") == []


def test_batch_with_a_wrong_picture(session, noisy):
    with pytest.raises(ddiff.RestoreError, match="picture 1: its values lie between") as e:
        session.restore([noisy, 255 * noisy, noisy], "denoise", sigma=0.1)
    assert "range=(LOW, HIGH)" in str(e.value) and [r is None for r in e.value.results] == [False, True, False]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"y": np.full((64, 64, 3), np.nan)}, "NaN at"),
        ({"y": np.zeros((3, 64, 64))}, r"shape \(height, width, 3\)"),
        ({"y": np.zeros((0, 64, 3))}, "empty"),
        ({"y": np.zeros((64, 64, 3), int)}, "type int64"),
        ({"y": "missing.png"}, "no such file"),
        ({"task": "sharpen"}, "unknown task"),
        ({"sigma": 3}, "sigma: 3 is out of range"),
        ({"factor": 4}, "factor"),
        ({"method": "magic"}, "unknown method"),
        ({"task": "inpaint"}, "give mask="),
        ({"task": "gaussian_deblur"}, "std=N"),
        ({"solver": {"speed": 1}}, "unknown parameter"),
    ],
)
def test_refused(session, noisy, change, message):
    with pytest.raises(ddiff.RestoreError, match=message):
        session.restore(**{"y": noisy, "task": "denoise", **change})
    assert session.restore(noisy, "denoise", sigma=0.1).image.shape == noisy.shape  # the session goes on


def test_progress_and_interrupt(session, noisy):
    steps = []
    session.restore(noisy, "denoise", sigma=0.1, steps=4, method="dpir", progress=lambda step, of: steps.append((step, of)))
    assert steps[-1] == (4, 4)

    def interrupt(step, of):
        if step == 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        session.restore(noisy, "denoise", sigma=0.1, steps=500, method="dpir", progress=interrupt)
    assert session.restore(noisy, "denoise", sigma=0.1).image.shape == noisy.shape


def test_signal(tmp_path):
    """SIGINT to Python stops the solver, neither Python nor the program."""
    import signal
    import subprocess
    import sys

    code = """
import ddiff, numpy as np, signal
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell starts background processes with the signal ignored
y = np.full((64, 64, 3), 0.5); y[20:40] = 0.1
with ddiff.Session(device="cpu", check=False) as s:
    try:
        s.restore(y, "denoise", sigma=0.1, steps=500, method="dpir", progress=lambda a, b: print(a, flush=True))
        print("not interrupted")
    except KeyboardInterrupt:
        print("stopped", s.restore(y, "denoise", sigma=0.1, steps=2, method="dpir").image.shape)
"""
    p = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    assert p.stdout.readline()  # of the first step
    p.send_signal(signal.SIGINT)
    rest = p.stdout.read()
    assert p.wait() == 0 and "stopped (64, 64, 3)" in rest


def test_killed(noisy):
    s = ddiff.Session(device="cpu")

    def kill(step, of):
        s._process.kill()

    with pytest.raises(ddiff.ProcessError, match="signal 9"):
        s.restore(noisy, "denoise", sigma=0.1, steps=500, method="dpir", progress=kill)
    with pytest.raises(ddiff.ProcessError):
        s.restore(noisy, "denoise", sigma=0.1)
    s.close()


def test_cannot_start():
    with pytest.raises(ddiff.ProcessError, match=r"exit code 7: .*missing\.onnx"):
        ddiff.Session(prior="missing.onnx")


def test_threads(session, noisy):
    found = {}

    def one(i):
        found[i] = session.restore(noisy + i / 100, "denoise", sigma=0.1).image

    threads = [threading.Thread(target=one, args=(i,)) for i in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    for i in range(4):
        np.testing.assert_array_equal(found[i], session.restore(noisy + i / 100, "denoise", sigma=0.1).image)


@long
def test_large(session):
    """Arrays far above the capacity of a pipe pass both ways."""
    y = np.tile(np.linspace(0.2, 0.8, 512, dtype="f4")[:, None, None], (1, 256, 3))
    with pytest.raises(ddiff.RestoreError, match="unknown method"):
        session.restore([y] * 4, "denoise", method="magic")
    r = session.restore(y, "denoise", sigma=0.1, steps=2, method="dpir")
    assert r.image.shape == y.shape


def test_second_call(session, noisy, capsys):
    """Prints what a call costs beside the solver."""
    session.restore(noisy, "denoise", sigma=0.1)
    beside = []
    for i in range(20):
        begin = time.perf_counter()
        r = session.restore(noisy + i / 1000, "denoise", sigma=0.1)
        beside.append(1000 * (time.perf_counter() - begin - r.seconds))
    with capsys.disabled():
        print(f"\nbeside_solver_ms={np.median(beside):.1f} least={min(beside):.1f} solver_ms={1000 * r.seconds:.1f}")


def test_states(session, noisy):
    kept = session.restore(noisy, "denoise", sigma=0.1, method="dpir", steps=5, states=[0, 2, 5, 9])
    assert list(kept.states) == [0, 2, 5]
    plain = session.restore(noisy, "denoise", sigma=0.1, method="dpir", steps=5)
    assert plain.states == {}
    np.testing.assert_array_equal(kept.image, plain.image)
    np.testing.assert_array_equal(np.clip(kept.states[5], 0, 1), plain.image)
    assert error(kept.states[0], noisy) > error(kept.states[2], noisy) > 0
    both = session.restore([noisy, noisy + 0.01], "denoise", sigma=0.1, method="dpir", steps=5, states=2)
    assert [list(r.states) for r in both] == [[0, 2, 4]] * 2 and error(both[0].states[4], both[1].states[4]) > 0.001
    with pytest.raises(ddiff.RestoreError, match="at most 128"):
        session.restore(noisy, "denoise", sigma=0.1, steps=500, states=1)


def test_schedule(session, noisy):
    same = {"method": "dpir", "steps": 5, "sigma": 0.1}
    one, several = (session.restore(noisy, "denoise", solver={"lambda": v}, **same) for v in (2, [8, 4, 1]))
    assert several.record["item"]["solver"]["lambda"] == "8 4 1"
    ratio = several.curves["rho"] / one.curves["rho"]
    np.testing.assert_allclose(ratio, [4, 3, 2, 1.25, 0.5], rtol=1e-5)
    with pytest.raises(ddiff.RestoreError, match="outside"):
        session.restore(noisy, "denoise", solver={"lambda": [8, -1]}, **same)
