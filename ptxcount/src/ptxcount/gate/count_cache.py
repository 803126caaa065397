"""Cached counts, valid while the PTX, the launch, its files, ptxcount, NumPy, nvcc and its flags are the same.

The names that the source gives to parameters and to members of structs are also inputs: arguments are checked by them.
"""

import hashlib
import importlib.util
import json
import os
import re
import subprocess
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any, TypedDict

import msgspec
import platformdirs

from ..source.cuda_compiler import ARCH, find_nvcc
from ..util import atomic_write
from ..util.errors import PtxError
from .launches import Launch

#: Days after which an unused file is removed.
_DAYS = 30
#: Environment variables with options that nvcc adds, also for ptxas.
FLAG_VARIABLES = ("NVCC_PREPEND_FLAGS", "NVCC_APPEND_FLAGS")
#: A stored array in an argument, such as ``x=@file.npy``; in a struct, a quotation mark ends the path.
_STORED = re.compile(r'@([^"]+)')
#: Fields of a launch that do not affect counts.
_IRRELEVANT = ("folder", "name", "label", "limits", "line")
#: Mangled name of an anonymous namespace, after its length: nvcc randomizes the name at each call.
_ANONYMOUS = re.compile(r"(\d\d)(_GLOBAL__N_\w*)")


class _Counts(TypedDict):
    kernel: str
    totals: dict[str, int]
    lines: list[dict[str, Any]]
    machine: list[dict[str, Any]]
    warnings: list[tuple[str, str, list[tuple[str | None, int | None]]]]


def load_or_count(
    launch: Launch, ptx: str, declared_names: Any, compute: Callable[[], dict[str, Any]]
) -> dict[str, Any]:
    """Return the counts of a launch from the cache, or compute and store them.

    The name of a cache file is a hash of all inputs and of ptxcount's code. ``declared_names`` is any value for JSON.
    Without write access to the cache, nothing is stored.
    """
    facts = {name: value for name, value in msgspec.structs.asdict(launch).items() if name not in _IRRELEVANT}
    words = (*launch.arguments, *launch.variables)
    arrays = [_hash_file(launch.folder / name) for word in words for name in _STORED.findall(word)]
    variables = [os.environ.get(name) for name in FLAG_VARIABLES]
    ptx = _ANONYMOUS.sub(lambda match: match[2][int(match[1]) :], ptx)  # cut the random name off
    folder = cache_folder()
    inputs = [facts, hash_own_code(), nvcc_release(), variables, ptx, declared_names, arrays]
    file = folder / f"{hash_facts(inputs)}.json"
    with suppress(OSError, ValueError, RecursionError):
        counts = dict(msgspec.json.decode(file.read_bytes(), type=_Counts))
        os.utime(file)
        return counts
    counts = compute()
    store_file(file, json.dumps(counts))
    return counts


def cache_folder() -> Path:
    """Return the folder of cached counts. It is outside of any checkout, so that no repository can provide counts."""
    return Path(platformdirs.user_cache_dir("ptxcount"), "counts")


def store_file(file: Path, content: str | bytes) -> None:
    """Store a file of the cache, and remove files of its folder that were unused for `_DAYS` days; ignore `OSError`."""
    oldest = time.time() - _DAYS * 86400
    with suppress(OSError):
        file.parent.mkdir(parents=True, exist_ok=True)
        for path in file.parent.iterdir():
            if path.stat().st_mtime < oldest:
                path.unlink(missing_ok=True)
        atomic_write.write(file, content, is_durable=False)


def hash_facts(facts: Any) -> str:
    """Return a hash of 32 hexadecimal digits of a value that JSON can represent."""
    return hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()[:32]


def _hash_file(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else ""


@cache
def hash_own_code() -> str:
    """Hash the code of ptxcount, and NumPy's version if it is installed, without the slow import of NumPy."""
    spec = importlib.util.find_spec("numpy")
    numpy_version = [Path(spec.origin).with_name("version.py")] if spec and spec.origin else []
    digest = hashlib.sha256()
    for path in (*numpy_version, *sorted(Path(__file__).parents[1].rglob("*.py"))):
        digest.update(path.read_bytes())
    return digest.hexdigest()


@cache
def nvcc_release() -> str:
    """Return the release of nvcc, such as 13.0.88; empty if nvcc is missing or prints no release.

    The release is cached on disk until the file of nvcc changes. If nvcc is a script, which may call another nvcc, the
    release is not cached.
    """
    try:
        nvcc = str(find_nvcc())
        file = cache_folder().with_name("releases") / f"{hash_facts([nvcc, identify_file(nvcc)])}.txt"
        if is_program(nvcc) and file.is_file():
            return file.read_text(encoding="utf-8")
        process = subprocess.run([nvcc, "--version"], capture_output=True, check=False)
    except (PtxError, OSError):
        return ""
    match = re.search(r"V(\d+(?:\.\d+)+)", process.stdout.decode("utf-8", "replace"))
    if match and is_program(nvcc):
        store_file(file, match[1])
    return match[1] if match else ""


def is_program(path: str) -> bool:
    """Tell if a file is an ELF program, not a script."""
    with Path(path).open("rb") as file:
        return file.read(4) == b"\x7fELF"


def identify_file(path: str) -> list[int] | None:
    """Return inode, size, mtime and ctime of a file; None if the file is missing.

    Equal results mean equal content: users cannot set the ctime.
    """
    try:
        status = Path(path).stat()
    except OSError:
        return None
    return [status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns]


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
