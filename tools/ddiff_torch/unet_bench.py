"""Times a guided-diffusion network in PyTorch: python3 -m ddiff_torch.unet_bench --network DIR ...

TestAgainstTorch of restore/prior/randomnet writes DIR: network.json (the architecture), weights.safetensors, x.npy
and y.npy (an input, and ddiff's output for it on the CPU). The timed network thus has the same
weights, and max_abs is the largest difference between its float32 output and ddiff's.

Prints one JSON object. A time is the mean duration of one call with a batch on the device, over
at least the given number of seconds, after warm-up calls. The PyTorch side is optimised: no
autograd, inputs on the device, the faster of two memory layouts, compilation for a fixed shape.

    fp32  products in full float32
    tf32  products with factors of 10 bits (CUDA only)
    fp16  mixed precision by autocast: norms and softmax in float32 (CUDA only)

Exit code 77: this Python lacks a package or a CUDA device; one line on standard error names it.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable
from pathlib import Path

ABSENT = 77
WARM_UP = 3

try:
    import numpy as np
    import torch
    from torch import Tensor, nn

    from ddiff_export.adm import Config, build
    from ddiff_export.checkpoint import fit, read
except ImportError as err:
    print(f"PyTorch or NumPy is missing: {err}", file=sys.stderr)
    sys.exit(ABSENT)


def load(folder: Path) -> tuple[nn.Module, Tensor, Tensor, Tensor]:
    """Loads the network with its weights, the input, its time and ddiff's output."""
    d = json.loads((folder / "network.json").read_text())
    network = build(
        Config(
            image_size=d["size"],
            width=d["base"],
            multipliers=tuple(d["multipliers"]),
            blocks=d["blocks"],
            attention=tuple(d["size"] // side for side in d["attention"]),
            head_width=d["head_channels"],
            channels=d["channels"],
            learned_variance=True,
        )
    )
    weights = folder / "weights.safetensors"
    fit(network, read(weights), str(weights))
    x, y = (torch.from_numpy(np.load(folder / name)) for name in ("x.npy", "y.npy"))
    return network.eval().requires_grad_(False), x, torch.full((1,), d["time"], dtype=torch.int64), y


def full_precision(on: bool) -> None:
    """Sets whether CUDA computes products of float32 in float32 instead of TF32."""
    torch.backends.cuda.matmul.allow_tf32 = not on
    torch.backends.cudnn.allow_tf32 = not on


def milliseconds(call: Callable[[], object], device: torch.device, seconds: float) -> float:
    """Mean duration of a call."""

    def wait() -> None:
        if device.type == "cuda":
            torch.cuda.synchronize(device)

    for _ in range(WARM_UP):
        call()
    wait()
    begin, calls = time.perf_counter(), 0
    while calls == 0 or time.perf_counter() - begin < seconds:
        call()
        calls += 1
        wait()
    return (time.perf_counter() - begin) * 1e3 / calls


LAYOUTS = {"nchw": torch.contiguous_format, "nhwc": torch.channels_last}


class Timer:
    """Times a network on a device; skipped lists the settings that could not be timed."""

    def __init__(self, network: nn.Module, device: torch.device, shape: tuple[int, ...], when: Tensor, seconds: float) -> None:
        self.network, self.device, self.shape, self.when, self.seconds = network, device, shape, when, seconds
        self.skipped: list[str] = []

    def time(self, mode: str, precision: str, batch: int, layout: str) -> float | None:
        """Milliseconds per call; None after an error, which is added to skipped."""
        full_precision(precision == "fp32")
        form = LAYOUTS[layout]
        network = self.network.to(self.device, memory_format=form)
        if mode == "compiled":
            torch._dynamo.reset()
            # One shape, with CUDA graphs: the fastest mode that does not search for minutes.
            network = torch.compile(network, mode="reduce-overhead", dynamic=False)
        x = torch.randn((batch, *self.shape), device=self.device).to(memory_format=form)
        t = self.when.to(self.device).expand(batch).contiguous()
        try:
            with torch.inference_mode(), torch.autocast("cuda", torch.float16, enabled=precision == "fp16"):
                return milliseconds(lambda: network(x, t), self.device, self.seconds)
        except Exception as err:  # out of memory, or a failed compilation: the other settings are still timed
            first = str(err).strip().partition("\n")[0]
            self.skipped.append(f"{mode} {precision} batch {batch} {layout}: {type(err).__name__}: {first}")
            return None

    def all(self, batches: list[int]) -> list[dict[str, object]]:
        """One result for each mode, precision and batch size. Eager mode is timed in both layouts,
        compiled mode in the faster one only, because each compilation takes long."""
        cuda = self.device.type == "cuda"
        compiles = cuda and hasattr(torch, "compile")
        if not cuda:
            self.skipped.append("compiled, tf32 and fp16: measured on CUDA only")
        elif not compiles:
            self.skipped.append(f"compiled: PyTorch {torch.__version__} cannot compile")
        results: list[dict[str, object]] = []

        def keep(mode: str, precision: str, batch: int, ms: float, layout: str) -> None:
            results.append({"mode": mode, "precision": precision, "batch": batch, "ms": round(ms, 3), "layout": layout})

        for precision in ("fp32", "tf32", "fp16") if cuda else ("fp32",):
            for batch in batches:
                timed = {layout: self.time("eager", precision, batch, layout) for layout in LAYOUTS}
                done = {layout: ms for layout, ms in timed.items() if ms is not None}
                if not done:
                    break  # a larger batch would fail too
                layout = min(done, key=done.__getitem__)
                keep("eager", precision, batch, done[layout], layout)
                if compiles and (ms := self.time("compiled", precision, batch, layout)) is not None:
                    keep("compiled", precision, batch, ms, layout)
        return results


def main(args: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="unet_bench", description="Time a guided-diffusion network in PyTorch.")
    parser.add_argument("--network", type=Path, required=True, help="folder with network.json, weights.safetensors, x.npy and y.npy")
    parser.add_argument("--device", default="cuda:0", help="cpu, or cuda:N")
    parser.add_argument("--batches", default="1,4,8,16", help="batch sizes")
    parser.add_argument("--seconds", type=float, default=2, help="minimum duration of one timing")
    parser.add_argument("--threads", type=int, default=torch.get_num_threads(), help="CPU threads")
    o = parser.parse_args(args)
    device = torch.device(o.device)
    if device.type == "cuda" and not torch.cuda.is_available():
        print(f"PyTorch {torch.__version__} sees no CUDA device", file=sys.stderr)
        return ABSENT
    torch.set_num_threads(o.threads)
    network, x, when, y = load(o.network)
    network.to(device)
    full_precision(True)
    with torch.inference_mode():
        # The prior drops the half of the channels that holds the variance.
        predicted = network(x.to(device), when.to(device))[:, : y.shape[1]].cpu()
    timer = Timer(network, device, tuple(x.shape[1:]), when, o.seconds)
    results = timer.all([int(n) for n in o.batches.split(",")])
    print(
        json.dumps(
            {
                "torch": torch.__version__,
                "device": torch.cuda.get_device_name(device) if device.type == "cuda" else "cpu",
                "max_abs": float((predicted - y).abs().max()),
                "results": results,
                "skipped": timer.skipped,
            }
        )
    )
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
