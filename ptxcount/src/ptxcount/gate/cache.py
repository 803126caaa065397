"""Counts that were taken before: they hold while source, includes, nvcc, launch and ptxcount are the same."""

from __future__ import annotations

import hashlib
import json
import os
import re
import subprocess
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import asdict
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from .. import whole
from ..nvcc import find_nvcc
from .launches import Launch

#: The folder beside ptxcount.toml; git ignores it.
FOLDER = ".ptxcount_cache"
#: Variables that change what nvcc makes.
_VARIABLES = ("NVCC_PREPEND_FLAGS", "NVCC_APPEND_FLAGS", "CPATH", "CPLUS_INCLUDE_PATH", "NVCC_CCBIN")
_STORED = re.compile(r"=@(.+?\.npy)")


class Cache:
    """A file a launch, which its next counts replace. A folder that cannot be written to holds none."""

    def __init__(self, folder: Path, *, used: bool = True) -> None:
        self._folder, self._at, self._used = folder.resolve(), folder / FOLDER, used
        self._known: dict[str, str] = {}

    def read(self, launch: Launch) -> dict[str, Any] | None:
        """What `write` was given, unless something has changed since."""
        if not self._used:
            return None
        try:
            held: Any = json.loads(self._file(launch).read_text(encoding="utf-8"))
            same = held["inputs"] == self._inputs(launch) and held["sources"] == self._hashes(held["sources"])
            return dict(held["counts"]) if same else None
        except (OSError, ValueError, KeyError, TypeError):
            return None

    def write(self, launch: Launch, sources: Iterable[Path], counts: dict[str, Any]) -> None:
        """Keep the counts of a launch that was compiled from these files."""
        if not self._used:
            return
        names = [self._name(each) for each in sources]
        held = {"inputs": self._inputs(launch), "sources": self._hashes(names), "counts": counts}
        with suppress(OSError):
            self._at.mkdir(exist_ok=True)
            (self._at / ".gitignore").write_text("*\n", encoding="utf-8")
            whole.write(self._file(launch), json.dumps(held), is_kept=False)

    def _file(self, launch: Launch) -> Path:
        return self._at / f"{_hash(_facts(launch))}.json"

    def _inputs(self, launch: Launch) -> str:
        stored = self._hashes(_STORED.findall("\n".join([*launch.arguments, *launch.variables])))
        compiler = "" if launch.file.endswith(".ptx") else _compiler()
        return _hash([counter(), compiler, stored])

    def _name(self, path: Path) -> str:
        path = path.resolve()
        return path.relative_to(self._folder).as_posix() if path.is_relative_to(self._folder) else str(path)

    def _hashes(self, names: Iterable[str]) -> dict[str, str]:
        for name in names:
            if name not in self._known:
                self._known[name] = hashlib.sha256((self._folder / name).read_bytes()).hexdigest()
        return {name: self._known[name] for name in names}


def _facts(launch: Launch) -> dict[str, Any]:
    return {name: value for name, value in asdict(launch).items() if name not in ("folder", "limits")}


def _hash(facts: Any) -> str:
    return hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()[:32]


@cache
def counter() -> str:
    """All of ptxcount, and NumPy."""
    package = Path(__file__).parents[1]
    found = hashlib.sha256(np.__version__.encode())
    for path in sorted(package.rglob("*.py")):
        found.update(path.read_bytes())
    return found.hexdigest()


@cache
def _compiler() -> str:
    nvcc = str(find_nvcc())
    said = subprocess.run([nvcc, "--version"], capture_output=True, check=False).stdout.decode("utf-8", "replace")
    return _hash([said, {name: os.environ.get(name) for name in _VARIABLES}])
