"""The keys of an item's random draws, from the item in its result.json.

The keys are digests of a JSON form whose fields and order are those of restore/item/item.go. The item's ID is a digest of the same fields with those of
the solver, so that keys() checks the form: an item whose ID is another one has a field that this module does not know.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass

Key = tuple[int, int, int]  # of internal/restore/noise

SCHEMA = 1  # manifest.SchemaVersion
FILES = ("mask", "kernel", "operator")


@dataclass(frozen=True)
class Keys:
    """The keys of internal/restore/noise for the noise in y, and for start and steps of a run."""

    measurement: Key
    run: Key


def keys(item: dict) -> Keys:
    """The keys of an item. ValueError: its ID does not follow from the known fields."""
    measurement = _measurement(item)
    rest = {name: item[name] for name in ("run", "method", "solver", "prior")} | _present(item, "precision", "tile", "overlap")
    if _digest(measurement | rest).hex() != item["id"]:
        raise ValueError(f"item {item['id']}: its ID does not follow from its fields; adapt parity_code/identity.py to restore/item/item.go")
    digest = _digest(measurement)
    return Keys(_key(digest), _key(_digest({"measurement": digest.hex(), "run": item["run"]})))


def _measurement(item: dict) -> dict:
    m: dict = {"schema": SCHEMA}
    m |= {name: item[name]["sha256"] for name in ("image", "measurement") if item.get(name)}
    m |= {name: item[name] for name in ("width", "height", "fit")}
    m["task"] = "" if item.get("operator") else item["task"]
    if item.get("params"):
        m["params"] = dict(sorted(item["params"].items()))
    m |= {name: item[name] for name in ("sigma", "seed")}
    m |= {name: item[name]["sha256"] for name in FILES if item.get(name)}
    return m | _present(item, "measurement_range", "photons", "own_kernel")


def _present(item: dict, *names: str) -> dict:
    return {name: item[name] for name in names if item.get(name)}


def _digest(fields: dict) -> bytes:
    return hashlib.sha256(json.dumps(fields, separators=(",", ":"), ensure_ascii=False).encode()).digest()


def _key(digest: bytes) -> Key:
    a, b, c = (int.from_bytes(digest[i : i + 4], "little") for i in (0, 4, 8))
    return a, b, c
