"""The counts of launches, from the cache if nothing has changed."""

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

from ..report.listing import find_line_text, read_source_lines
from ..source.cuda_compiler import ARCH, stop_all
from ..source.declarations import find_declarations, find_structs
from ..source.names import source_name
from ..util.errors import CompileError, KernelFaultError, LaunchError
from . import compilations, count_cache
from .compilations import Compiled, Recipe
from .diagnostics import NOT_COUNTED, WRONG_KERNEL, Diagnostic
from .launches import FILE, Launch


class LaunchCounts(NamedTuple):
    """The counts of a launch, as numbers and texts that JSON can represent."""

    launch: Launch
    #: File, C++ name, grid, block, arguments and options.
    description: str
    #: `LaunchCounters.totals`, plus the bytes of the stack frame and of spills.
    totals: dict[str, int]
    #: Result of `list_lines` with paths as from `format_path`; the kernel's declaration has stack frame and spills.
    lines: list[dict[str, Any]]
    #: The advice, and the findings of the launch.
    warnings: list[Diagnostic]
    #: Files in the launch's folder that the compilation read, as paths relative to the folder.
    files: list[str]
    #: The file and line that declare the kernel; line 1 of the source if none does.
    declared_at: tuple[str, int]

    @property
    def key(self) -> str:
        """Key in the lock file: the launch's name, or its description if ``ptxcount.toml`` gives it no name."""
        return self.launch.name or self.description


#: Location of the first error in the output of nvcc or gcc.
_COMPILER_ERROR = re.compile(r"^([^\s:(][^\n:(]*)(?:\((\d+)\)|:(\d+)(?::\d+)?): (?:\w+ )?error\b", re.MULTILINE)
_IDLE = "the launch accesses no memory, so there is nothing to check; correct grid, block or arguments"


def count_launches(launches: Sequence[Launch]) -> tuple[list[LaunchCounts], list[Diagnostic]]:
    """Return the counts, and for each launch without counts a finding: that the kernel is wrong, or not counted."""
    outcomes = [*_iter_outcomes(launches)]
    launch_counts = [outcome for outcome in outcomes if isinstance(outcome, LaunchCounts)]
    return launch_counts, [outcome for outcome in outcomes if isinstance(outcome, Diagnostic)]


def _iter_outcomes(launches: Sequence[Launch]) -> Iterator[LaunchCounts | Diagnostic]:
    count_cache.hash_own_code()  # fill the cache before threads start
    caches = (_compile_once, _resolve_files, _resolve_file, _resolve_folder, _read_declarations, compilations.read_disk)
    for function in caches:
        function.cache_clear()  # files may have changed since the last command in this process
    _compile_all(map(_make_recipe, launches))
    for launch in launches:
        try:
            launch_counts = _count_launch(launch)
            # Stack frame and spills have no line in the PTX.
            has_accesses = any(access["ptx_line"] for row in launch_counts.lines for access in row["accesses"])
            no_accesses = Diagnostic(FILE, launch.line, NOT_COUNTED, _IDLE, launch=launch.label)
            yield launch_counts if has_accesses else no_accesses
        except KernelFaultError as error:
            path = format_path(error.source.file or launch.file, launch.folder)
            yield Diagnostic(path, error.source.line or 1, WRONG_KERNEL, error.what, launch=launch.label)
        except LaunchError as error:
            yield Diagnostic(FILE, launch.line, NOT_COUNTED, f"LaunchError: {error}", launch=launch.label)
        except CompileError as error:  # no launch name: all launches of the file have the same error
            match = _COMPILER_ERROR.search(str(error))
            path, line = (match[1], match[2] or match[3]) if match else (launch.file, 1)
            yield Diagnostic(format_path(path, launch.folder), int(line), NOT_COUNTED, f"CompileError: {error}")
        except Exception as error:  # noqa: BLE001 - one launch that cannot be counted hides no other
            yield Diagnostic(launch.file, 1, NOT_COUNTED, f"{type(error).__name__}: {error}", launch=launch.label)


@lru_cache(maxsize=256)
def _compile_once(recipe: Recipe) -> Compiled:
    """Compile a recipe once for all launches that share it, unless the cache on disk has the compilation."""
    return compilations.load_or_compile(recipe, lambda recipe: _import_compute().compile_recipe(recipe))


def _import_compute() -> ModuleType:
    from . import compute  # noqa: PLC0415 - with all of NumPy, which the cache does without

    return compute


def _make_recipe(launch: Launch) -> Recipe:
    instance = launch.kernel if launch.kernel and launch.kernel.endswith(">") else None
    return Recipe(launch.folder / launch.file, instance, launch.flags, launch.arch or ARCH)


def _compile_all(recipes: Iterable[Recipe]) -> None:
    """Compile several recipes in parallel, for `_compile_once`. Ignore errors: counting compiles again, and reports."""

    def try_compile(recipe: Recipe) -> None:
        with suppress(Exception):
            _compile_once(recipe)

    pending_recipes = [*dict.fromkeys(recipes)]
    if len(pending_recipes) < 2:
        return
    from concurrent.futures import ThreadPoolExecutor, wait  # noqa: PLC0415 - with logging, which one file does without

    with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        futures = [pool.submit(try_compile, recipe) for recipe in pending_recipes]
        try:
            wait(futures)
        except BaseException:  # Ctrl-C, or SIGTERM as SystemExit
            while wait([future for future in futures if not future.cancel()], timeout=0.1).not_done:
                stop_all()  # repeat: a template is compiled twice
            raise


