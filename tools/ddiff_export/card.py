"""Model cards: the metadata that describes the use of a file to ddiff.

The Go package internal/restore/prior defines the keys; they have the prefix "ddiff.".
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from onnx import ModelProto, TensorProto

from .errors import ExportError
from .onnx_file import file_digest, metadata, set_metadata

PREDICTION = re.compile(r"epsilon|sample|velocity|edm:[0-9.eE+-]+")
SCHEDULE = re.compile(
    r"((flow|sigma):)?(zero_snr:)?((linear|scaled_linear):[0-9.eE+-]+:[0-9.eE+-]+:[0-9]+|cosine:[0-9]+|table(:[0-9.eE+-]+){2,})"
)


@dataclass(frozen=True)
class Card:
    """The model card of a prior."""

    name: str
    license: str
    training: str = ""
    prediction: str = "epsilon"
    schedule: str = "linear:1e-4:0.02:1000"
    channels: int = 3
    multiple_of: int = 1
    timestep: str = "int64 index 0..999"

    def entries(self) -> dict[str, str]:
        """The metadata."""
        out = {
            "card": "1", "name": self.name, "prediction": self.prediction, "schedule": self.schedule,
            "timestep": self.timestep, "range": "-1..1", "channels": str(self.channels),
            "multiple_of": str(self.multiple_of), "learned_variance": "false", "license": self.license,
        }  # fmt: skip
        if self.training:
            out["training"] = self.training
        return {f"ddiff.{key}": value for key, value in out.items()}


def write(model: ModelProto, card: Card) -> None:
    """Writes the card to the model's metadata and checks it against the graph."""
    set_metadata(model, card.entries())
    check(model, card.name)


def check(model: ModelProto, source: str) -> None:
    """Checks the card in a model's metadata against the graph; ExportError names the difference."""
    entries = metadata(model)

    def get(key: str) -> str:
        value = entries.get(f"ddiff.{key}", "").strip()
        if not value:
            raise ExportError(f"{source}: the card lacks {key}")
        return value

    if not PREDICTION.fullmatch(get("prediction")):
        raise ExportError(f"{source}: the card's prediction is {get('prediction')!r}, which ddiff does not support")
    if not SCHEDULE.fullmatch(get("schedule")):
        raise ExportError(f"{source}: ddiff does not support the card's schedule {get('schedule')!r}")
    get("license")
    given = {t.name for t in model.graph.initializer}
    inputs = [p for p in model.graph.input if p.name not in given]
    images = [p for p in inputs if len(p.type.tensor_type.shape.dim) == 4]
    times = [p for p in inputs if len(p.type.tensor_type.shape.dim) == 1]
    if len(inputs) != 2 or len(images) != 1 or len(times) != 1 or not model.graph.output:
        raise ExportError(f"{source}: a prior needs the inputs image batch and time; the graph has {len(inputs)} inputs")
    if images[0].type.tensor_type.elem_type != TensorProto.FLOAT:
        raise ExportError(f"{source}: the input {images[0].name} is not float")
    channels = int(get("channels"))
    for port, want in ((images[0], channels), (model.graph.output[0], channels * (2 if get("learned_variance") == "true" else 1))):
        dims = port.type.tensor_type.shape.dim
        if len(dims) == 4 and dims[1].HasField("dim_value") and dims[1].dim_value != want:
            raise ExportError(f"{source}: the card says {want} channels, the graph's {port.name} has {dims[1].dim_value}")


def described(kind: str, name: str, license: str, **more: object) -> Mapping[str, str]:
    """Metadata of other files: operators, metrics, parts of a bundle."""
    fields = {"kind": kind, "name": name, "license": license} | {k: str(v) for k, v in more.items()}
    return {f"ddiff.{key}": value for key, value in fields.items()}


def bundle(files: Mapping[str, Path], **fields: object) -> str:
    """The text of bundle.json, the card of a latent prior with these files by role."""
    parts = {role: {"file": path.name, "sha256": file_digest(path)} for role, path in files.items()}
    return json.dumps({"card": 1, "kind": "latent"} | fields | {"files": parts}, indent=1) + "\n"
