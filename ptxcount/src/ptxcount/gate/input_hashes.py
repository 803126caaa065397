"""Inputs of counts: the hashes of the project's files, and the settings of a launch."""

import hashlib
from collections.abc import Iterable
from pathlib import Path

from ..source.cuda_compiler import ARCH
from .launches import Launch


def hash_files(folder: Path, files: Iterable[str]) -> dict[str, str]:
    """Hash each file to 16 hexadecimal digits. CRLF counts as LF, because git may change line ends."""
    texts = {file: (folder / file).read_bytes().replace(b"\r\n", b"\n") for file in sorted({*files})}
    return {file: hashlib.sha256(text).hexdigest()[:16] for file, text in texts.items()}


def describe_settings(launch: Launch) -> str:
    """Return the settings that are not in the key of a launch in the lock file.

    The key of a named launch has none. Other keys lack only the architecture. The default architecture is left out.
    """
    extents = f"{launch.grid} {launch.block} {launch.dynamic_shared} {launch.cluster or ''}"
    words = []
    if launch.name:
        words = [launch.file, launch.kernel or "", extents, *launch.arguments, *launch.variables, launch.flags]
    words.append("" if launch.arch in (None, ARCH) else f"-arch={launch.arch}")
    return " ".join(words).strip()
