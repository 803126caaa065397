"""Cached compilations, valid while nvcc would read the same files with the same options.

As in ccache's direct mode, a valid entry is found without running a compiler. An entry has a hash of the files that
nvcc read. It also has the names of absent files that nvcc would have read. So a new header in an earlier include folder
invalidates it.
"""

import hashlib
import os
import re
import shutil
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import NamedTuple

import msgspec

from ..source.cuda_compiler import Compilation, find_nvcc
from ..source.kernel_sources import is_ptx
from ..util.errors import PtxError
from .count_cache import cache_folder, hash_counter, hash_facts, identify_file, store_file
from .inclusions import Candidates, Disk, Layout, find_folders, find_names, list_candidates, query_layout

#: Environment variables that nvcc, the host compiler or the system's loader reads.
_VARIABLES = re.compile(
    r"(LC_|LD_|GCC|NVCC|NVVM|CUDA|CICC|CONDA).*|.*(PATH|ROOT)|LANG|LANGUAGE|SOURCE_DATE_EPOCH|\w+_DEPENDENCIES"
)


class Recipe(NamedTuple):
    """The arguments of a compilation: a file, a template instance or None, nvcc's flags, and the architecture."""

    source: Path
    instance: str | None
    flags: str
    arch: str


class Compiled(NamedTuple):
    """The result of a compilation, and the mangled name of the template instance or None."""

    compilation: Compilation
    name: str | None


class _Snapshot(msgspec.Struct):
    """All that a compilation depends on, recorded before nvcc runs: files, header names, candidates, compilers."""

    layout: Layout
    #: Names of headers that a file may include, by the hash of the file's content.
    names: dict[str, list[str]]
    candidates: Candidates
    #: Hash of the compilers; hash of the files that were read, and of the list of present candidates.
    tools_state: str
    files_state: str

    def is_valid_for(self, compilation: Compilation) -> bool:
        """Tell if the compilation read only files of the snapshot, and no input has changed since.

        The snapshot may have more files: files that only host code includes.
        """
        return (
            {*map(os.path.realpath, compilation.files)} <= {*map(os.path.realpath, self.layout.files)}
            and self.tools_state == _hash_tools(self.layout)
            and self.files_state == _hash_files(self.layout, self.candidates, Disk())
        )


class _Entry(_Snapshot):
    """A compilation in the cache."""

    ptx: str
    #: Input files, the source first.
    files: list[str]
    name: str | None


def load_or_compile(recipe: Recipe, compile_recipe: Callable[[Recipe], Compiled]) -> Compiled:
    """Return a valid compilation of a recipe from the cache, or compile and store it. Raise as ``compile_recipe``.

    A compilation is stored only if its inputs are known, and did not change while nvcc ran.
    """
    file = _find_entry_file(recipe)
    if file is None:
        return compile_recipe(recipe)
    entry = None
    with suppress(OSError, ValueError, RecursionError):
        entry = _read_entry(file)
        if entry is not None and entry.files_state == _hash_files(entry.layout, entry.candidates, _read_disk()):
            with suppress(OSError):
                os.utime(file)
            return Compiled(Compilation(entry.ptx, [*map(Path, entry.files)]), entry.name)
    snapshot = _take_snapshot(recipe, entry)
    compiled = compile_recipe(recipe)
    compilation = compiled.compilation
    with suppress(OSError, ValueError):
        file.unlink(missing_ok=True)
        if snapshot is not None and snapshot.is_valid_for(compilation):
            files = [*map(str, compilation.files)]
            entry = _Entry(**msgspec.structs.asdict(snapshot), ptx=compilation.ptx, files=files, name=compiled.name)
            store_file(file, msgspec.json.encode(entry))
    return compiled


def _read_entry(file: Path) -> _Entry | None:
    """Read an entry; None if compilers changed, or a file is missing. Raises `OSError` and errors of `msgspec`."""
    entry = msgspec.json.decode(file.read_bytes(), type=_Entry)
    if entry.tools_state != _hash_tools(entry.layout):
        return None
    return entry if all(map(_read_disk().is_readable, entry.layout.files)) else None


def _find_entry_file(recipe: Recipe) -> Path | None:
    """Return the cache file of a recipe, named by a hash of all inputs except files; None for PTX, or without nvcc.

    None also if the source is missing.
    """
    try:
        if is_ptx(recipe.source):
            return None
        nvcc = str(find_nvcc())
    except (OSError, PtxError):
        return None
    variables = sorted(variable for variable in os.environ.items() if _VARIABLES.fullmatch(variable[0]))
    facts = [hash_counter(), str(Path.cwd()), str(recipe.source), *recipe[1:], nvcc, variables]
    return cache_folder().with_name("compilations") / f"{hash_facts(facts)}.json"


def _take_snapshot(recipe: Recipe, entry: _Entry | None) -> _Snapshot | None:
    """Take a snapshot of all inputs of a recipe's compilation; None if these cannot be listed.

    The list of files is from the last entry, or from nvcc without an entry. If nvcc reads other files now,
    `_Snapshot.is_valid_for` is false.
    """
    with suppress(OSError, PtxError, ValueError, KeyError):
        layout = query_layout(recipe.source, recipe.flags, recipe.arch) if entry is None else entry.layout
        if layout is None:
            return None
        places = find_folders(layout.files, layout.folders)
        names: dict[str, list[str]] = {}
        names_of_file = {}
        for file in layout.files:
            content, is_system = Path(file).read_bytes(), places[file][0] in layout.system_folders
            key = hashlib.sha256(content).hexdigest() + (" of the compilers'" if is_system else "")
            is_known = entry is not None and key in entry.names
            header_names = entry.names[key] if entry and is_known else find_names(content, is_system=is_system)
            if header_names is None:
                return None
            names_of_file[file] = names[key] = header_names
        candidates = list_candidates(layout, names_of_file, recipe.flags)
        state = _hash_files(layout, candidates, Disk())
        return _Snapshot(layout, names, candidates, _hash_tools(layout), state)
    return None


def _hash_files(layout: Layout, candidates: Candidates, disk: Disk) -> str:
    """Hash the content of the layout's files, and the list of the candidates that exist."""
    return hash_facts([[*map(disk.hash_file, layout.files)], [*disk.iter_present(candidates)]])


def _hash_tools(layout: Layout) -> str:
    """Hash the files of nvcc and of the compilers that nvcc calls, by `identify_file`."""
    program = shutil.which(layout.host_compiler, path=layout.path) or ""
    return hash_facts([program, *map(identify_file, (*layout.tools, program))])


#: `Disk` that reads each file once per command.
_read_disk = cache(Disk)


def forget_files() -> None:
    """Clear the cache of files read from disk: the files may have changed since."""
    _read_disk.cache_clear()
