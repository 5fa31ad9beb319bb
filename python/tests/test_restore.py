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


def test_range_of_pillow_images(session, noisy):
    """range has the values of black and white of a Pillow image as it is seen: a palette's colours, over white."""
    byte = (255 * np.clip(noisy, 0, 1)).round().astype("u1")
    palette, clear = Image.fromarray(byte).convert("P"), Image.fromarray(np.dstack([byte, np.full((64, 64), 255, "u1")]))
    clear.putpixel((3, 5), (0, 0, 0, 0))
    key = palette.copy()
    key.info["transparency"] = key.getpixel((9, 9))
    same = {"task": "denoise", "sigma": 0.1, "method": "dpir", "steps": 2}
    for picture in palette, key, clear, clear.convert("LA"), Image.fromarray(byte).convert("L"), Image.fromarray(byte).convert("CMYK"):
        got = session.restore(picture, range=(0, 255), **same).image
        np.testing.assert_allclose(got, session.restore(picture, **same).image, atol=2e-4, err_msg=picture.mode)


def test_batch(session, noisy):
    batch = session.restore([noisy + i / 1000 for i in range(16)], "denoise", sigma=0.1, method="dpir", steps=2)
    assert len(batch) == 16 and {r.record["batch"] for r in batch} == {16}
    np.testing.assert_allclose(session.restore(noisy + 3 / 1000, "denoise", sigma=0.1, method="dpir", steps=2).image, batch[3].image, atol=1e-4)
    assert session.restore([], "denoise") == []


def test_batch_with_a_wrong_picture(session, noisy):
    with pytest.raises(ddiff.RestoreError, match="picture 1: its values lie between") as e:
        session.restore([noisy, 255 * noisy, noisy], "denoise", sigma=0.1)
    assert "range=(LOW, HIGH)" in str(e.value) and [r is None for r in e.value.results] == [False, True, False]


def upright(side=64):
    """A JPEG file that lies, and has a profile, and its pixels as they are to be seen."""
    from PIL import ImageCms

    seen = Image.fromarray((255 * np.linspace(0, 1, side * 48 * 3).reshape(side, 48, 3)).astype("u1"))
    exif = Image.Exif()
    exif[0x0112], exif[0x010F] = 6, "Testmaker"  # turned by a quarter to the right, of this camera
    return seen, {"exif": exif, "icc_profile": ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes()}


@pytest.mark.parametrize("kind", ["jpg", "png", "tif"])
def test_pillow_orientation_and_profile(session, tmp_path, kind):
    """A Pillow image gives the picture of its file: upright, with profile and, in the saved file, the camera."""
    seen, beside = upright()
    seen.transpose(Image.Transpose.ROTATE_90).save(tmp_path / f"a.{kind}", **beside)
    same = {"task": "denoise", "sigma": 0.1, "method": "dpir", "steps": 2}
    want = session.restore(tmp_path / f"a.{kind}", **same)
    got = session.restore(Image.open(tmp_path / f"a.{kind}"), **same)
    assert got.image.shape == want.image.shape == (64, 48, 3)
    close = 2e-3 if kind == "jpg" else 0  # another decoder, and in a file that is lossy the level of its rounding
    np.testing.assert_allclose(got.image, want.image, atol=close)
    got.save(tmp_path / "restored.png")
    restored = Image.open(tmp_path / "restored.png")
    assert restored.info["icc_profile"] == beside["icc_profile"]
    assert kind == "tif" or restored.getexif()[0x010F] == "Testmaker" and restored.getexif().get(0x0112, 1) == 1
    copy = Image.open(tmp_path / f"a.{kind}")
    turned = session.restore(copy.rotate(0, expand=True), **same)  # a copy keeps what the file said
    np.testing.assert_allclose(turned.image, want.image, atol=close)


def test_pillow_inks(session, tmp_path):
    seen, _ = upright()
    seen.convert("CMYK").save(tmp_path / "a.tif")
    same = {"task": "denoise", "sigma": 0.1, "method": "dpir", "steps": 2}
    want = session.restore(tmp_path / "a.tif", **same).image
    np.testing.assert_array_equal(session.restore(Image.open(tmp_path / "a.tif"), **same).image, want)


