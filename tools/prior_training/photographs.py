"""Photographs from package archives whose licences permit publication of the trained weights.

They include no test photograph of the project and no research data set. Each entry names the
package, the licence that the package states for the file, and the author. Only photographs in
the public domain or under CC0 or CC-BY are used.
"""

from __future__ import annotations

import bz2
import io
import struct
import subprocess
import zipfile
import zlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from PIL import Image

WHEEL = "scikit-learn==1.2.2"

# The short sides of the scaled versions of a photograph, in pixels.
SHORT_SIDES = (192, 256, 320, 480, 720, 1080)


@dataclass(frozen=True)
class Photograph:
    """One photograph with its source, licence and author."""

    package: str
    path: str  # in the package; the part after ":" is the name in a Qt resource archive
    licence: str
    author: str

    @property
    def name(self) -> str:
        return self.path.replace(":", "/").rsplit("/", 1)[-1]


def _of(package: str, folder: str, *rows: tuple[str, str, str]) -> tuple[Photograph, ...]:
    return tuple(Photograph(package, folder + name, licence, author) for name, licence, author in rows)


PHOTOGRAPHS: tuple[Photograph, ...] = (
    *_of(
        "lomiri-wallpapers-16.04",
        "usr/share/backgrounds/",
        ("aitzgorri_by_Aitzol_Berasategi.jpg", "CC-BY-4.0", "Aitzol Berasategi"),
        ("friends_by_Aitzol_Berasategi.jpg", "CC-BY-4.0", "Aitzol Berasategi"),
        ("life_by_Aitzol_Berasategi.jpg", "CC-BY-4.0", "Aitzol Berasategi"),
        ("picosdeeuropa_by_Aitzol_Berasategi.jpg", "CC-BY-4.0", "Aitzol Berasategi"),
        ("sunset_by_Aitzol_Berasategi.jpg", "CC-BY-4.0", "Aitzol Berasategi"),
        ("Picture_0B_by_freespace.jpg", "CC-BY-4.0", "Trevor \"Freespace\""),
        ("Picture_1A_by_freespace.jpg", "CC-BY-4.0", "Trevor \"Freespace\""),
        ("seeding_by_Clements_Engelhardt.jpg", "CC0-1.0", "Clemens Engelhardt"),
        ("umang_by_Abhishek_Mudgal.jpg", "CC-BY-4.0", "Abhishek Mudgal"),
        ("Wine_by_Jakkub_Mede.jpg", "CC-BY-4.0", "Jakub Mede"),
    ),
    *_of(
        "palapeli-data",
        "usr/share/palapeli/collection/",
        ("cincinnati-bridge.jpg", "public domain", "Derek Jensen"),
        ("citrus-fruits.jpg", "public domain", "US Department of Agriculture"),
        ("european-honey-bee.jpg", "public domain", "John Severns"),
    ),
    *_of(
        "gcompris-qt-data",
        "usr/share/gcompris-qt/rcc/explore_world_animals.rcc:",
        ("moose.webp", "public domain", "Ryan Hagerty"),
        ("crocodile.webp", "CC-BY-3.0", "Kmanoj"),
        ("panda.webp", "CC-BY-1.0", "Aaron Logan"),
    ),
    *_of(
        "python3-scipy",
        "usr/lib/python3/dist-packages/scipy/misc/",
        ("face.dat", "public domain", "unnamed, public-domain-image.com"),
    ),
    *_of(
        WHEEL,
        "sklearn/datasets/images/",
        ("china.jpg", "CC-BY-2.0", "danielbuechele"),
        ("flower.jpg", "CC-BY-2.0", "vultilion"),
    ),
)


# Further photographs for training on a GPU. The first three packages are of Debian 13: they name the licence of each file or collection, and no photographer.
MORE: tuple[Photograph, ...] = (
    *_of(
        "budgie-backgrounds",
        "usr/share/backgrounds/budgie/",
        *((f"{name}.jpg", "CC0-1.0", "unnamed, Budgie Desktop developers") for name in (
            "abstract-spiral", "beacon-street-sunset", "blue-periwinkle", "canyon-wren", "casa-mila", "extreme-desert-hike", "high-trestle-trail",
            "lake-sherburne", "oakland-zoo-otters", "perched-osprey", "piazza-gae-aulenti", "roman-colosseum", "singaporean-cityscape", "tea-gardens",
        )),
    ),
    *_of(
        "wordpress-theme-twentytwentyfour",
        "usr/share/wordpress/wp-content/themes/twentytwentyfour/assets/images/",
        *((f"{name}.webp", "CC0-1.0", "unnamed, rawpixel.com") for name in (
            "abstract-geometric-art", "angular-roof", "art-gallery", "building-exterior", "green-staircase", "hotel-facade", "museum",
            "tourist-and-building", "windows",
        )),
    ),
    *_of(
        "wordpress-theme-twentytwentyfive",
        "usr/share/wordpress/wp-content/themes/twentytwentyfive/assets/images/",
        *((f"{name}.webp", "CC0-1.0", "unnamed, rawpixel.com") for name in (
            "akaka-falls-state-park-flora", "botany-flowers", "category-anthuriums", "coming-soon-bg-image", "coral-square", "dallas-creek-square",
            "malibu-plantlife", "marshland-birds-square", "northern-buttercups-flowers", "nurse", "red-hibiscus-closeup", "typewriter",
        )),
    ),
    *_of(
        "gcompris-qt-data",
        "usr/share/gcompris-qt/rcc/categorization.rcc:",
        *((f"{name}.webp", licence, author) for name, licence, author in (
            ("fish4", "public domain", "Hadal"),
            ("fish25", "public domain", "Necrophorus"),
            ("bucket", "public domain", "MarlonBSB"),
            ("buffetset", "public domain", "Susan G. Detweiler"),
            ("igloo", "public domain", "U.S. National Oceanic and Atmospheric Administration"),
            ("pan", "public domain", "Suricata"),
            ("dam2", "public domain", "László Szalai"),
            ("dam3", "CC-BY-2.0", "David Brodbeck"),
            ("solar1", "CC-BY-2.0", "Nadya Peek"),
            ("solar2", "CC0-1.0", "Fluffyarse"),
            ("solar3", "CC-BY-2.0", "Richard Gifford"),
            ("solar4", "public domain", "ENERGY.GOV"),
            ("solar7", "CC-BY-2.0", "mattbuck"),
            ("windmill", "public domain", "G-Man"),
            ("windmill7", "CC-BY-1.0", "J.c.houd"),
            ("windmill12", "CC-BY-2.0", "Jean-Pol Grandmont"),
            ("windmill14", "CC-BY-2.0", "Francesco Pappalardo"),
            ("hammer3", "public domain", "Evan-Amos"),
            ("measuringTape3", "CC-BY-2.0", "Pink Sherbet Photography"),
            ("measuringTape4", "CC0-1.0", "Douglas Perkins"),
            ("multimeter2", "public domain", "Chabrez"),
            ("nailCutter", "public domain", "Tripy~commonswiki"),
            ("scissors2", "CC-BY-1.0", "Modeha"),
            ("screwDriver", "public domain", "Dmitry G"),
            ("screwDriver2", "public domain", "Dezertscorpion"),
            ("sideCutter1", "public domain", "M338"),
            ("wrench", "public domain", "Dori"),
        )),
    ),
)  # fmt: skip


