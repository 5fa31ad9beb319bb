"""Muon: momentum with orthogonalised matrix updates, for the kernels of convolutions.

K. Jordan et al., "Muon: An optimizer for hidden layers in neural networks" (2024). A kernel [out, in, h, w] is treated as the matrix
[out, in h w]. The update's size follows J. Liu et al., "Muon is scalable for LLM training" (arXiv:2502.16982): a root mean square of
0.2 per element, similar to Adam, so that both use one learning rate.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

import torch
from torch import Tensor

# The quintic of Jordan et al.: its iterates map singular values in (0, 1] to about 1.
QUINTIC = (3.4445, -4.7750, 2.0315)
ROUNDS = 5


def orthogonal(matrices: Tensor) -> Tensor:
    """Approximates the nearest semi-orthogonal matrices: the singular values of the result are in 0.6..1.3.

    Uses Newton-Schulz iterations in bfloat16; `matrices` and the result are float32 [count, rows, columns].
    """
    a, b, c = QUINTIC
    tall = matrices.shape[1] > matrices.shape[2]
    x = (matrices.mT if tall else matrices).bfloat16()
    x = x / (x.flatten(1).norm(dim=1)[:, None, None] * 1.01 + 1e-7)
    for _ in range(ROUNDS):
        gram = x @ x.mT
        x = a * x + (b * gram + c * gram @ gram) @ x
    return (x.mT if tall else x).float()


class Muon(torch.optim.Optimizer):
    """Orthogonalised Nesterov momentum with decoupled weight decay; parameters have two or more dimensions."""

    def __init__(self, parameters: Iterable[Tensor], lr: float, momentum: float = 0.95, decay: float = 0.0) -> None:
        super().__init__(parameters, {"lr": lr, "momentum": momentum, "decay": decay})
        self.graphs: dict[torch.Size, tuple[torch.cuda.CUDAGraph, Tensor, Tensor]] = {}  # with input and result, by shape

    def _orthogonal(self, matrices: Tensor) -> Tensor:
        """Like orthogonal; on CUDA it replays a recording of its small kernels, which take longer to start than to run."""
        if not matrices.is_cuda:
            return orthogonal(matrices)
        if matrices.shape not in self.graphs:
            kept, graph = matrices.clone(), torch.cuda.CUDAGraph()
            with torch.cuda.stream(torch.cuda.Stream()):  # a first call outside the recording sets the library up
                orthogonal(kept)
            torch.cuda.synchronize()
            with torch.cuda.graph(graph, capture_error_mode="thread_local"):  # other threads pin memory meanwhile
                result = orthogonal(kept)
            self.graphs[matrices.shape] = graph, kept, result
        graph, kept, result = self.graphs[matrices.shape]
        kept.copy_(matrices)
        graph.replay()
        return result

    @torch.no_grad()
    def step(self, closure: None = None) -> None:
        for group in self.param_groups:
            ahead = defaultdict(list)  # parameters and their momentum by shape: one product for all of a shape
            for p in group["params"]:
                if p.grad is None:
                    continue
                state = self.state[p]
                if not state:
                    state["momentum"] = torch.zeros_like(p)
                mean = state["momentum"].lerp_(p.grad, 1 - group["momentum"])
                update = p.grad.lerp(mean, group["momentum"]).reshape(p.shape[0], -1)
                ahead[update.shape].append((p, update))
            for shape, pairs in ahead.items():
                size = 0.2 * max(shape) ** 0.5
                for (p, _), update in zip(pairs, self._orthogonal(torch.stack([u for _, u in pairs]))):
                    p.mul_(1 - group["lr"] * group["decay"])
                    p.add_(update.view(p.shape), alpha=-group["lr"] * size)
