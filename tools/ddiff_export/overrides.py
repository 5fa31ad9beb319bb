"""Overrides fields of a published configuration from the command line: --field width=64."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import fields, is_dataclass, replace
from typing import Any, TypeVar

from .errors import ExportError

C = TypeVar("C")


def choose(configs: dict[str, C], name: str) -> C:
    """The configuration with this name."""
    if name not in configs:
        raise ExportError(f"--config: unknown configuration {name!r}; choose one of {', '.join(configs)}")
    return configs[name]


def apply(config: C, settings: Sequence[str]) -> C:
    """Replaces fields of a configuration. A setting is FIELD=VALUE; the value is JSON or plain
    text and must have the field's type. FIELD may be PART.FIELD."""
    for setting in settings:
        path, found, text = setting.partition("=")
        if not found:
            raise ExportError(f"--field: {setting!r} is not FIELD=VALUE")
        try:
            value = json.loads(text)
        except ValueError:
            value = text
        config = _set(config, path.split("."), value, setting)
    return config


def _set(config: C, path: list[str], value: Any, setting: str) -> C:
    known = [f.name for f in fields(config)]  # type: ignore[arg-type]
    if path[0] not in known:
        raise ExportError(f"--field: {setting!r}: no such field; the fields are {', '.join(known)}")
    old = getattr(config, path[0])
    if len(path) > 1:
        if not is_dataclass(old):
            raise ExportError(f"--field: {setting!r}: {path[0]} has no fields")
        return replace(config, **{path[0]: _set(old, path[1:], value, setting)})  # type: ignore[type-var]
    if isinstance(old, tuple) and isinstance(value, list):
        value = tuple(value)
    number = isinstance(old, (int, float)) and not isinstance(old, bool)
    right = isinstance(value, (int, float)) and not isinstance(value, bool) if number else old is None or isinstance(value, type(old))
    if not right or isinstance(old, int) and number and not isinstance(value, int):
        raise ExportError(f"--field: {setting!r}: the value must be like {json.dumps(old)}")
    return replace(config, **{path[0]: value})  # type: ignore[type-var]


def settings(config: Any, prefix: str = "") -> list[str]:
    """The settings that convert any configuration of this type to this configuration."""
    out: list[str] = []
    for f in fields(config):
        value = getattr(config, f.name)
        if is_dataclass(value):
            out += settings(value, f"{prefix}{f.name}.")
        elif value is not None:
            out.append(f"{prefix}{f.name}={json.dumps(value)}")
    return out
