"""Results and errors."""

from __future__ import annotations

import io
import os
import re
import subprocess
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from ._files import write
from ._program import PROGRAM


class RestoreError(ValueError):
    """A picture was not restored: a setting or an array is wrong, or no restoration explains the picture.

    `results` has the results of a batch, with None for each picture that failed, and `problems` the reason of each of these by its index."""

    def __init__(self, message: str, results: list[Result | None] | None = None, problems: dict[int, str] | None = None) -> None:
        super().__init__(message)
        self.results = results or []
        self.problems = problems or {}


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

    def save(self, path: str | os.PathLike[str], quality: int = 95) -> None:
        """Writes the file with its passport, in the format of its extension: .png, .jpg, .tif or .webp (without loss). Replaces an existing file.

        quality: of JPEG, 1 to 100. Raises ValueError for another extension."""
        extension = Path(path).suffix.lower()
        if extension in ("", ".png"):
            write(path, self.png)
            return
        encoded = subprocess.run(
            [PROGRAM, "session", "--encode", extension.removeprefix("."), "--quality", str(quality)], input=self.png, capture_output=True, check=False
        )
        if encoded.returncode != 0:
            last = (encoded.stderr.decode(errors="replace").strip().splitlines() or ["it said nothing"])[-1]
            raise ValueError(f"save {os.fspath(path)}: {re.sub(r'^ddiff: (session: )?(--(encode|quality): )?', '', last)}")
        write(path, encoded.stdout)

    def pillow(self) -> Any:
        """Returns a Pillow image. Needs Pillow."""
        from PIL import Image

        return Image.open(io.BytesIO(self.png))

    def _repr_png_(self) -> bytes:
        return self.png