def test_masks(session, clean, tmp_path):
    """A mask is the same as an array, a Pillow image of any mode, and a file."""
    mask = np.ones((64, 64), bool)
    mask[30:34] = False
    y = np.where(mask[..., None], clean, 0)
    same = {"task": "inpaint", "method": "ddiff", "steps": 3, "sigma": 0.01}
    want = session.restore(y, mask=mask, **same).image
    grey = Image.fromarray(np.where(mask, 255, 0).astype("u1"))
    grey.save(tmp_path / "mask.png")
    for other in grey, grey.convert("1"), grey.convert("RGB"), Image.fromarray(mask.astype("u1")), np.asarray(grey), 255 * mask.astype("i8"), tmp_path / "mask.png":
        np.testing.assert_array_equal(session.restore(y, mask=other, **same).image, want)
    np.testing.assert_array_equal(session.restore(y, mask=~mask, mask_shows="lost", **same).image, want)
    with pytest.raises(ddiff.RestoreError, match="is it inverted.*give mask_shows=lost"):
        session.restore(y, mask=~mask, **same)
    with pytest.raises(ddiff.RestoreError, match="mask"):
        session.restore(y, mask=mask * 0.5, **same)


def test_kernel_form(session, clean):
    """A kernel is the image of a point of light, or that of a correlation."""
    k = np.zeros((9, 9))
    k[0, :5], k[:5, 4] = 1, 2
    k /= k.sum()
    same = {"task": "motion_deblur", "method": "ddiff", "steps": 3, "sigma": 0.05}
    want = session.restore(clean, kernel=k, **same).image
    np.testing.assert_array_equal(session.restore(clean, kernel=k[::-1, ::-1], kernel_form="correlation", **same).image, want)
    with pytest.raises(ddiff.RestoreError, match="kernel_form"):
        session.restore(clean, kernel=k, kernel_form="blur", **same)


def test_mask_of_each_picture(session, clean):
    masks = np.ones((2, 64, 64), bool)
    masks[0, 30:34] = masks[1, :, 10:13] = False
    ys = [np.where(m[..., None], clean, 0) for m in masks]
    same = {"task": "inpaint", "method": "ddiff", "steps": 3, "sigma": 0.01}
    alone = [session.restore(y, mask=m, **same).image for y, m in zip(ys, masks)]
    for each in masks, list(masks):
        together = session.restore(ys, mask=each, **same)
        assert {r.record["batch"] for r in together} == {2}
        for r, want in zip(together, alone):
            np.testing.assert_allclose(r.image, want, atol=1e-4)
    with pytest.raises(ddiff.RestoreError, match="2 masks for 3 pictures"):
        session.restore([*ys, clean], mask=masks, **same)


def test_array_file_needs_a_range(session, noisy, tmp_path):
    """The same array is the same picture, from memory or from a file, or the file is refused: ddiff restore reads it with black at -1."""
    np.save(tmp_path / "a.npy", noisy.transpose(2, 0, 1))
    same = {"task": "denoise", "sigma": 0.1, "method": "dpir", "steps": 2}
    with pytest.raises(ddiff.RestoreError, match=r"a\.npy: .*give range=\(LOW, HIGH\)"):
        session.restore(tmp_path / "a.npy", **same)
    r = session.restore(tmp_path / "a.npy", range=(0, 1), **same)
    np.testing.assert_allclose(r.image, session.restore(noisy, **same).image, atol=1e-4)


@pytest.mark.parametrize(("name", "begin"), [("a.jpg", b"\xff\xd8\xff"), ("a.JPEG", b"\xff\xd8\xff"), ("a.tif", b"II*\0"), ("a.webp", b"RIFF"), ("a.png", b"\x89PNG"), ("a", b"\x89PNG")])
def test_save(session, noisy, tmp_path, name, begin):
    """A file has the format of its name, and the passport."""
    r = session.restore(noisy, "denoise", sigma=0.1, method="dpir", steps=2)
    r.save(tmp_path / name)
    data = (tmp_path / name).read_bytes()
    assert data.startswith(begin) and b'"schema"' in data
    assert np.abs(np.asarray(Image.open(tmp_path / name).convert("RGB"), "f4") / 255 - r.image).mean() < 0.02
    r.save(tmp_path / name)  # replaces it
    assert [f.name for f in tmp_path.iterdir()] == [name]


def test_save_refused(session, noisy, tmp_path):
    r = session.restore(noisy, "denoise", sigma=0.1, method="dpir", steps=2)
    (tmp_path / "a.gif").write_text("old")
    with pytest.raises(ValueError, match=r'^save .*a\.gif: "gif" is not written; the formats are png, jpeg, tiff and webp$'):
        r.save(tmp_path / "a.gif")
    with pytest.raises(ValueError, match="101 is not from 1 to 100"):
        r.save(tmp_path / "a.jpg", quality=101)
    with pytest.raises(ValueError, match=r"^save f\.pdf: a figure is an SVG file"):
        ddiff.Figure("<svg/>").save("f.pdf")
    ddiff.Figure("<svg/>").save(tmp_path / "f.svg")
    assert (tmp_path / "f.svg").read_text() == "<svg/>" and (tmp_path / "a.gif").read_text() == "old"


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
