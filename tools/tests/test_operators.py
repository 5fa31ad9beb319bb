"""The operators against their definitions, adjoints and gradients, in float64."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.ndimage
import torch
from PIL import Image

from ddiff_torch import operators
from ddiff_torch.operators import LINEAR, Measurement, adjoint, data_norm, measurement, norm_gradient
from ddiff_torch.random_inputs import box_mask, path_kernel, picture, random_mask

SHAPES = [(2, 3, 16, 16), (1, 3, 16, 24)]
PARAMS = {"gaussian_deblur": {"std": 0.8, "size": 9}}


def make(task: str, shape: tuple[int, ...], seed: int = 0) -> Measurement:
    rng = np.random.default_rng(seed)
    n, _, height, width = shape
    masks = np.stack([(box_mask, random_mask)[i % 2](rng, height, width) for i in range(n)])
    kernels = np.stack([path_kernel(rng, 7) for _ in range(n)])
    return measurement(
        task,
        PARAMS.get(task, {}),
        mask=torch.from_numpy(masks).double(),
        kernel=torch.from_numpy(kernels).double(),
    )


def images(shape: tuple[int, ...], seed: int) -> torch.Tensor:
    n, _, height, width = shape
    return torch.from_numpy(picture(np.random.default_rng(seed), n, height, width)).double()


def normal(shape: tuple[int, ...], seed: int) -> torch.Tensor:
    return torch.from_numpy(np.random.default_rng(seed).standard_normal(shape))


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("task", LINEAR)
def test_adjoint(task: str, shape: tuple[int, ...]) -> None:
    forward = make(task, shape).forward
    x = normal(shape, 1)
    y = forward(x)
    w = normal(tuple(y.shape), 2)
    left, right = (y * w).sum(), (x * adjoint(forward, shape, w)).sum()
    assert left.item() == pytest.approx(right.item(), rel=1e-11)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("task", operators.DEFAULTS)
@pytest.mark.parametrize("kind", ["norm", "squared"])
def test_gradient_is_the_slope(kind: str, task: str, shape: tuple[int, ...]) -> None:
    measured = make(task, shape)
    y = measured.forward(images(shape, 3))
    y = y + 0.05 * normal(tuple(y.shape), 4)
    v = 1.2 * images(shape, 5) + 0.01 * normal(shape, 6)
    direction = normal(shape, 7)

    def value(step: float) -> torch.Tensor:
        norms = data_norm(y - measured.forward(v + step * direction), measured.weight)
        return norms if kind == "norm" else norms.square()

    gradient = getattr(operators, f"{kind}_gradient")(measured.forward, v, y, measured.weight)
    slope = (gradient * direction).flatten(1).sum(1)
    h = 1e-6
    torch.testing.assert_close(slope, (value(h) - value(-h)) / (2 * h), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("factor", [2, 3, 4])
def test_super_resolution_sums_the_mirrored_image(factor: int) -> None:
    def cubic(d: float) -> float:
        d = abs(d)
        if d <= 1:
            return 1.5 * d**3 - 2.5 * d**2 + 1
        return -0.5 * d**3 + 2.5 * d**2 - 4 * d + 2 if d < 2 else 0.0

    row = np.random.default_rng(1).standard_normal(factor * 6)
    border = 4 * factor
    mirrored = np.pad(row, border, mode="symmetric")
    expected = []
    for j in range(6):
        centre = (j + 0.5) * factor - 0.5
        w = np.array([cubic((i - border - centre) / factor) for i in range(len(mirrored))])
        expected.append(w @ mirrored / w.sum())
    image = torch.from_numpy(np.outer(row, row)).reshape(1, 1, len(row), len(row))
    got = operators.super_resolution(image, factor)[0, 0].numpy()
    np.testing.assert_allclose(got, np.outer(expected, expected), atol=1e-12)


def test_super_resolution_is_pillow_bicubic_inside() -> None:
    x = images((1, 3, 48, 64), 8)[0, 0]
    small = Image.fromarray(x.numpy().astype(np.float32), mode="F").resize((16, 12), Image.Resampling.BICUBIC)
    got = operators.super_resolution(x[None, None])[0, 0]
    np.testing.assert_allclose(got[2:-2, 2:-2], np.asarray(small)[2:-2, 2:-2], atol=1e-6)


def test_motion_is_the_mirrored_correlation_per_image() -> None:
    shape = (2, 3, 16, 24)
    x = images(shape, 9)
    kernels = np.stack([path_kernel(np.random.default_rng(i), 9) for i in range(2)]).astype(np.float64)
    got = operators.motion_deblur(x, torch.from_numpy(kernels))
    for i in range(2):
        for c in range(3):
            expected = scipy.ndimage.correlate(x[i, c].numpy(), kernels[i, 0], mode="mirror")
            np.testing.assert_allclose(got[i, c], expected, atol=1e-12)


def test_one_kernel_serves_all_images() -> None:
    x = images((2, 3, 16, 16), 10)
    kernel = torch.from_numpy(path_kernel(np.random.default_rng(0), 5)).double()
    torch.testing.assert_close(operators.correlate(x, kernel), operators.correlate(x, torch.stack([kernel, kernel])))


def test_gaussian_is_scipys_filter() -> None:
    x = images((1, 3, 40, 32), 11)
    got = operators.gaussian_deblur(x, std=1.5, size=15)
    expected = scipy.ndimage.gaussian_filter(x[0, 1].numpy(), 1.5, mode="mirror", truncate=4.0)
    np.testing.assert_allclose(got[0, 1], expected, atol=1e-12)


def test_gaussian_kernel_of_the_paper() -> None:
    kernel = operators.gaussian_kernel(3.0, 61)
    assert kernel.shape == (61, 61)
    assert kernel.sum() == pytest.approx(1)
    assert kernel[30, 30] == kernel.max()
    assert not kernel[:18].any() and kernel[18, 30] > 0  # 4 std = 12 px on each side


def test_phase_retrieval_is_a_centred_spectrum() -> None:
    x = images((1, 3, 16, 24), 12)
    y = operators.phase_retrieval(x)
    assert y.shape == (1, 3, 24, 36)
    unit = (x + 1) / 2
    torch.testing.assert_close(y.square().sum(), unit.square().sum())  # Parseval
    torch.testing.assert_close(y[..., 12, 18], unit.sum((-2, -1)) / np.sqrt(24 * 36))  # mean, at the centre
    padded = np.pad(unit[0, 0].numpy(), ((4, 4), (6, 6)))
    np.testing.assert_allclose(y[0, 0], np.abs(np.fft.fftshift(np.fft.fft2(padded, norm="ortho"))), atol=1e-12)


def test_nonlinear_deblur_is_the_identity_without_blur_and_gain() -> None:
    x = images((1, 3, 16, 16), 13)
    impulse = torch.ones(1, 1, 1, 1, dtype=torch.float64)
    torch.testing.assert_close(operators.nonlinear_deblur(x, impulse, gain=1.0), x)


def test_nonlinear_deblur_blurs_light_and_saturates() -> None:
    half = torch.ones(1, 1, 1, 3, dtype=torch.float64) / torch.tensor([4.0, 2.0, 4.0]).double()
    stripes = torch.tensor([-1.0, 1.0]).double().repeat(8).expand(1, 3, 8, 16).clone()
    y = operators.nonlinear_deblur(stripes, half, gain=1.0)
    assert (y > 0.3).all()  # half the light has more than half the code value
    assert (operators.nonlinear_deblur(stripes, half, gain=2.0) == 1).all()
    assert (operators.nonlinear_deblur(stripes * 0 - 3, half) == -1).all()


def test_hdr_clips() -> None:
    x = torch.tensor([-0.8, -0.25, 0.0, 0.25, 3.0]).reshape(1, 1, 1, 5)
    assert operators.hdr(x).flatten().tolist() == [-1, -0.5, 0, 0.5, 1]


@pytest.mark.parametrize("factor", [2, 3, 4])
def test_area_is_pillow_box(factor: int) -> None:
    x = images((1, 3, 24, 36), 18)[0, 0]
    size = (36 // factor, 24 // factor)
    small = Image.fromarray(x.numpy().astype(np.float32), mode="F").resize(size, Image.Resampling.BOX)
    got = operators.super_resolution_area(x[None, None], factor)[0, 0]
    np.testing.assert_allclose(got, np.asarray(small), atol=1e-6)


def test_colorize_is_pillow_grey() -> None:
    levels = np.random.default_rng(19).integers(0, 256, (16, 24, 3), dtype=np.uint8)
    grey = np.asarray(Image.fromarray(levels).convert("L"), np.float64)
    got = operators.colorize(torch.from_numpy(levels / 127.5 - 1).permute(2, 0, 1)[None])[0, 0]
    # Pillow rounds the weights to 16 bits, and the sum to a level.
    np.testing.assert_allclose((got.numpy() + 1) * 127.5, grey, atol=0.5 + 255 * 3 / 2**17)


def test_colorize_divides_by_the_sum_of_the_weights() -> None:
    x = images((1, 3, 16, 16), 20)
    torch.testing.assert_close(operators.colorize(x, 1, 1, 1), x.mean(1, keepdim=True))


@pytest.mark.parametrize(
    ("red_row", "red_column", "pattern"), [(0, 0, "RGGB"), (0, 1, "GRBG"), (1, 0, "GBRG"), (1, 1, "BGGR")]
)
def test_demosaic_is_the_bayer_pattern(red_row: int, red_column: int, pattern: str) -> None:
    x = images((2, 3, 16, 24), 21)
    y = operators.demosaic(x, red_row, red_column)
    assert y.shape == (2, 1, 16, 24)
    for i, colour in enumerate(pattern):  # the square at the top left, row by row
        rows, columns = slice(i // 2, None, 2), slice(i % 2, None, 2)
        assert (y[:, 0, rows, columns] == x[:, "RGB".index(colour), rows, columns]).all()


def test_denoise_is_the_identity() -> None:
    x = images((1, 3, 16, 16), 22)
    assert (measurement("denoise", {}).forward(x) == x).all()


@pytest.mark.parametrize("task", operators.DEFAULTS)
def test_gradient_vanishes_where_the_norm_does(task: str) -> None:
    shape = (2, 3, 16, 16)
    measured = make(task, shape)
    v = images(shape, 14)
    gradient = norm_gradient(measured.forward, v, measured.forward(v), measured.weight)
    assert (gradient == 0).all()


def test_phase_gradient_is_finite_at_modulus_zero() -> None:
    v = -torch.ones(1, 3, 16, 16, dtype=torch.float64)  # black: the whole spectrum is 0
    y = torch.ones(1, 3, 24, 24, dtype=torch.float64)
    assert (norm_gradient(operators.phase_retrieval, v, y) == 0).all()


def test_dropped_pixels_do_not_count() -> None:
    shape = (2, 3, 16, 16)
    measured = make("inpaint", shape)
    v, y = images(shape, 15), images(shape, 16)
    noisy = y + (1 - measured.weight) * normal(shape, 17)
    same = norm_gradient(measured.forward, v, y, measured.weight)
    torch.testing.assert_close(norm_gradient(measured.forward, v, noisy, measured.weight), same)
    assert (same * (1 - measured.weight) == 0).all()


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: measurement("deblur", {}), "task: 'deblur' is not one of"),
        (lambda: measurement("hdr", {"scael": 2}), "hdr has no parameter 'scael'"),
        (lambda: measurement("motion_deblur", {}), "kernel: motion_deblur needs a kernel"),
        (lambda: measurement("inpaint", {}), "mask: inpaint needs a mask"),
        (lambda: operators.super_resolution(torch.zeros(1, 3, 18, 16)), "18x16 is not a multiple"),
        (lambda: operators.super_resolution_area(torch.zeros(1, 3, 18, 16)), "18x16 is not a multiple"),
        (lambda: operators.correlate(torch.zeros(1, 3, 8, 8), torch.ones(4, 5)), "has an even side"),
        (lambda: operators.correlate(torch.zeros(1, 3, 8, 8), torch.ones(17, 17)), "too large"),
        (lambda: operators.correlate(torch.zeros(3, 3, 8, 8), torch.ones(2, 1, 3, 3)), "2 kernels for 3 images"),
    ],
)
def test_bad_input_is_named(call, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        call()
