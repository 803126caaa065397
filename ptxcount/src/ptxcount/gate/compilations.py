"""Cached compilations, valid while nvcc would read the same files with the same options.

As in ccache's direct mode, no compiler runs to check an entry. An entry has a hash of the files that nvcc read, and the
names of absent files that nvcc would have read: a new header in an earlier include folder invalidates the entry.
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
from .count_cache import cache_folder, hash_facts, hash_own_code, identify_file, store_file
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
    """A compilation, and the mangled name of the recipe's template instance or None."""

    compilation: Compilation
    name: str | None


class _Snapshot(msgspec.Struct):
    """All that a compilation depends on, recorded before nvcc runs."""

    layout: Layout
    #: Names of headers that a file may include, by a hash of the file. Headers of the compilers have another key.
    names: dict[str, list[str]]
    #: Absent files that nvcc would read if present.
    candidates: Candidates
    #: Hash of the compilers.
    tools_state: str
    #: Hash of the layout's files, and of the list of candidates that exist.
    files_state: str

    def is_valid_for(self, compilation: Compilation) -> bool:
        """Tell if the compilation read only files of the snapshot, and no input has changed since the snapshot."""
        known = {*map(os.path.realpath, self.layout.files)}  # also has files that only host code includes
        return (
            known.issuperset(map(os.path.realpath, compilation.files))
            and self.tools_state == _hash_tools(self.layout)
            and self.files_state == _hash_files(self.layout, self.candidates, Disk())
        )


class _Entry(_Snapshot):
    ptx: str
    #: Input files, the source first.
    files: list[str]
    name: str | None


def load_or_compile(recipe: Recipe, compile_recipe: Callable[[Recipe], Compiled]) -> Compiled:
    """Return a recipe's valid compilation from the cache, or compile the recipe; raise as ``compile_recipe``.

    A compilation is stored only if all inputs are known, and none changed while nvcc ran.
    """
    file = _find_entry_file(recipe)
    if file is None:
        return compile_recipe(recipe)
    entry = None
    with suppress(OSError, ValueError, RecursionError):
        entry = _read_entry(file)
        if entry is not None and entry.files_state == _hash_files(entry.layout, entry.candidates, read_disk()):
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
    """Read an entry; None if a compiler changed, or an input cannot be read. Raise `OSError`, or as `msgspec`."""
    entry = msgspec.json.decode(file.read_bytes(), type=_Entry)
    is_same_compiler = entry.tools_state == _hash_tools(entry.layout)
    return entry if is_same_compiler and all(map(read_disk().is_readable, entry.layout.files)) else None


def _find_entry_file(recipe: Recipe) -> Path | None:
    """Return the cache file of a recipe, by a hash of all inputs except files; None for PTX, or if nvcc is missing."""
    try:
        if is_ptx(recipe.source):
            return None
        nvcc = str(find_nvcc())
    except (OSError, PtxError):
        return None
    variables = sorted(variable for variable in os.environ.items() if _VARIABLES.fullmatch(variable[0]))
    facts = [hash_own_code(), str(Path.cwd()), str(recipe.source), *recipe[1:], nvcc, variables]
    return cache_folder().with_name("compilations") / f"{hash_facts(facts)}.json"


#: Results of `find_names` by the keys of `_Snapshot.names`: several sources include the same headers.
_names: dict[str, list[str] | None] = {}


def _take_snapshot(recipe: Recipe, entry: _Entry | None) -> _Snapshot | None:
    """Take a snapshot of all inputs of a recipe's compilation; None if the inputs cannot be listed.

    ``entry`` is the outdated cache entry, if any: its list of files is used again. Otherwise nvcc lists the files. If
    nvcc then reads other files, `_Snapshot.is_valid_for` is false.
    """
    with suppress(OSError, PtxError, ValueError, KeyError):
        layout = query_layout(recipe.source, recipe.flags, recipe.arch) if entry is None else entry.layout
        if layout is None:
            return None
        places = find_folders(layout.files, layout.folders)
        if entry is not None:
            _names.update(entry.names)
        names, names_of_file = {}, {}
        for file in layout.files:
            content = Path(file).read_bytes()
            is_system = places[file][0] in layout.system_folders
            key = hashlib.sha256(content).hexdigest() + (" of the compilers'" if is_system else "")
            if key not in _names:
                _names[key] = find_names(content, is_system=is_system)
            if (header_names := _names[key]) is None:  # a macro may compute a name
                return None
            names[key] = names_of_file[file] = header_names
        candidates = list_candidates(layout, names_of_file, recipe.flags)
        return _Snapshot(layout, names, candidates, _hash_tools(layout), _hash_files(layout, candidates, Disk()))
    return None


def _hash_files(layout: Layout, candidates: Candidates, disk: Disk) -> str:
    return hash_facts([[*map(disk.hash_file, layout.files)], [*disk.iter_present(candidates)]])


def _hash_tools(layout: Layout) -> str:
    program = shutil.which(layout.host_compiler, path=layout.path) or ""
    return hash_facts([program, *map(identify_file, (*layout.tools, program))])


#: `Disk` that reads each file once per command.
read_disk = cache(Disk)
