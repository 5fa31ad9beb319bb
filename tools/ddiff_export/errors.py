"""The error of this package."""

from __future__ import annotations


class ExportError(Exception):
    """An unusable input: one line with the file, the cause and the remedy."""
