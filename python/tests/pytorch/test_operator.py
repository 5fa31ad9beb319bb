"""Operators from PyTorch modules: in a folder of their own, as python-test runs them with Debian's PyTorch and ONNX."""

import re
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional as F

import ddiff

from conftest import execute, scene


def error(x, y):
    return float(np.sqrt(np.mean((np.asarray(x) - np.asarray(y)) ** 2)))


class Sensor(nn.Module):
    """Is not linear."""

    def forward(self, x):
        return torch.tanh(2 * F.avg_pool2d(x, 2))


class GaussianNoise(nn.Module):
    """The noise of DeepInverse by this name."""

    def __init__(self, sigma=0.01):
        super().__init__()
        self.register_buffer("sigma", torch.as_tensor(sigma))

    def forward(self, x):
        return x + self.sigma.reshape(-1, 1, 1, 1) * torch.randn_like(x)


class PoissonNoise(nn.Module):
    def __init__(self, gain):
        super().__init__()
        self.gain = gain

    def forward(self, x):
        return self.gain * torch.poisson(x.clip(min=0) / self.gain)


class UniformNoise(nn.Module):
    def __init__(self, a):
        super().__init__()
        self.a, self.rng = a, torch.Generator().manual_seed(3)

    def forward(self, x):
        return x + self.a * (2 * torch.rand(x.shape, generator=self.rng) - 1)