def download(folder: Path, packages: Iterable[str]) -> None:
    """Downloads and unpacks Debian packages into folder with apt-get and dpkg-deb, each once."""
    folder.mkdir(parents=True, exist_ok=True)
    for package in packages:
        if (folder / package).is_dir():
            continue
        subprocess.run(["apt-get", "-qq", "-o", "APT::Sandbox::User=root", "download", package], cwd=folder, check=True)
        archive = next(folder.glob(f"{package}_*.deb"))
        subprocess.run(["dpkg-deb", "-x", archive.name, package], cwd=folder, check=True)
        archive.unlink()


def fetch(folder: Path, wanted: Sequence[Photograph] = PHOTOGRAPHS) -> None:
    """Downloads and unpacks the packages into folder with apt-get, dpkg-deb and pip."""
    download(folder, sorted({p.package for p in wanted} - {WHEEL}))
    if not (folder / WHEEL).is_dir():
        subprocess.run(["python3", "-m", "pip", "download", "--no-deps", "--only-binary", ":all:", "--python-version",
                        "3.11", WHEEL, "-d", "."], cwd=folder, check=True)  # fmt: skip
        archive = next(folder.glob("scikit_learn-*.whl"))
        zipfile.ZipFile(archive).extractall(folder / WHEEL, [p.path for p in PHOTOGRAPHS if p.package == WHEEL])
        archive.unlink()


def read(photograph: Photograph, folder: Path) -> Image.Image:
    """Decodes one photograph; raises ValueError that names a missing file."""
    path, _, member = photograph.path.partition(":")
    file = folder / photograph.package / path
    if not file.is_file():
        raise ValueError(f"photographs: {file} is missing; fetch the packages again: remove {folder / photograph.package}")
    data = file.read_bytes()
    if member:
        data = _resource(data, member)
    if file.suffix == ".dat":  # scipy's raccoon: compressed samples
        pixels = np.frombuffer(bz2.decompress(data), dtype=np.uint8).reshape(768, 1024, 3)
        return Image.fromarray(pixels)
    return Image.open(io.BytesIO(data)).convert("RGB")


def _resource(data: bytes, wanted: str) -> bytes:
    """Reads the file named wanted from a Qt resource archive (.rcc, format 2 or 3)."""
    version, tree, contents, names = struct.unpack(">4I", data[4:20])
    if data[:4] != b"qres" or version < 2:
        raise ValueError("photographs: not a Qt resource archive of format 2 or 3")
    queue = [0]
    while queue:
        entry = tree + 22 * queue.pop()
        name_at, flags, a, b = struct.unpack(">IHII", data[entry : entry + 14])
        if flags & 2:  # a folder with `a` entries, starting at number b
            queue.extend(range(b, b + a))
            continue
        length = struct.unpack(">H", data[names + name_at : names + name_at + 2])[0]
        start = names + name_at + 6
        if data[start : start + 2 * length].decode("utf-16-be") == wanted:
            size = struct.unpack(">I", data[contents + b : contents + b + 4])[0]
            content = data[contents + b + 4 : contents + b + 4 + size]
            return zlib.decompress(content[4:]) if flags & 1 else content
    raise ValueError(f"photographs: no {wanted} in the resource archive")


def versions(image: Image.Image) -> list[np.ndarray]:
    """The image at several scales, uint8 [height, width, 3], never enlarged.

    Large camera files are soft at full size and contain compression artefacts: they are reduced
    to half their size or less, smaller files to four fifths or less.
    """
    short = min(image.size)
    limit = short * (0.5 if short > 1400 else 0.8)
    sides = [s for s in SHORT_SIDES if s <= limit] or [int(limit)]
    out = []
    for side in sides:
        size = tuple(round(n * side / short) for n in image.size)
        out.append(np.asarray(image.resize(size, Image.Resampling.LANCZOS)))
    return out
