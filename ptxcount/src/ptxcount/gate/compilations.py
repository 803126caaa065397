"""Cached compilations, valid while nvcc would read the same files with the same options.

As in ccache's direct mode, no compiler is started. An entry has the hash of each file that was read. It also has the
names of absent files that nvcc would have read: so a new header earlier on the path invalidates it.
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
#: PTX with its input files, and the mangled name of a template instance.
Compiled = tuple[Compilation, "str | None"]
#: Environment variables that nvcc, the host compiler or the system's loader reads.
_VARIABLES = re.compile(
    r"(LC_|LD_|GCC|NVCC|NVVM|CUDA|CICC|CONDA).*|.*(PATH|ROOT)|LANG|LANGUAGE|SOURCE_DATE_EPOCH|\w+_DEPENDENCIES"
)


class _Snapshot(msgspec.Struct):
    """Files, names, candidates and tools that a compilation depends on, taken before it runs."""

    layout: Layout
    #: Names of headers, by the hash of the including text.
    names: dict[str, list[str]]
    candidates: Candidates
    #: Hashes of the compilers, and of the files that were read or would be read if present.
    tools_state: str
    files_state: str

    def holds_for(self, compilation: Compilation) -> bool:
        """Tell if the compilation read a subset of these files, and nothing has changed.

        Other files are those that only host code includes.
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
    """Return a valid compilation of a recipe from the cache, or compile and store it. Raises as the function.

    It is stored if its inputs were the same before and after.
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
    """Return the file of a recipe's entry, named by all inputs except files; None for PTX, or without nvcc."""
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

    The files are those of its last entry; if it reads others now, the entry is not stored.
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
    """Hash the identities of the called compilers, by their file times."""
    program = shutil.which(layout.host_compiler, path=layout.path) or ""
    return hash_facts([program, *map(identify_file, (*layout.tools, program))])


#: The files on disk, read once per command.
_read_disk = cache(Disk)


def forget_files() -> None:
    """Forget cached files, which may have changed."""
    _read_disk.cache_clear()
