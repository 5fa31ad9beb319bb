"""Files that appear whole or not at all."""

from __future__ import annotations

import os
import secrets
from pathlib import Path


def write(path: str | os.PathLike[str], data: bytes) -> None:
    """Writes a file so that it survives a loss of power. Replaces an existing file; an error leaves that as it was."""
    path = Path(path)
    temp = path.parent / f".ddiff-{secrets.token_hex(16)}.tmp"
    try:
        with open(temp, "xb") as f:
            f.write(data)
            f.flush()
            os.fsync(f.fileno())
        os.replace(temp, path)
    except BaseException:
        temp.unlink(missing_ok=True)
        raise
    try:
        folder = os.open(path.parent, os.O_RDONLY)
    except PermissionError:  # it may be written and not be read
        return
    try:
        os.fsync(folder)
    except OSError:  # a file system that cannot sync folders
        pass
    finally:
        os.close(folder)
