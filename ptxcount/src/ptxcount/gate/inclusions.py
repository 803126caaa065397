"""Files that nvcc reads for a source, and absent files that it would read if present."""

import hashlib
import os
import re
import shlex
import shutil
import tempfile
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from pathlib import Path

import msgspec

from ..source.cuda_compiler import find_nvcc, read_rule, run_nvcc, split_flags
from .count_cache import FLAG_VARIABLES, is_program

#: Parts of options whose inputs are not tracked, such as option files, this machine's GPU and plug-ins.
_UNTRACKED = re.compile(r"optf|options-file|@|native|spec|plugin|wrapper|pch|module|dryrun|clean")
#: Environment variables with include folders for gcc.
_PATH_VARIABLES = ("CPATH", "C_INCLUDE_PATH", "CPLUS_INCLUDE_PATH")
#: gcc's list of include folders to search; and its message for each folder that is missing or repeated.
_SEARCH = re.compile(r'^#include "\.\.\." search starts here:\n(.*?)^End of search list\.', re.DOTALL | re.MULTILINE)
_IGNORED = re.compile(r'^ignoring (?:nonexistent|duplicate) directory "(.*)"$', re.MULTILINE)
#: nvcc's messages: a variable that nvcc sets, and a call of the host compiler's preprocessor.
_SETTING = re.compile(r"^#\$ (\w+)=(.*)$", re.MULTILINE)
_PREPROCESSOR = re.compile(r"^#\$ (.+ -E -x c\+\+ .*)$", re.MULTILINE)
#: gcc's messages: its own name, and its call of cc1plus.
_COMPILER, _CC1PLUS = re.compile(r"^COLLECT_GCC=(.*)$", re.MULTILINE), re.compile(r"^ (/\S*/cc1plus) -E ", re.MULTILINE)
#: gcc's message if it reads no specs file, which could add inputs.
_BUILT_IN = "Using built-in specs."
#: Texts up to the end of a line that may be part of a directive. Separate patterns match fastest.
_DIRECTIVES = (re.compile(rb"#[^\n]*"), re.compile(rb"%:[^\n]*"), re.compile(rb"include[^\n]*"))
_SPLICE = re.compile(rb"\\[ \t]*\r?\n")
#: Texts in quotes or angle brackets. They may overlap: ``"a"b"`` has a and b.
_NAME = re.compile(rb'["<](?=([^"<>\n]{1,255})[">])')
#: Header names computed by macros, trigraphs, and macros of date and time.
_COMPUTED = re.compile(
    rb"""(?:\#|%:)(?:\s|/\*.*?\*/)*(?:include(?:_next)?|import|embed)\b\s*(?![\s"<])
    | (?<!ifdef\ )(?<!ifndef\ )(?<!defined)(?<!defined\ )(?<!defined\()
      \b__has_(?:include|embed)\w*(?!\w)\s*(?!\s|\(\s*["<])
    | \?\?[=/] | \b__(?:TIME|DATE|TIMESTAMP)__\b""",
    re.VERBOSE,
)


class Layout(msgspec.Struct, frozen=True):
    """The files that nvcc reads for a source, the include folders that nvcc searches, and the compilers it calls."""

    files: list[str]
    #: Include folders, also missing ones.
    folders: list[str]
    #: Include folders of the compilers.
    system_folders: list[str]
    #: Name by which nvcc calls the host compiler, and the folders where nvcc searches this name.
    host_compiler: str
    path: str
    #: The compilers' own programs and files; links among them may be retargeted.
    tools: list[str]