def _count_launch(launch: Launch) -> LaunchCounts:
    """Count a launch, or take its counts from the cache; add the current text of lines. Raise as `ptxcount.count`."""
    recipe = _make_recipe(launch)
    compilation, name = _compile_once(recipe)
    files = list_files(launch)
    declared_names = [_read_declarations(launch.folder / file).names for file in (launch.file, *files)]
    cached = count_cache.load_or_count(
        launch, compilation.ptx, declared_names, lambda: _import_compute().compute_counts(launch, compilation, name)
    )
    declaration = _find_declaration(cached["kernel"], launch, files)
    rows = _add_line_texts(cached["lines"], recipe)
    if cached["machine"]:
        rows.append(declaration | {"accesses": cached["machine"]})
    resources = {f"{access['space']}_{access['kind']}_bytes": access["bytes"] for access in cached["machine"]}
    return LaunchCounts(
        launch,
        _describe_launch(launch, cached["kernel"]),
        cached["totals"] | resources,
        [row | {"file": format_path(row["file"] or launch.file, launch.folder)} for row in rows],
        [_make_warning(launch, *warning) for warning in cached["warnings"]],
        files,
        (declaration["file"], declaration["line"]),
    )


def _add_line_texts(rows: list[dict[str, Any]], recipe: Recipe) -> list[dict[str, Any]]:
    """Return rows with the texts of their lines, which are read only from files of the compilation."""
    row_files = {os.path.realpath(row["file"]) for row in rows if row["file"]}
    find_lines = read_source_lines(map(Path, row_files.intersection(_resolve_files(recipe))))
    return [row | {"text": find_line_text(row["file"], row["line"], find_lines)} for row in rows]


def _make_warning(launch: Launch, code: str, text: str, places: Sequence[tuple[str | None, int | None]]) -> Diagnostic:
    paths = [(format_path(file or launch.file, launch.folder), line or 1) for file, line in places]
    return Diagnostic(*paths[0], code, text, "warning", launch.label, tuple(paths[1:]))


def _describe_launch(launch: Launch, kernel: str) -> str:
    options = [launch.flags, *launch.variables, str(launch.dynamic_shared or "")]
    options += [f"cluster={launch.cluster}"] if launch.cluster else []
    words = ", ".join([*launch.arguments, *filter(None, options)])
    return f"{launch.file}: {kernel} <<<{tuple(launch.grid)}, {tuple(launch.block)}>>> ({words})"


def list_files(launch: Launch) -> list[str]:
    """List the files in the launch's folder that the compilation read, as relative paths; a source there is first."""
    root = f"{launch.folder}/"
    paths = _resolve_files(_make_recipe(launch))
    return [path.removeprefix(root) for path in paths if path.startswith(root)]


@lru_cache(maxsize=256)
def _resolve_files(recipe: Recipe) -> list[str]:
    return [*dict.fromkeys(map(_resolve_file, map(str, _compile_once(recipe).compilation.files)))]


@lru_cache(maxsize=1 << 16)
def _resolve_file(file: str) -> str:
    """Resolve a path; cached, because sources share hundreds of headers in a few folders."""
    folder, name = os.path.split(file)
    path = f"{_resolve_folder(folder).rstrip('/')}/{name}"
    return os.path.realpath(path) if os.path.islink(path) else path  # noqa: PTH114 -- in a tenth of `Path`'s time


_resolve_folder = lru_cache(maxsize=1 << 12)(os.path.realpath)


def _find_declaration(kernel: str, launch: Launch, files: list[str]) -> dict[str, Any]:
    """Return the file, line and text of a kernel's declaration. If there is none, return line 1 of the source."""
    name = source_name(kernel)
    for file in (launch.file, *files):
        if name in (lines := _read_declarations(launch.folder / file).lines):
            return {"file": format_path(file, launch.folder), **lines[name]}
    return {"file": format_path(launch.file, launch.folder), "line": 1, "text": ""}


class _FileDeclarations(NamedTuple):
    """The kernels and structs that a file declares."""

    #: The first line that declares each kernel, as ``{"k": {"line": 7, "text": "void k(int n)"}}``.
    lines: dict[str, dict[str, Any]]
    #: Name, and types and names of parameters of each kernel; and each struct with its members.
    names: list[Any]


@lru_cache(maxsize=256)
def _read_declarations(path: Path) -> _FileDeclarations:
    text = path.read_text(encoding="utf-8", errors="replace")
    lines, declarations = text.splitlines(), find_declarations(text)
    return _FileDeclarations(
        {
            declaration.name: {"line": declaration.line, "text": lines[declaration.line - 1].strip()}
            for declaration in reversed(declarations)
        },
        [*((declaration.name, declaration.parameters) for declaration in declarations), find_structs(text)],
    )


def format_path(file: Path | str, root: Path) -> str:
    """Return a file's path relative to a folder, ``src/k.cu``; for a file outside, only the name."""
    path = (root / file).resolve()
    return path.relative_to(root).as_posix() if path.is_relative_to(root) else path.name
