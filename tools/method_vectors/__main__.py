"""Write the reference vectors of published methods: steps of the authors' own code, with the bundled prior.

    PYTHONPATH=tools python3 -m method_vectors PUBLICATION DIR OUTDIR

DIR is a copy of the authors' repository, which the module of the publication names with its commit. It is read and never written. The
committed vectors are in internal/restore/solver/testdata/methods. Each case is a folder with

    case.json       the method, the task and the settings of the run, and the recorded steps if they are not the first ones
    y.npy           the measurement
    mask.npy        the mask, for inpainting
    x.npy           the state after each recorded step, [steps, 3, H, W], or a latent for methods with a latent prior

Those of ddiff are in internal/restore/solver/testdata/ddiff, see method_vectors/ddiff.py: steps at several times, with two networks.

The start and the noise are those of internal/restore/noise for KEY, which this program computes a second time: a test gives them to the
Go program by the key alone.

The authors' code runs as it is, with these stand-ins, and those in the modules of the publications:

  - the network is the bundled prior (ddiff_torch.onnx_prior). Where the code expects a learned variance, it is at the lower end of
    its range;
  - torch.randn_like and torch.rand_like return the recorded noise;
  - modules that only draw pictures, load data sets or report progress (matplotlib, tqdm, torchvision, cv2, lpips, ...) are empty.
"""

from __future__ import annotations

import argparse
import pathlib
import sys

import torch

from method_vectors.adam_dps import adam_dps
from method_vectors.daps import daps
from method_vectors.dcdp import dcdp
from method_vectors.ddiff import ddiff
from method_vectors.ddnm import ddnm
from method_vectors.ddrm import ddrm
from method_vectors.diffpir import diffpir
from method_vectors.dmplug import dmplug
from method_vectors.dps import dps
from method_vectors.fast_dips import fast_dips
from method_vectors.flower import flower
from method_vectors.latent_daps import latent_daps
from method_vectors.pigdm import pigdm
from method_vectors.pnp_flow import pnp_flow
from method_vectors.pnpdm import pnpdm
from method_vectors.psld import psld
from method_vectors.reddiff import reddiff
from method_vectors.resample import resample
from method_vectors.sitcom import sitcom

PUBLICATIONS = {
    "adam_dps": adam_dps, "daps": daps, "dcdp": dcdp, "ddiff": ddiff, "ddnm": ddnm, "ddrm": ddrm, "diffpir": diffpir, "dmplug": dmplug, "dps": dps, "fast_dips": fast_dips, "flower": flower, "latent_daps": latent_daps,
    "pigdm": pigdm, "pnp_flow": pnp_flow, "pnpdm": pnpdm, "psld": psld, "reddiff": reddiff, "resample": resample, "sitcom": sitcom,
}  # fmt: skip


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("publication", choices=PUBLICATIONS)
    parser.add_argument("folder", help="a copy of the authors' repository")
    parser.add_argument("outdir", type=pathlib.Path)
    args = parser.parse_args()
    torch.set_num_threads(1)  # the order of sums, and thus the last bit, depends on the number of threads
    for case in PUBLICATIONS[args.publication](args.folder):
        case.write(args.outdir)
    return 0


if __name__ == "__main__":
    sys.exit(main())
