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

import msgspec

from ..source.cuda_compiler import Compilation, find_nvcc
from ..source.kernel_sources import is_ptx
from ..util.errors import PtxError
from .count_cache import cache_folder, hash_counter, hash_facts, identify_file, store_file
from .inclusions import Candidates, Disk, Layout, find_folders, find_names, list_candidates, query_layout

#: A file, a template instance or None, nvcc's flags, and the architecture.
Recipe = tuple[Path, "str | None", str, str]
#: PTX with its input files, and the mangled name of the template instance or None.
Compiled = tuple[Compilation, "str | None"]
#: Environment variables that nvcc, the host compiler or the system's loader reads.
_VARIABLES = re.compile(
    r"(LC_|LD_|GCC|NVCC|NVVM|CUDA|CICC|CONDA).*|.*(PATH|ROOT)|LANG|LANGUAGE|SOURCE_DATE_EPOCH|\w+_DEPENDENCIES"
)


class _Snapshot(msgspec.Struct):
    """All that a compilation depends on, recorded before nvcc runs: files, header names, candidates, compilers."""

    layout: Layout
    #: Names of headers, by the hash of the including text.
    names: dict[str, list[str]]
    candidates: Candidates
    #: Hash of the compilers; hash of the files that were read, and of the list of present candidates.
    tools_state: str
    files_state: str

    def holds_for(self, compilation: Compilation) -> bool:
        """Tell if the compilation read only files of the snapshot, and no input has changed since.

        The snapshot may have more files: those that only host code includes.
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

    A compilation is stored only if its inputs did not change while it ran.
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
            return Compilation(entry.ptx, [*map(Path, entry.files)]), entry.name
    snapshot = _take_snapshot(recipe, entry)
    compilation, name = compile_recipe(recipe)
    with suppress(OSError, ValueError):
        file.unlink(missing_ok=True)
        if snapshot is not None and snapshot.holds_for(compilation):
            files = [*map(str, compilation.files)]
            entry = _Entry(**msgspec.structs.asdict(snapshot), ptx=compilation.ptx, files=files, name=name)
            store_file(file, msgspec.json.encode(entry))
    return compilation, name


def _read_entry(file: Path) -> _Entry | None:
    """Read an entry; None if its compilers changed, or a file is missing. Raises `OSError` and errors of `msgspec`."""
    entry = msgspec.json.decode(file.read_bytes(), type=_Entry)
    is_whole = entry.tools_state == _hash_tools(entry.layout) and all(map(_read_disk().is_readable, entry.layout.files))
    return entry if is_whole else None


def _find_entry_file(recipe: Recipe) -> Path | None:
    """Return the cache file of a recipe, named by a hash of all inputs except files; None for PTX, or without nvcc."""
    source, instance, flags, arch = recipe
    try:
        if is_ptx(source):
            return None
        nvcc = str(find_nvcc())
    except (OSError, PtxError):
        return None
    variables = sorted(variable for variable in os.environ.items() if _VARIABLES.fullmatch(variable[0]))
    facts = [hash_counter(), str(Path.cwd()), str(source), instance, flags, arch, nvcc, variables]
    return cache_folder().with_name("compilations") / f"{hash_facts(facts)}.json"


def _take_snapshot(recipe: Recipe, entry: _Entry | None) -> _Snapshot | None:
    """Take a snapshot of all inputs of a recipe's compilation; None if they cannot be listed.

    The list of files is that of the last entry. If nvcc reads other files now, `_Snapshot.holds_for` is false.
    """
    source, _, flags, arch = recipe
    with suppress(OSError, PtxError, ValueError, KeyError):
        layout = query_layout(source, flags, arch) if entry is None else entry.layout
        if layout is None:
            return None
        places = find_folders(layout.files, layout.folders)
        names: dict[str, list[str]] = {}
        names_of_file = {}
        for file in layout.files:
            content, is_system = Path(file).read_bytes(), places[file][0] in layout.system_folders
            key = hashlib.sha256(content).hexdigest() + (" of the compilers'" if is_system else "")
            found = entry.names[key] if entry and key in entry.names else find_names(content, is_system=is_system)
            if found is None:
                return None
            names_of_file[file] = names[key] = found
        candidates = list_candidates(layout, names_of_file, flags)
        state = _hash_files(layout, candidates, Disk())
        return _Snapshot(layout, names, candidates, _hash_tools(layout), state)
    return None


def _hash_files(layout: Layout, candidates: Candidates, disk: Disk) -> str:
    """Hash the content of the files, and the list of present candidates."""
    return hash_facts([[*map(disk.hash_file, layout.files)], [*disk.iter_present(candidates)]])


def _hash_tools(layout: Layout) -> str:
    """Hash the sizes and file times of the compilers that nvcc calls."""
    program = shutil.which(layout.host_compiler, path=layout.path) or ""
    return hash_facts([program, *map(identify_file, (*layout.tools, program))])


#: `Disk` that reads each file once per command.
_read_disk = cache(Disk)


def forget_files() -> None:
    """Clear the cache of files read from disk: they may have changed since."""
    _read_disk.cache_clear()
