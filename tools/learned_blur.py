#!/usr/bin/env python3
"""Exports a small learned blur with random weights, as a user exports the published one.

    python3 learned_blur.py restore/operator/testdata/bkse.onnx

made the operator file of the tests with torch 1.13: weights under the published names in
GOPRO_wVAE.pth, then the exporter. --plain also writes the operator without its gradient.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from dataclasses import replace
from pathlib import Path

os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")

import onnx
import torch
from onnx.utils import Extractor
from torch import nn

from ddiff_export import __main__ as cli
from ddiff_export import bkse, onnx_file, random_weights

FIELDS = {"width": 2, "front": 1, "back": 1, "code": 4, "extractor_blocks": 1, "trunk": 2}


def wizard() -> nn.Module:
    """The published module with random weights."""
    return random_weights.randomise(bkse.Wizard(replace(bkse.CONFIGS["gopro_wvae"], **FIELDS)), 0, gain=0.7)


def write_weights(path: Path) -> None:
    """Writes random weights in the published format."""
    torch.save(random_weights.state(wizard()), path)


def without_gradient(path: Path, out: Path) -> None:
    """Copies an operator file without w and gx."""
    whole = onnx.load(str(path))
    part = Extractor(whole).extract_model(["x", "k"], ["y"])
    onnx_file.set_metadata(part, {p.key: p.value for p in whole.metadata_props})
    onnx.save(part, str(out))


def main(args: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="learned_blur", description="Export a learned blur with random weights.")
    parser.add_argument("out", type=Path, help="the operator file; reference vectors are written beside it")
    parser.add_argument("--plain", type=Path, help="the same operator without its gradient")
    o = parser.parse_args(args)
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as folder:
        weights = Path(folder, bkse.CONFIGS["gopro_wvae"].published)
        write_weights(weights)
        fields = [word for name, value in FIELDS.items() for word in ("--field", f"{name}={value}")]
        code = cli.main(["bkse", "--config", "gopro_wvae", "--weights", str(weights), *fields, "--out", str(o.out)])
    if code == 0 and o.plain:
        without_gradient(o.out, o.plain)
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
