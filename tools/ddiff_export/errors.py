"""The one error of this package."""

from __future__ import annotations


class ExportError(Exception):
    """What was given cannot be used: one line that names the file and says what to do."""
