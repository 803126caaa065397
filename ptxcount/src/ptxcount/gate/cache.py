"""Counts that were taken before: they hold while source, includes, nvcc, launch and ptxcount are the same."""

from __future__ import annotations

import hashlib
import json
import os
import re
import subprocess
from collections.abc import Collection, Iterable
from contextlib import suppress
from dataclasses import asdict
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from .. import whole
from ..errors import PtxError
from ..nvcc import find_nvcc, words
from .launches import Launch

#: The folder beside ptxcount.toml; git ignores it.
FOLDER = ".ptxcount_cache"
#: Variables that change what nvcc makes.
_VARIABLES = ("NVCC_PREPEND_FLAGS", "NVCC_APPEND_FLAGS", "CPATH", "CPLUS_INCLUDE_PATH", "NVCC_CCBIN")
_STORED = re.compile(r"=@(.+?\.npy)")
#: What of a launch changes no count.
_BESIDE = ("folder", "name", "label", "limits")
#: What a source includes, or asks for, and how nvcc's options name folders of includes.
_INCLUDED = re.compile(rb'include(?:_next)?\s*\(?\s*[<"]([^>"\n]+)[>"]')
_FOLDERS = re.compile(r"(?:^|\0)(?:-I|--include-path|-isystem|--system-include)[=\0]?([^\0]+)")


class Cache:
    """A file a launch, which its next counts replace. A folder that cannot be written to holds none."""

    def __init__(self, folder: Path, *, used: bool = True) -> None:
        self._folder, self._at, self._used = folder.resolve(), folder / FOLDER, used
        self._known: dict[str, tuple[str, set[str]]] = {}
        self._there: dict[tuple[frozenset[str], frozenset[str]], str] = {}

    def read(self, launch: Launch) -> dict[str, Any] | None:
        """What `write` was given, unless something has changed since."""
        if not self._used:
            return None
        try:
            held: Any = json.loads(self._file(launch).read_text(encoding="utf-8"))
            same = held["inputs"] == self._inputs(launch) and held["sources"] == self._hashes(held["sources"])
            same = same and held["found"] == self._found(launch, held["sources"])
            return dict(held["counts"]) if same else None
        except (OSError, ValueError, KeyError, TypeError):
            return None

    def write(self, launch: Launch, sources: Iterable[Path], counts: dict[str, Any]) -> None:
        """Keep the counts of a launch that was compiled from these files."""
        if not self._used:
            return
        names = [self._name(each) for each in sources]
        found = self._found(launch, names)
        held = {"inputs": self._inputs(launch), "sources": self._hashes(names), "found": found, "counts": counts}
        with suppress(OSError):
            self._at.mkdir(exist_ok=True)
            (self._at / ".gitignore").write_text("*\n", encoding="utf-8")
            whole.write(self._file(launch), json.dumps(held), is_kept=False)

    def _file(self, launch: Launch) -> Path:
        facts = {name: value for name, value in asdict(launch).items() if name not in _BESIDE}
        return self._at / f"{_hash(facts)}.json"

    def _inputs(self, launch: Launch) -> str:
        stored = self._hashes(_STORED.findall("\n".join([*launch.arguments, *launch.variables])))
        return _hash([counter(), _compiler(), stored])

    def _found(self, launch: Launch, names: Collection[str]) -> str:
        """Which of the headers that these sources name are in any folder where nvcc looks: one may come first later."""
        folders = {each.rpartition("/")[0] for each in names} | {*os.environ.get("CPATH", "").split(os.pathsep)}
        folders |= {*_FOLDERS.findall("\0".join(words(launch.flags)))}
        headers = {each for name in names for each in self._source(name)[1]}
        key = frozenset(folders), frozenset(headers)
        if key not in self._there:
            places = (f"{self._folder / folder}/{each}" for folder in folders for each in headers)
            self._there[key] = _hash(sorted(place for place in places if os.access(place, os.R_OK)))
        return self._there[key]

    def _name(self, path: Path) -> str:
        path = path.resolve()
        return path.relative_to(self._folder).as_posix() if path.is_relative_to(self._folder) else str(path)

    def _source(self, name: str) -> tuple[str, set[str]]:
        """The hash of a file, and the headers that it names."""
        if name not in self._known:
            text = (self._folder / name).read_bytes()
            self._known[name] = hashlib.sha256(text).hexdigest(), {*map(os.fsdecode, _INCLUDED.findall(text))}
        return self._known[name]

    def _hashes(self, names: Iterable[str]) -> dict[str, str]:
        return {name: self._source(name)[0] for name in names}


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
    """What nvcc is, and the variables that change what it makes."""
    return _hash([_nvcc(), {name: os.environ.get(name) for name in _VARIABLES}])


def release() -> str:
    """The release of nvcc, as 13.0.88; nothing where there is none."""
    match = re.search(r"V(\d+(?:\.\d+)+)", _nvcc())
    return match[1] if match else ""


@cache
def _nvcc() -> str:
    try:
        done = subprocess.run([str(find_nvcc()), "--version"], capture_output=True, check=False)
    except (PtxError, OSError):
        return ""
    return done.stdout.decode("utf-8", "replace")
