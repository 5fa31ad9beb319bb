"""Restores images with diffusion models: super-resolution, deblurring, inpainting, denoising and other inverse problems.

    import ddiff
    r = ddiff.restore("small.jpg", task="super_resolution", factor=4)
    r.save("large.png")

`restore` restores arrays, Pillow images and files. `Session` does so on a device and with a prior of your choice. `run` runs an experiment on whole
folders, `Cluster` on a cluster. `export` converts published networks, `operator` PyTorch modules. `ddiff tasks` and `ddiff methods` in a shell describe tasks and methods.
"""

from . import export
from ._chart import chart
from ._cluster import Campaign, Cluster
from ._deepinv import reconstructor
from ._experiment import Experiment, run
from ._figure import Figure
from ._operator import Operator, operator
from ._result import ProcessError, RestoreError, Result, Warn
from ._session import Session, restore

__all__ = [
    "Campaign", "Cluster", "Experiment", "Figure", "Operator", "ProcessError", "RestoreError", "Result", "Session", "Warn", "chart", "export", "operator",
    "reconstructor", "restore", "run",
]  # fmt: skip