def query_layout(source: Path, flags: str, arch: str) -> Layout | None:
    """Let nvcc list the files and folders that it reads for a source; None if it fails, or the list may be incomplete.

    Raises `PtxError` if nvcc does not run, and `KeyError` if nvcc's messages lack a setting.
    """
    words = [*split_flags(flags), arch, *(os.environ.get(name, "") for name in FLAG_VARIABLES)]
    if any(map(_UNTRACKED.search, words)):
        return None
    nvcc = find_nvcc()
    with tempfile.TemporaryDirectory(prefix="ptxcount-") as folder:
        rule = Path(folder, "made-rule")
        command = [str(nvcc), "-M", "-x", "cu", "-arch", arch, *split_flags(flags), str(source), "-o", str(rule)]
        # gcc does not resolve symbolic links: it searches next to the path where it found a header.
        process = run_nvcc(["env", "LC_ALL=C", *command, "-v", "-Xcompiler", "-v,-fno-canonical-system-headers"])
        files = [str(file) for file in read_rule(rule)]
    if process.returncode or not files:
        return None
    return _parse_layout(process.stderr.decode("utf-8", "surrogateescape"), nvcc, files, words)


def _parse_layout(messages: str, nvcc: Path, files: list[str], compiler_options: list[str]) -> Layout | None:
    """Parse the messages of ``nvcc -v``; None if a compiler is a wrapper, or may read files that it does not name."""
    settings = dict(_SETTING.findall(messages))
    # Each call of the host compiler prints its name, the name of its program cc1plus, and that it reads no specs file.
    host_compilers = [shlex.split(call)[0] for call in _PREPROCESSOR.findall(messages)]
    gcc_names, preprocessors = _COMPILER.findall(messages), _CC1PLUS.findall(messages)
    is_plain = messages.count(_BUILT_IN) == len(gcc_names) == len(preprocessors) == len(host_compilers) > 0
    if not is_plain or len({*host_compilers}) > 1:
        return None
    here, path = settings["_HERE_"], settings["PATH"]
    programs = [shutil.which(name, path=path) or "" for name in {*host_compilers, *gcc_names}]
    is_called = Path(os.path.realpath(nvcc)).parent.samefile(here)  # otherwise a wrapper that calls another nvcc
    if not is_called or not all(map(is_program, [str(nvcc), *programs])):
        return None
    folders = [line.strip() for text in _SEARCH.findall(messages) for line in text.splitlines() if line[:1] == " "]
    folders = [*dict.fromkeys([*folders, *_IGNORED.findall(messages)])]
    library = f"{settings['NVVMIR_LIBRARY_DIR']}/libdevice.10.bc"
    nvcc_files = [f"{settings['CICC_PATH']}/cicc", f"{here}/nvcc.profile", library]
    tools = sorted({str(nvcc), *nvcc_files, *programs, *preprocessors})
    system_folders = _list_system_folders(folders, compiler_options)
    return Layout(files, folders, system_folders, host_compilers[0], path, tools)


def _list_system_folders(folders: Iterable[str], compiler_options: Iterable[str]) -> list[str]:
    """Return the include folders of the compilers: the absolute ones that no option or environment variable names."""
    texts = [*compiler_options, *(os.environ.get(name, "") for name in _PATH_VARIABLES)]
    named = {re.sub(r"^-[^/]*", "", word) for text in texts for word in re.split(r"[\s:=,\"']+", text)}
    return [folder for folder in folders if Path(folder).is_absolute() and folder not in named]


def find_names(content: bytes, *, is_system: bool) -> list[str] | None:
    """Return the header names that a file may include, sorted; None if the file matches `_COMPUTED`.

    In the compilers' headers (``is_system``), macros may compute names: they use only texts of these headers.
    """
    spliced = _SPLICE.sub(b"", content)
    if not is_system and _COMPUTED.search(spliced):
        return None
    lines = b"\n".join(line for directive in _DIRECTIVES for line in directive.findall(spliced))
    names = {*_NAME.findall(lines)}
    return sorted(os.fsdecode(name).strip() for name in names)


