#!/usr/bin/env python3
"""Time PyTorch's autograd on a VQ decoder beside the Go program, which starts this script and asks for one pass at a time.

    python3 tools/gradient_bench.py FOLDER WIDTH SIDE

Write FOLDER/decoder.onnx, a decoder with random weights, WIDTH channels at the full resolution and latents of SIDE x SIDE, and
print "ready". Then, for each line on stdin, "forward" or "gradient", run the decoder or the decoder and its vector-Jacobian
product with respect to the latent, and print the milliseconds of the
processor on one thread.
"""

from __future__ import annotations

import pathlib
import sys
import time

import torch
from ddiff_export import onnx_file, vq


def main() -> None:
    folder, width, side = pathlib.Path(sys.argv[1]), *map(int, sys.argv[2:4])
    torch.set_num_threads(1)
    torch.manual_seed(0)
    network = vq.Decode(vq.FirstStage(vq.Config(width=width))).eval().requires_grad_(False)
    z = torch.randn(1, 3, side, side)
    shape = ("batch", 3, "height", "width")
    onnx_file.save(onnx_file.trace(network, {"z": (z, shape)}, {"x": shape}), folder / "decoder.onnx")
    with torch.no_grad():
        w = torch.randn_like(network(z))
    print("ready", flush=True)
    for line in sys.stdin:
        begin = time.process_time()
        if line.strip() == "forward":
            with torch.no_grad():
                network(z)
        else:
            latent = z.clone().requires_grad_(True)
            torch.autograd.grad(network(latent), latent, w)
        print((time.process_time() - begin) * 1e3, flush=True)


if __name__ == "__main__":
    main()