class Blur(nn.Module):
    """A linear physics with the protocol of DeepInverse: A, A_adjoint, noise_model, and a forward with noise."""

    def __init__(self, side=3, noise=None):
        super().__init__()
        self.side = side
        self.noise_model = noise or GaussianNoise()
        self.register_buffer("kernel", torch.ones(3, 1, side, side) / side**2)

    def A(self, x):
        return F.conv2d(x, self.kernel, padding=self.side // 2, groups=3)

    def A_adjoint(self, y):
        return F.conv_transpose2d(y, self.kernel, padding=self.side // 2, groups=3)

    def forward(self, x):
        return self.noise_model(self.A(x))


class Inpainting(nn.Module):
    """A physics with a mask for each image of a batch, or one for all."""

    def __init__(self, mask, noise):
        super().__init__()
        self.noise_model = noise
        self.register_buffer("mask", mask)

    def A(self, x):
        return self.mask * x

    A_adjoint = A


def test_computes_what_its_file_does(clean):
    """A module in training, which the operator neither changes nor follows."""
    module = nn.Sequential(nn.AvgPool2d(2), nn.BatchNorm2d(3))
    A = ddiff.operator(module, clean)
    y = A(clean)
    assert module.training and int(module[1].num_batches_tracked) == 0
    with torch.no_grad():
        module(torch.rand(1, 3, 64, 64))
        module[1].weight += 1
    np.testing.assert_array_equal(A(clean), y)
    np.testing.assert_allclose(y, clean.reshape(32, 2, 32, 2, 3).mean((1, 3)).transpose(2, 0, 1), atol=1e-4)


def test_linear(session, clean):
    A = ddiff.operator(nn.AvgPool2d(2), clean)
    assert A.linear and A.shape == (3, 32, 32) and A.gradient_error < 0.01 and A.adjoint_error < 1e-4
    y = A(clean)
    np.testing.assert_allclose(y, clean.reshape(32, 2, 32, 2, 3).mean((1, 3)).transpose(2, 0, 1), atol=1e-6)
    noisy = [y + 0.01 * np.random.default_rng(i).standard_normal(y.shape) for i in range(3)]
    results = session.restore(noisy, operator=A, sigma=0.01)
    assert {r.record["batch"] for r in results} == {3} and results[0].record["item"]["task"] == "avgpool2d"
    for r, one in zip(results, noisy):
        enlarged = np.kron(one.transpose(1, 2, 0), np.ones((2, 2, 1)))
        assert error(r.image, clean) < 0.9 * error(enlarged, clean) and error(A(r.image), y) < 0.02
    assert session.restore(clean, "denoise", sigma=0.1).image.shape == clean.shape  # tasks work as before


def test_not_linear(session, clean):
    A = ddiff.operator(Sensor(), torch.from_numpy(clean.transpose(2, 0, 1))[None])
    assert not A.linear and A.adjoint_error is None and A.gradient_error < 0.01
    y = A(clean) + 0.01 * np.random.default_rng(0).standard_normal(A.shape)
    r = session.restore(y, operator=A, sigma=0.01)
    assert error(A(r.image), y) < 0.015 and error(r.image, clean) < 0.1


class Random(nn.Module):
    def forward(self, x):
        return x + torch.randn_like(x)


class Steps(nn.Module):
    def forward(self, x):
        return torch.floor(1000 * x) / 1000


class Spectrum(nn.Module):
    def forward(self, x):
        return torch.fft.fft2(x)


class Flip(nn.Module):
    """The exporter keeps the branch of the example."""

    def forward(self, x):
        return x if x.sum() < 1 else x.flip(3)


@pytest.mark.parametrize(
    ("module", "message"), [(Random(), "is random"), (Steps(), "Steps: .*gradient"), (Spectrum(), "complex64"), (Flip(), "Flip: .*reference vectors")]
)
def test_refused(module, message, clean):
    with pytest.raises(ValueError, match=message):
        ddiff.operator(module, 0 * clean)


def test_needs_one(session, clean):
    with pytest.raises(ddiff.RestoreError, match="a task or an operator"):
        session.restore(clean)
    A = ddiff.operator(nn.AvgPool2d(2), clean)
    with pytest.raises(ddiff.RestoreError, match="a task or an operator"):
        session.restore(clean, "denoise", operator=A)
    with pytest.raises(ddiff.RestoreError, match=r"\[3 32 32\]"):
        session.restore(A(clean)[:, :8], operator=A)
    A.path.unlink()
    with pytest.raises(ddiff.RestoreError, match="no such file"):
        session.restore(A(clean), operator=A)


def test_reconstructor(session):
    """The bridge to DeepInverse: f(y, physics) for a batch, also after the physics has changed."""
    torch.manual_seed(0)
    x = torch.from_numpy(np.stack([scene(1), scene(2)]).transpose(0, 3, 1, 2).copy())
    f = ddiff.reconstructor(session)
    physics = Blur(3)
    for side in 3, 5:
        physics.kernel, physics.side = torch.ones(3, 1, side, side) / side**2, side
        y = physics(x)
        restored = f(y, physics)
        assert isinstance(f, nn.Module) and restored.shape == x.shape and restored.dtype == torch.float32
        assert error(restored, x) < 0.8 * error(y, x)
        assert error(physics.A(restored), y) < 0.02
    assert error(f(y, Blur(3)), x) > error(restored, x)


def calls(monkeypatch, session):
    """Records the sigma of each restoration, and the number of its images."""
    said = []
    real = session.restore

    def restore(ys, **settings):
        said.append((len(ys), settings.get("sigma")))
        return real(ys, **settings)

    monkeypatch.setattr(session, "restore", restore)
    return said


@pytest.mark.filterwarnings("ignore:image ")
def test_reconstructor_noise(session, monkeypatch):
    """Sigma is that of the physics, or the root mean square of its noise with a warning: never a default."""
    torch.manual_seed(0)
    x = torch.from_numpy(np.stack([scene(1), scene(2)]).transpose(0, 3, 1, 2).copy())
    said, f = calls(monkeypatch, session), ddiff.reconstructor(session, method="dpir", steps=2)
    for noise, want in (UniformNoise(0.1), 0.1 / 3**0.5), (PoissonNoise(0.02), float((0.02 * x.mean()).sqrt())):
        physics = Blur(3, noise)
        with pytest.warns(UserWarning, match=rf"^{type(noise).__name__} counts as Gaussian noise of sigma "):
            f(physics(x), physics)
        assert [n for n, _ in said] == [1, 1] and all(abs(s / want - 1) < 0.1 for _, s in said), (said, want)
        said.clear()
    physics = Blur(3, GaussianNoise([0.02, 0.05]))
    f(physics(x), physics)
    np.testing.assert_allclose(said, [(1, 0.02), (1, 0.05)], rtol=1e-6)
    said.clear()
    state = physics.noise_model = UniformNoise(0.1)
    before = state.rng.get_state()
    ddiff.reconstructor(session, method="dpir", steps=2, sigma=0.03)(x, physics)
    with pytest.warns(UserWarning):
        f(x, physics)
    assert said[0] == (2, 0.03) and torch.equal(state.rng.get_state(), before)
    physics.noise_model = None
    with pytest.raises(ValueError, match=r"NoneType, is unknown; give reconstructor\(sigma=\.\.\.\)"):
        f(x, physics)


@pytest.mark.filterwarnings("ignore:image ")
def test_reconstructor_mask_of_each_image(session, monkeypatch):
    torch.manual_seed(0)
    x = torch.from_numpy(np.stack([scene(1), scene(2)]).transpose(0, 3, 1, 2).copy())
    masks = torch.ones(2, 1, 64, 64)
    masks[0, :, 20:24], masks[1, :, :, 40:44] = 0, 0
    said, f = calls(monkeypatch, session), ddiff.reconstructor(session, method="dpir", steps=3)
    physics = Inpainting(masks, GaussianNoise(0.01))
    y = physics.A(x) + 0.01 * torch.randn_like(x)
    both = f(y, physics)
    assert [n for n, _ in said] == [1, 1]
    for i in range(2):
        alone = f(y[i : i + 1], Inpainting(masks[i : i + 1], GaussianNoise(0.01)))
        np.testing.assert_allclose(both[i], alone[0], atol=1e-4)
    shared = Inpainting(masks[:1], GaussianNoise(0.01))
    said.clear()
    f(shared.A(x), shared)
    assert [n for n, _ in said] == [2]
    physics.mask = torch.ones(3, 1, 64, 64)
    with pytest.raises(ValueError, match="neither those of all images nor one for each"):
        ddiff.reconstructor(session, (3, 64, 64))(y, physics)


class Gains(Inpainting):
    """A physics that takes as many of its tensors as there are images."""

    def A(self, x):
        return self.mask[: len(x)] * x

    A_adjoint = A


@pytest.mark.filterwarnings("ignore:image ")
def test_reconstructor_tensors_that_are_cut(session, monkeypatch):
    """That the physics takes one image does not mean that its tensors are those of all."""
    torch.manual_seed(0)
    x = torch.from_numpy(np.stack([scene(1), scene(2)]).transpose(0, 3, 1, 2).copy())
    said, f = calls(monkeypatch, session), ddiff.reconstructor(session, method="dpir", steps=3)
    physics = Gains(torch.tensor([1.0, 0.5]).reshape(2, 1, 1, 1), GaussianNoise(0.01))
    restored = f(physics.A(x), physics)
    assert [n for n, _ in said] == [1, 1] and error(restored[1], x[1]) < 0.05
    physics.mask = torch.tensor([1.0, 0.5, 0.5]).reshape(3, 1, 1, 1)
    with pytest.raises(ValueError, match="neither those of all images nor one for each"):
        f(physics.A(x), physics)


def test_tensors(session, clean):
    """A tensor is the picture of the array, with its channels first or last, of any type, and so is a mask."""
    mask = np.ones((64, 64), bool)
    mask[30:34] = False
    y = np.where(mask[..., None], clean, 0).astype("f4")
    same = {"task": "inpaint", "method": "ddiff", "steps": 3, "sigma": torch.tensor(0.01)}
    want = session.restore(y, mask=mask, **same).image
    t = torch.from_numpy(y)
    for kind in torch.bool, torch.uint8, torch.int64, torch.float32:
        for tensor in t, t.permute(2, 0, 1), t.clone().requires_grad_():
            np.testing.assert_array_equal(session.restore(tensor, mask=torch.from_numpy(mask).to(kind), **same).image, want)
    np.testing.assert_array_equal(session.restore(t, mask=255 * torch.from_numpy(mask).to(torch.uint8)[None], **same).image, want)
    batch = torch.stack([t, t]).permute(0, 3, 1, 2)
    results = session.restore(batch, mask=torch.from_numpy(np.stack([mask, mask])), **same)
    assert len(results) == 2 and error(results[1].image, want) < 1e-4
    assert error(session.restore(t.bfloat16(), mask=mask, **same).image, want) < 0.01
    with pytest.raises(ddiff.RestoreError, match="first or last"):
        session.restore(torch.zeros(3, 16, 3), "denoise")


def test_tensors_with_a_range(session, clean):
    """A tensor with a range has its channels first or last too."""
    same = {"task": "denoise", "sigma": 0.1, "method": "dpir", "steps": 2}
    byte = np.round(255 * clean).astype("u1")
    want, t = session.restore(byte, **same).image, torch.from_numpy(byte)
    for tensor, bounds in (t, (0, 255)), (t / 127.5 - 1, (-1, 1)):
        got = [session.restore(y, range=bounds, **same).image for y in (tensor, tensor.permute(2, 0, 1))]
        got += [r.image for r in session.restore(torch.stack([tensor, tensor]).permute(0, 3, 1, 2), range=bounds, **same)]
        for image in got:
            np.testing.assert_allclose(image, want, atol=2e-4)


def test_tensors_that_are_no_pictures(session):
    """The values of A(x) are the same as a tensor: channels stay first."""
    y = np.abs(np.fft.fft2(np.pad(scene().transpose(2, 0, 1), ((0, 0), (16, 16), (16, 16))), norm="ortho")).astype("f4")
    same = {"task": "Phase_Retrieval", "sigma": 0.1, "method": "ddiff", "steps": 2}
    want = session.restore(y, **same).image
    np.testing.assert_array_equal(session.restore(torch.from_numpy(y), **same).image, want)
    both = session.restore(torch.from_numpy(np.stack([y, y])), **same)
    assert len(both) == 2


def test_page(clean, tmp_path, monkeypatch):
    """Runs the code of docs/python.md with PyTorch."""
    monkeypatch.chdir(tmp_path)
    page = (Path(__file__).parent.parent.parent / "python.md").read_text()
    code = [c for c in re.findall(r"```python\n(.*?)```", page, re.S) if "torch" in c]
    assert len(code) == 1
    names = {"clean": clean, "rng": np.random.default_rng(1), "ddiff": ddiff}
    exec(code[0], names)
    assert error(names["r"].image, clean) < 0.1


def test_notebook():
    execute("your_operator_and_prior")