def find_folders(files: Iterable[str], folders: Iterable[str]) -> dict[str, tuple[str, str]]:
    """Return, by file, the innermost of ``folders`` that contains the file, and the file's path in it.

    With the folder /inc: {"/inc/sys/a.h": ("/inc", "sys/a.h"), "/k.cu": ("", "")}. Symbolic links are resolved: gcc
    spells the paths of system files differently from the folders' paths.
    """
    real_folders = {os.path.realpath(folder): folder for folder in folders}
    places = {}
    for file in files:
        path = os.path.realpath(file)
        above = next((str(parent) for parent in Path(path).parents if str(parent) in real_folders), None)
        places[file] = ("", "") if above is None else (real_folders[above], os.path.relpath(path, above))
    return places


class Candidates(msgspec.Struct, frozen=True):
    """Files that nvcc would read if present."""

    #: Include folders. nvcc searches each of them for all names in ``searched``.
    folders: list[str]
    #: Names of files, by subfolder of an include folder.
    searched: dict[str, list[str]]
    #: Names of files that a file next to them may include, by folder.
    beside: dict[str, list[str]]


def list_candidates(layout: Layout, names_of_file: Mapping[str, Iterable[str]], flags: str) -> Candidates:
    """List the files that nvcc may find for the header names in each file and in nvcc's options."""
    words = [*split_flags(flags), *(os.environ.get(name, "") for name in FLAG_VARIABLES)]
    # Options may name headers, as in -include=a.h; nvcc includes cuda_runtime.h itself.
    searched = {*words, *(part for word in words for part in re.split(r"[\s=,]+", word)), "cuda_runtime.h"}
    beside: dict[str, set[str]] = defaultdict(set)
    places = find_folders(names_of_file, layout.folders)
    for file, names in names_of_file.items():
        path_in_folder = places[file][1]  # empty for a file in no include folder
        searched |= {*names, *filter(None, [path_in_folder])}  # also the file: it may appear in an earlier folder
        for subfolder, local_names in _group_names(names).items():
            beside[_join(str(Path(file).parent), subfolder)] |= {*local_names}
    # A header in an option is searched in the current folder first.
    return Candidates([*layout.folders, ""], _group_names(searched), {key: sorted(beside[key]) for key in beside})


def _group_names(names: Iterable[str]) -> dict[str, list[str]]:
    """Return the base names of paths by folder: ["a.h", "sys/b.h"] -> {"": ["a.h"], "sys": ["b.h"]}."""
    groups: dict[str, list[str]] = defaultdict(list)
    for name in sorted(names):
        folder, base = os.path.split(name)
        groups[folder].append(base)
    return groups


class Disk:
    """Files and folders, read only once, because several sources include the same headers."""

    def __init__(self) -> None:
        self.hash_file, self._list_folder = lru_cache(None)(_hash_file), lru_cache(None)(_list_folder)
        self.is_readable = lru_cache(None)(lambda path: os.path.isfile(path) and os.access(path, os.R_OK))  # noqa: PTH113

    def iter_present(self, candidates: Candidates) -> Iterator[str]:
        """Yield the candidates that exist as files."""
        for folder in candidates.folders:
            for subfolder, names in candidates.searched.items():
                yield from self._find_files(_join(folder, subfolder), names)
        for folder, names in candidates.beside.items():
            yield from self._find_files(folder, names)

    def _find_files(self, folder: str, names: Iterable[str]) -> list[str]:
        paths = [_join(folder, name) for name in sorted(self._list_folder(folder).intersection(names))]
        return [path for path in paths if self.is_readable(path)]


def _join(folder: str, name: str) -> str:
    """Join a folder and a name, if relative, by a slash: ten times faster than `Path`; double slashes stay."""
    return name if name.startswith("/") or not folder else f"{folder}/{name}"


def _hash_file(path: str) -> str:
    with open(path, "rb") as file:  # noqa: PTH123 -- as above
        return hashlib.sha256(file.read()).hexdigest()


def _list_folder(folder: str) -> frozenset[str]:
    try:
        return frozenset(os.listdir(folder or "."))  # noqa: PTH208 -- as above
    except OSError:
        return frozenset()
