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


class Noise:
    sigma = torch.tensor(0.01)


class Blur(nn.Module):
    """A linear physics with the protocol of DeepInverse: A, A_adjoint, noise_model, and a forward with noise."""

    def __init__(self, side=3):
        super().__init__()
        self.side = side
        self.noise_model = Noise()
        self.register_buffer("kernel", torch.ones(3, 1, side, side) / side**2)

    def A(self, x):
        return F.conv2d(x, self.kernel, padding=self.side // 2, groups=3)

    def A_adjoint(self, y):
        return F.conv_transpose2d(y, self.kernel, padding=self.side // 2, groups=3)

    def forward(self, x):
        return self.A(x) + self.noise_model.sigma * torch.randn_like(x)


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
