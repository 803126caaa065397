"""Counts that were taken before: they hold for the same PTX, launch, stored arrays and ptxcount."""

from __future__ import annotations

import hashlib
import json
import os
import re
import subprocess
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from ..source.nvcc import find_nvcc
from ..util import atomic_write
from ..util.errors import PtxError
from .launches import Launch

#: The folder beside ptxcount.toml; git ignores it.
FOLDER = ".ptxcount_cache"
#: Variables that change what ptxas makes of PTX.
_VARIABLES = ("NVCC_PREPEND_FLAGS", "NVCC_APPEND_FLAGS")
_STORED = re.compile(r"=@(.+?\.npy)")
#: What of a launch changes no count.
_BESIDE = ("folder", "name", "label", "limits")
#: The name of an anonymous namespace behind its length: nvcc draws another one at each call.
_ANONYMOUS = re.compile(r"(\d\d)(_GLOBAL__N_\w*)")


def kept(launch: Launch, ptx: str, made: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """The counts of a launch: those of before if they are of the same inputs, else as they are made now.

    There is a file a launch. A folder that cannot be written to holds none.
    """
    facts = {name: value for name, value in asdict(launch).items() if name not in _BESIDE}
    folder = launch.folder / FOLDER
    file = folder / f"{_hash(facts)}.json"
    words = "\n".join([*launch.arguments, *launch.variables])
    arrays = [_bytes_hash(launch.folder / name) for name in _STORED.findall(words)]
    variables = [os.environ.get(name) for name in _VARIABLES]
    ptx = _ANONYMOUS.sub(lambda found: found[2][int(found[1]) :], ptx)
    inputs = _hash([counter(), release(), variables, ptx, arrays])
    with suppress(OSError, ValueError, KeyError, TypeError):
        held = json.loads(file.read_text(encoding="utf-8"))
        if held["inputs"] == inputs:
            return dict(held["counts"])
    counts = made()
    with suppress(OSError):
        folder.mkdir(exist_ok=True)
        (folder / ".gitignore").write_text("*\n", encoding="utf-8")
        atomic_write.write(file, json.dumps({"inputs": inputs, "counts": counts}), is_kept=False)
    return counts


def _hash(facts: Any) -> str:
    return hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()[:32]


def _bytes_hash(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else ""


@cache
def counter() -> str:
    """All of ptxcount, and NumPy."""
    package = Path(__file__).parents[1]
    found = hashlib.sha256(np.__version__.encode())
    for path in sorted(package.rglob("*.py")):
        found.update(path.read_bytes())
    return found.hexdigest()


@cache
def release() -> str:
    """The release of nvcc, as 13.0.88; nothing where there is none."""
    try:
        done = subprocess.run([str(find_nvcc()), "--version"], capture_output=True, check=False)
    except (PtxError, OSError):
        return ""
    match = re.search(r"V(\d+(?:\.\d+)+)", done.stdout.decode("utf-8", "replace"))
    return match[1] if match else ""
