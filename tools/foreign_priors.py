#!/usr/bin/env python3
"""Export small score networks with the current diffusers and PyTorch, as other programs do.

    python3 tools/foreign_priors.py OUTDIR [--keep]

Write UNet2DModel networks with random weights, with and without attention blocks, at several operator sets, with fixed
and free shapes. Operator set 17 is the TorchScript exporter's, 18 to 22 are the newer exporter's. --keep writes the
files that internal/restore/prior/testdata holds, without the exporter's notes. Needs torch, diffusers, onnx and onnxscript.
"""

import argparse
import logging
import pathlib

import diffusers
import onnx
import torch

SIZE, CHANNELS = 16, (4, 8)


class Prediction(torch.nn.Module):
    """A network of diffusers with a tensor as result."""

    def __init__(self, network: torch.nn.Module) -> None:
        super().__init__()
        self.network = network

    def forward(self, x: torch.Tensor, t: torch.Tensor) -> torch.Tensor:
        return self.network(x, t).sample


def network(attention: bool) -> torch.nn.Module:
    """A U-Net with two levels and random weights, also in scale and shift of the normalisations."""
    torch.manual_seed(0)
    down = ("DownBlock2D", "AttnDownBlock2D" if attention else "DownBlock2D")
    up = ("AttnUpBlock2D" if attention else "UpBlock2D", "UpBlock2D")
    unet = diffusers.UNet2DModel(
        sample_size=SIZE, in_channels=3, out_channels=3, layers_per_block=1, block_out_channels=CHANNELS,
        down_block_types=down, up_block_types=up, norm_num_groups=2, attention_head_dim=4,
    )
    with torch.no_grad():
        for p in unet.parameters():
            if p.dim() == 1:
                p.add_(0.3 * torch.randn_like(p))
    return Prediction(unet).eval()


def export(net: torch.nn.Module, path: pathlib.Path, opset: int, free: bool) -> None:
    """Export with the exporter that people use for the operator set."""
    n, side = (2, 2 * SIZE) if free else (1, SIZE)
    inputs = (torch.randn(n, 3, side, side), torch.full((n,), 500))
    names = {"input_names": ["x", "t"], "output_names": ["z"], "opset_version": opset}
    if opset < 18:
        axes = {"x": {0: "n", 2: "h", 3: "w"}, "t": {0: "n"}, "z": {0: "n", 2: "h", 3: "w"}}
        torch.onnx.export(net, inputs, str(path), dynamo=False, dynamic_axes=axes if free else None, **names)
        return
    auto = torch.export.Dim.DYNAMIC
    shapes = {"x": {0: auto, 2: auto, 3: auto}, "t": {0: auto}} if free else None
    torch.onnx.export(net, inputs, str(path), dynamo=True, external_data=False, dynamic_shapes=shapes, verbose=False, **names)


def strip(path: pathlib.Path) -> None:
    """Remove names of source lines and types of inner values, which no runtime needs."""
    model = onnx.load(path)
    del model.graph.value_info[:]
    for node in model.graph.node:
        del node.metadata_props[:]
        node.doc_string = ""
    del model.graph.metadata_props[:]
    for value in list(model.graph.input) + list(model.graph.output) + list(model.graph.initializer):
        del value.metadata_props[:]
    onnx.save(model, path)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("outdir", type=pathlib.Path)
    parser.add_argument("--keep", action="store_true", help="only the networks with attention, stripped")
    args = parser.parse_args()
    logging.disable(logging.WARNING)
    args.outdir.mkdir(parents=True, exist_ok=True)
    count = 0
    for attention in (True,) if args.keep else (True, False):
        net = network(attention)
        for opset in (17, 20, 22) if args.keep else (17, 18, 20, 22):
            for free in (False, True):
                name = f"{'attention' if attention else 'plain'}_{opset}_{'free' if free else 'fixed'}.onnx"
                export(net, args.outdir / name, opset, free)
                if args.keep:
                    strip(args.outdir / name)
                count += 1
    print(f"networks={count} torch={torch.__version__} diffusers={diffusers.__version__}")


if __name__ == "__main__":
    main()
