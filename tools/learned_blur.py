#!/usr/bin/env python3
"""Exports a small learned blur with random weights, as a user exports the published one.

    python3 learned_blur.py restore/operator/testdata/bkse.onnx

made the operator file of the tests with torch 1.13: weights under the published names in
GOPRO_wVAE.pth, then the exporter.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from dataclasses import replace
from pathlib import Path

os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")

import torch
from torch import nn

from ddiff_export import __main__ as cli
from ddiff_export import bkse, random_weights

FIELDS = {"width": 2, "front": 1, "back": 1, "code": 4, "extractor_blocks": 1, "trunk": 2}


def wizard() -> nn.Module:
    """The published module with random weights."""
    return random_weights.randomise(bkse.Wizard(replace(bkse.CONFIGS["gopro_wvae"], **FIELDS)), 0, gain=0.7)


def write_weights(path: Path) -> None:
    """Writes random weights in the published format."""
    torch.save(random_weights.state(wizard()), path)


def main(args: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="learned_blur", description="Export a learned blur with random weights.")
    parser.add_argument("out", type=Path, help="the operator file; reference vectors are written beside it")
    o = parser.parse_args(args)
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as folder:
        weights = Path(folder, bkse.CONFIGS["gopro_wvae"].published)
        write_weights(weights)
        fields = [word for name, value in FIELDS.items() for word in ("--field", f"{name}={value}")]
        return cli.main(["bkse", "--config", "gopro_wvae", "--weights", str(weights), *fields, "--out", str(o.out)])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
