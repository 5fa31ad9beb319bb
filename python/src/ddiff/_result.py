"""Results and errors."""

from __future__ import annotations

import io
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np


class RestoreError(ValueError):
    """A picture was not restored: a setting or an array is wrong, or no restoration explains the picture.

    `results` has the results of a batch, with None for each picture that failed."""

    def __init__(self, message: str, results: list[Result | None] | None = None) -> None:
        super().__init__(message)
        self.results = results or []


class ProcessError(RuntimeError):
    """The program ended, or could not start. The message has its exit code and its last line on standard error."""


@dataclass(frozen=True)
class Warn:
    """A reason to look at a result."""

    code: str  #: Such as "residual"; docs/restore.md lists them.
    text: str


@dataclass(frozen=True)
class Result:
    """A restored picture."""

    image: np.ndarray = field(repr=False)  #: float32, height × width × 3, black is 0 and white is 1.
    method: str  #: Such as "ddiff".
    choice: str  #: Why method and settings were chosen; "" if you named the method.
    sigma: float  #: Standard deviation of the noise that was assumed, with black at -1 and white at 1.
    warnings: tuple[Warn, ...]  #: Reasons to look at the result; none is a proof of quality.
    curves: dict[str, np.ndarray] = field(repr=False)  #: Values per step: "timestep" and those of the method, such as "data_norm".
    seconds: float  #: Of the solver, divided by the pictures of its batch.
    record: dict[str, Any] = field(repr=False)  #: All settings, digests and versions, as in result.json of a campaign.
    states: dict[int, np.ndarray] = field(repr=False)  #: x_t by the steps made, of those asked for: like image, but not clipped.
    png: bytes = field(repr=False)  #: PNG file with the passport, from which `ddiff replay` computes the picture again.

    def save(self, path: str | Path) -> None:
        """Writes the PNG file with its passport. Replaces an existing file."""
        Path(path).write_bytes(self.png)

    def pillow(self) -> Any:
        """Returns a Pillow image. Needs Pillow."""
        from PIL import Image

        return Image.open(io.BytesIO(self.png))

    def _repr_png_(self) -> bytes:
        return self.png
