"""Finds published files in a folder by their names."""

from __future__ import annotations

from pathlib import Path

from . import adm, bkse, denoiser, flow, ldm, lpips
from .errors import ExportError
from .random_weights import Case

# Other common names of the same files.
ALSO = {"imagenet256.pt": ("adm", "imagenet_256_uncond")}


def cases(folder: Path) -> list[Case]:
    """The export commands for the published files of a folder. Raises ExportError if there are none."""
    if not folder.is_dir():
        raise ExportError(f"{folder}: no such folder")
    out: list[Case] = []
    for command, configs, kind in (
        ("guided-diffusion", adm.CONFIGS, "prior"),
        ("ldm", ldm.CONFIGS, "bundle"),
        ("flow", flow.CONFIGS, "prior"),
        ("drunet", denoiser.CONFIGS, "prior"),
        ("bkse", bkse.CONFIGS, "operator"),
    ):
        for name, config in configs.items():
            if getattr(config, "text", None) or getattr(config, "separate", False) or name == "sdxl":
                continue  # of gigabytes, or of two files
            for path in _candidates(folder, config.published):
                out.append(Case(path.stem, kind, (command, "--config", name, "--weights", str(path))))
    for network, trunk in lpips.TRUNKS.items():
        files = [folder / trunk, folder / f"{network}.pth"]
        if all(path.is_file() for path in files):
            out.append(Case(f"lpips_{network}_published", "metric", ("lpips", "--network", network, "--weights", *map(str, files))))
    out += [Case(path.stem, "prior", ("edm", "--weights", str(path))) for path in sorted(folder.glob("edm-*.pkl"))]
    for path in sorted(folder.iterdir()):
        if (path / "config.json").is_file() or (path / "unet" / "config.json").is_file() and not (path / "text_encoder").is_dir():
            out.append(Case(path.name, "prior", ("diffusers", "--directory", str(path), "--license", "see the publication")))
    if not out:
        raise ExportError(f"{folder}: the folder holds no file with a published name")
    return out


def _candidates(folder: Path, published: str) -> list[Path]:
    """Files with this name, its aliases, or the suffix of training checkpoints."""
    stem = Path(published).stem
    names = [published, f"{stem}.ckpt", *(alias for alias, (_, name) in ALSO.items() if adm.CONFIGS[name].published == published)]
    return [folder / name for name in dict.fromkeys(names) if (folder / name).is_file()]
