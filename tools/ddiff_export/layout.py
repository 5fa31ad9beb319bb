"""The descriptions in a folder of the diffusers layout: its JSON files, and the scheduler among them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from .errors import ExportError

PREDICTIONS = {"epsilon": "epsilon", "sample": "sample", "v_prediction": "velocity"}


def fields(path: Path) -> dict[str, Any]:
    """The fields of a JSON file."""
    try:
        found = json.loads(path.read_text())
    except FileNotFoundError:
        raise ExportError(f"{path}: no such file") from None
    except ValueError as err:
        raise ExportError(f"{path}: not JSON: {err}") from None
    if not isinstance(found, dict):
        raise ExportError(f"{path}: not a JSON object")
    return found


def scheduler(directory: Path, base: Path) -> dict[str, Any]:
    """Prediction and schedule of scheduler_config.json."""
    places = [directory / "scheduler" / "scheduler_config.json", base / "scheduler_config.json"]
    path = next((p for p in places if p.is_file()), None)
    if path is None:
        raise ExportError(f"{places[-1]}: no such file; it defines the noise schedule")
    f = fields(path)
    kind, steps = f.get("beta_schedule", "linear"), f.get("num_train_timesteps", 1000)
    first, last = f.get("beta_start", 1e-4), f.get("beta_end", 0.02)
    schedules = {"squaredcos_cap_v2": f"cosine:{steps}"} | {k: f"{k}:{first:g}:{last:g}:{steps}" for k in ("linear", "scaled_linear")}
    if f.get("trained_betas"):
        kept = np.cumprod(1 - np.asarray(f["trained_betas"], dtype=np.float64))
        schedules[kind], steps = ":".join(["table", *(f"{a:.9g}" for a in kept.tolist())]), len(kept)
    if kind not in schedules:
        raise ExportError(f"{path}: beta_schedule {kind!r} is not supported; want {', '.join(schedules)}")
    if f.get("rescale_betas_zero_snr"):
        schedules[kind] = "zero_snr:" + schedules[kind]
    prediction = f.get("prediction_type", "epsilon")
    if prediction not in PREDICTIONS:
        raise ExportError(f"{path}: prediction_type is {prediction!r}, want {', '.join(PREDICTIONS)}")
    return {"prediction": PREDICTIONS[prediction], "schedule": schedules[kind], "steps": steps}
