"""The native network against its ONNX file, and the Gaussian prior against Bayes' formula."""

from __future__ import annotations

import math
from pathlib import Path

import onnx
import pytest
import torch
from onnx import helper

import onnx_interpreter
from ddiff_torch.onnx_prior import GaussianPrior, NetworkPrior, load
from ddiff_torch.schedule import alpha_bar


def test_network_is_the_file(prior_path: Path) -> None:
    generator = torch.Generator().manual_seed(1)
    network = load(prior_path)
    for t in ([0, 999], [37, 500]):
        x = torch.randn(2, 3, 32, 48, generator=generator)
        index = torch.tensor(t)
        (expected,) = onnx_interpreter.run(prior_path, {"x": x, "t": index}).values()
        torch.testing.assert_close(network(x, index), expected, rtol=0, atol=1e-4)


def test_network_prior_uses_one_index_for_the_batch(prior_path: Path) -> None:
    network = load(prior_path)
    x = torch.randn(3, 3, 16, 16, generator=torch.Generator().manual_seed(2))
    t = torch.tensor([123] * 3)
    prior = NetworkPrior(network)
    torch.testing.assert_close(prior(x, 123), network.noise(x, t))
    torch.testing.assert_close(prior.image(x, 123), network.image(x, t))


def test_noise_and_image_agree(prior_path: Path) -> None:
    network = load(prior_path)
    x = torch.randn(3, 3, 24, 16, generator=torch.Generator().manual_seed(4))
    t = torch.tensor([0, 400, 999])
    abar = torch.from_numpy(alpha_bar())[t][:, None, None, None].float()
    together = abar.sqrt() * network.image(x, t) + (1 - abar).sqrt() * network.noise(x, t)
    torch.testing.assert_close(together, x, rtol=0, atol=1e-4)


def test_gaussian_prior_denoises_to_the_posterior_mean() -> None:
    mean, var, t = -0.3, 0.2, 350
    abar = alpha_bar()[t]
    x_t = torch.linspace(-2, 2, 9, dtype=torch.float64)
    eps = GaussianPrior(mean, var)(x_t, t)
    denoised = (x_t - math.sqrt(1 - abar) * eps) / math.sqrt(abar)
    precision = 1 / var + abar / (1 - abar)
    expected = (mean / var + math.sqrt(abar) * x_t / (1 - abar)) / precision
    torch.testing.assert_close(denoised, expected)


@pytest.mark.parametrize(("mean", "var"), [(0.0, 0.0), (0.0, -1.0), (math.nan, 1.0), (0.0, math.inf)])
def test_gaussian_prior_refuses(mean: float, var: float) -> None:
    with pytest.raises(ValueError, match="var above 0"):
        GaussianPrior(mean, var)


def test_other_files_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="No such file"):
        load(tmp_path / "absent.onnx")
    (tmp_path / "text.onnx").write_text("\x0athis is no model")
    with pytest.raises(ValueError, match="text.onnx"):
        load(tmp_path / "text.onnx")
    value = helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, [1])
    result = helper.make_tensor_value_info("eps", onnx.TensorProto.FLOAT, [1])
    graph = helper.make_graph([helper.make_node("Identity", ["x"], ["eps"])], "g", [value], [result])
    onnx.save(helper.make_model(graph), str(tmp_path / "identity.onnx"))
    with pytest.raises(ValueError, match="another architecture"):
        load(tmp_path / "identity.onnx")
