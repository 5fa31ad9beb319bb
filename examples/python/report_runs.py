"""Reads the rows of a report's table as runs of an experiment tracker."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple


class Run(NamedTuple):
    """A row of summary.json: a problem, a way to solve it, and the mean scores."""

    id: str  # 32 hexadecimal digits of the configuration: equal for equal rows
    name: str
    config: dict[str, Any]
    scores: dict[str, float]


def read(summary: str) -> Iterator[Run]:
    """Yields the rows of a summary.json, which each output and each `ddiff report --format html` has."""
    rows = json.loads(Path(summary).read_text())["rows"]
    configs = [config(row) for row in rows]
    for row, own in zip(rows, configs):
        varying = [f"{k.split('.')[-1]}={v}" for k, v in own.items() if any(c.get(k) != v for c in configs) and k not in ("task", "method")]
        key = hashlib.sha256(json.dumps(own, sort_keys=True).encode()).hexdigest()[:32]
        yield Run(key, ".".join([row["task"], *varying, row["method"]]), own, scores(row))


def config(row: dict) -> dict[str, Any]:
    """Returns the properties of a row, with one entry for each parameter of its task and each setting of its method."""
    out = {k: v for k, v in row.items() if k in ("task", "sigma", "photons", "size", "method", "prior", "preset", "precision")}
    for part in ("params", "settings"):
        for assignment in filter(None, row.get(part, "").split(";")):
            name, value = assignment.split("=", 1)
            out[f"{part}.{name}"] = number(value)
    return out


def scores(row: dict) -> dict[str, float]:
    """Returns counts, means and half-widths of their 95 % intervals."""
    out = {k: row.get(k, 0) for k in ("images", "items", "failed", "dead")}
    for name, figure in row.get("figures", {}).items():
        out[name] = figure["mean"]
        if figure.get("half_width") is not None:
            out[name + "_half_width"] = figure["half_width"]
    return out


def number(text: str) -> Any:
    """Returns a number where the text is one."""
    try:
        return json.loads(text)
    except ValueError:
        return text
