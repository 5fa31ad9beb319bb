"""The authors' code of DDiff, SoniaMinseoKim/ddiff-cvpr at ae3ce1f: its functions with a network, measurements and noise of ours.

ddiff_sample.py runs as it is. It gets an empty folder of images, so that it ends with its message and exit code 1 where its loop over images would
begin; all of its functions are defined then. Stand-ins: create_model returns the given network; torch.load, matplotlib, torchvision,
skimage and lpips are not used by these functions and empty; tqdm shows nothing.
"""

from __future__ import annotations

import contextlib
import pathlib
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from unittest import mock

import torch
from torch import Tensor, nn

from method_vectors.author_code import environment

UNUSED = (
    "lpips", "matplotlib", "matplotlib.pyplot", "skimage", "skimage.metrics", "torchvision", "torchvision.transforms", "tqdm", "tqdm.auto",
)
# Their tasks by our names, each with its mask type.
TASKS = {
    "super_resolution": ("downsample", ""),
    "inpaint_box": ("inpaint", "box"),
    "inpaint_random": ("inpaint", "random"),
    "gaussian_deblur": ("deconv", ""),
    "motion_deblur": ("motion_deblur", ""),
    "phase_retrieval": ("phase_retrieval", ""),
    "nonlinear_deblur": ("nonlinear_blur", ""),
    "hdr": ("hdr", ""),
}


@dataclass
class Code:
    """The names that ddiff_sample.py defines, while its modules can be imported."""

    names: dict[str, object]

    def __getitem__(self, name: str) -> object:
        return self.names[name]

    def forward(self, x: Tensor, task: str) -> tuple[Tensor, object]:
        """A(x), and what the loop needs to evaluate A: the mask, the module of the blur or resampling, or a constant."""
        theirs, mask = TASKS[task]
        return self.names["forward"](x, theirs, mask)

    def run(
        self,
        task: str,
        x: Tensor,
        y: Tensor,
        operator: object,
        scale: float,
        forward_step: int,
        noise: Callable[[int], Tensor],
        times: Sequence[int] = range(999, -1, -1),
        record: Callable[[int, Tensor], None] | None = None,
        graph: bool = False,
    ) -> Tensor:
        """The loop admm_ddim from the state x at times[0] over the consecutive, descending times, with u = 0 at the start.

        noise(t) is the noise of the step at time t. record(t, x) gets the state before the step at each time but the first. With graph the
        network keeps its values for a gradient, as in the code, although the loop takes none through the network.
        """
        now = [times[0]]

        class Times:
            """The progress bar: it iterates over the given times."""

            def __init__(self, _: object) -> None: ...

            def set_description(self, _: str) -> None: ...

            def __iter__(self) -> Iterator[int]:
                for t in times:
                    now[0], drawn[0] = t, False
                    yield t

        drawn = [False]

        def randn_like(v: Tensor, **_: object) -> Tensor:
            if not drawn[0]:  # that of p_sample, whose sample the loop does not use
                drawn[0] = True
                return torch.zeros_like(v)
            return noise(now[0])

        model = self.names["model"]

        def network(x: Tensor, time: Tensor) -> Tensor:
            if record is not None and now[0] != times[0]:
                record(now[0], x.detach())
            with torch.set_grad_enabled(graph):
                return model(x, time)

        with mock.patch.dict(self.names, tqdm=Times), mock.patch.object(torch, "randn_like", randn_like):
            return self.names["p_sample_loop"](
                model=network, x_start=x.clone(), measurement=y, measurement_cond_fn=self.names["conditioning"],
                task=TASKS[task][0], method="admm_ddim", mask=operator, scale=scale, forward_step=forward_step, record=False, save_root="",
            ).detach()


@contextlib.contextmanager
def ddiff_code(folder: str, network: nn.Module) -> Iterator[Code]:
    """The code of a checkout with a network that returns [noise, variance] as guided diffusion does."""
    source = pathlib.Path(folder) / "ddiff_sample.py"
    with environment(folder, *UNUSED), tempfile.TemporaryDirectory() as empty:
        for name in [m for m in sys.modules if m.split(".")[0] in ("guided_diffusion", "util", "motionblur")]:
            del sys.modules[name]
        unet = __import__("guided_diffusion.unet", fromlist=["create_model"])
        unet.create_model, real = (lambda **_: network), unet.create_model
        names: dict[str, object] = {"__name__": "ddiff_sample", "__file__": str(source), "create_unet": real}
        with mock.patch.object(sys, "argv", ["ddiff_sample.py", "--testdata_path", empty, "--output_path", f"{empty}/out"]):
            try:
                exec(compile(source.read_text(), str(source), "exec"), names)
            except SystemExit:
                pass
        yield Code(names)
