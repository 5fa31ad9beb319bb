"""Pictures, masks and kernels as the program takes them: files by their paths or bytes, arrays by their values."""

from __future__ import annotations

import io
import os
from typing import Any

import numpy as np

from ._result import RestoreError

Picture = Any  # array, tensor, Pillow image or path

_OF_PNG = ("1", "L", "LA", "P", "RGB", "RGBA", "I;16")  # modes of Pillow


def described(picture: Picture, payload: list[Any], upright: bool = True, scaled: bool = True, mask: bool = False) -> dict[str, Any]:
    """Returns the entry of a picture in the header of a request, and adds what follows the header to payload.

    upright: it is a picture, a tensor of which may have its channels first. scaled: the largest integer of its type is white. mask: its integers are zeros
    and one other number."""
    if isinstance(picture, (str, os.PathLike)):
        return {"path": os.path.abspath(os.fspath(picture))}
    if hasattr(picture, "getbands"):
        if scaled and picture.mode != "F" and not (picture.mode.startswith("I") and picture.mode not in _OF_PNG):
            payload.append(_file(picture))
            return {"file": len(payload[-1])}
        picture = _seen(picture)
    a = _upright(array(picture)) if upright and not mask and hasattr(picture, "detach") else array(picture)
    if a.dtype == bool or mask and a.dtype.kind in "iu":
        a = a.astype("<f4")
    elif a.dtype.kind == "u" and a.itemsize <= 2:
        a = a.astype("<f4") / np.float32(np.iinfo(a.dtype).max if scaled else 1)
    elif a.dtype.kind != "f":
        raise RestoreError(f"the array has values of type {a.dtype}; give floats with black at 0 and white at 1, uint8 or uint16")
    if a.size == 0 or a.ndim == 0:
        raise RestoreError(f"the array of shape {a.shape} is empty")
    payload.append(np.ascontiguousarray(a, "<f4"))
    return {"shape": list(a.shape)}


def array(values: Any) -> np.ndarray:
    """Returns an array, or a tensor of any device, as an array."""
    if hasattr(values, "detach"):
        values = values.detach().cpu()
        values = values.float().numpy() if str(values.dtype) == "torch.bfloat16" else values.numpy()
    return np.asarray(values)


def dimensions(values: Any) -> int:
    """Returns the number of dimensions of an array or tensor, 0 for anything else."""
    return int(values.ndim) if isinstance(values, np.ndarray) or hasattr(values, "detach") else 0


def _upright(a: np.ndarray) -> np.ndarray:
    """Returns a tensor's picture with its channels last."""
    if a.ndim != 3:
        return a
    first, last = a.shape[0] in (1, 3), a.shape[2] in (1, 3)
    if first and last:
        raise RestoreError(f"the tensor of shape {a.shape} may have its channels first or last; give an array of height × width × 3")
    return a.transpose(1, 2, 0) if first else a


def _seen(picture: Any) -> Any:
    """Returns a Pillow image upright, and in 8 bits in grey or colour over white: not the indices of a palette, nor inks."""
    from PIL import Image, ImageOps

    picture = ImageOps.exif_transpose(picture)
    if picture.mode in ("P", "PA", "LA", "RGBA", "RGBa") or picture.mode in ("L", "RGB") and "transparency" in picture.info:
        over = picture.convert("RGBA")
        picture = Image.alpha_composite(Image.new("RGBA", over.size, "white"), over)
    return picture if picture.mode in ("1", "L", "F") or picture.mode.startswith("I") else picture.convert("RGB")


def _file(picture: Any) -> bytes:
    """Returns a Pillow image as a file, with its orientation, profile and resolution: the program reads it as it reads the file from which it came."""
    picture.load()  # which turns a TIFF upright, whose EXIF data Pillow keeps apart
    kind = "PNG"
    if picture.mode == "CMYK":
        kind = "TIFF"
    elif picture.mode not in _OF_PNG:
        picture = picture.convert("RGBA" if picture.mode in ("RGBa", "La", "PA") else "RGB")
    beside = {"exif": picture.info.get("exif"), "icc_profile": picture.info.get("icc_profile"), "dpi": picture.info.get("dpi")}
    out = io.BytesIO()
    picture.save(out, kind, **{k: v for k, v in beside.items() if v}, **({"compress_level": 1} if kind == "PNG" else {}))
    return out.getvalue()
