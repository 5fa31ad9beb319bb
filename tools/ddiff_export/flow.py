"""U-Nets of flow matching: a velocity v(x, s) with the image at s = 1 and the noise at s = 0.

The training interpolates x_s = s x + (1 - s) n and predicts x - n. ddiff has the noise at t = 1 and
predicts n - x, so that t = 1 - s and the sign changes.
"""

from __future__ import annotations

from torch import Tensor, nn

from . import adm, pnp_flow
from .checkpoint import State

LEVELS = "linear:1e-4:0.02:1000"  # the noise levels at which ddiff calls networks of a continuous time

CONFIGS: dict[str, adm.Config | pnp_flow.Config] = {
    # torchcfm, examples/images/cifar10: otcfm, icfm and fm have one network.
    "cfm_cifar10": adm.Config(
        32, 128, (1, 2, 2, 2), 2, attention=(2,), heads=4, head_width=64, learned_variance=False, scale_shift=False, resample_blocks=False,
        schedule=f"flow:{LEVELS}", published="otcfm_cifar10_weights_step_400000.pt",
    ),
    "pnp_celeba": pnp_flow.Config(128, schedule=f"flow:{LEVELS}"),
    "pnp_afhq_cat": pnp_flow.Config(256, schedule=f"flow:{LEVELS}"),  # without attention but in the middle
}  # fmt: skip


class Flow(nn.Module):
    """n - x at t of a network of x - n at s = 1 - t."""

    def __init__(self, network: nn.Module) -> None:
        super().__init__()
        self.network = network

    def forward(self, x: Tensor, t: Tensor) -> Tensor:
        return -self.network(x, 1 - t)


def load(config: adm.Config | pnp_flow.Config, state: State, source: str) -> Flow:
    """Builds the network of a configuration and loads its weights."""
    read = pnp_flow.load if isinstance(config, pnp_flow.Config) else adm.load
    return Flow(read(config, state, source))
