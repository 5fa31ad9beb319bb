"""The tokens of a prompt, for the text encoders of Stable Diffusion (CLIP)."""

from __future__ import annotations

import json
import re
from pathlib import Path

from .errors import ExportError

# The pieces of a text: endings of English, words, single digits, and runs of other signs.
PIECES = re.compile(r"'(?:s|t|re|ve|m|ll|d)|[a-z]+|[0-9]|[^\sa-z0-9]+")


def words(text: str, folder: Path) -> list[int]:
    """The words of a text in ASCII by byte pair encoding, with vocab.json and merges.txt of a folder."""
    if not text.isascii():
        raise ExportError(f"--prompt: {text!r} has letters outside ASCII, which the encoder does not know as words")
    try:
        vocabulary = json.loads((folder / "vocab.json").read_text())
        lines = (folder / "merges.txt").read_text().splitlines()
    except (OSError, ValueError) as err:
        raise ExportError(f"--prompt: cannot read the tokenizer in {folder}: {err}") from None
    rank = {tuple(line.split()): i for i, line in enumerate(line for line in lines if not line.startswith("#version"))}
    out: list[int] = []
    for piece in PIECES.findall(text.lower()):
        parts = list(piece)
        parts[-1] += "</w>"
        while len(parts) > 1:
            pairs = list(zip(parts, parts[1:]))
            first = min(pairs, key=lambda pair: rank.get(pair, len(rank)))
            if first not in rank:
                break
            i = 0
            while i < len(parts) - 1:
                if (parts[i], parts[i + 1]) == first:
                    parts[i : i + 2] = [parts[i] + parts[i + 1]]
                i += 1
        unknown = [part for part in parts if part not in vocabulary]
        if unknown:
            raise ExportError(f"--prompt: the tokenizer in {folder} has no word {unknown[0]!r}")
        out += [vocabulary[part] for part in parts]
    return out


def framed(words: list[int], begin: int, end: int, padding: int, length: int) -> list[int]:
    """Words between the begin and the end, padded to a length."""
    if len(words) > length - 2:
        raise ExportError(f"--prompt: it has {len(words)} tokens, at most {length - 2} are possible; shorten it")
    return [begin, *words, end] + [padding] * (length - 2 - len(words))
