"""Cached compilations: a change that nvcc would notice compiles again."""

import os
from collections.abc import Callable

import pytest

from ptxcount.gate import compilations, compute
from ptxcount.source.cuda_compiler import Compilation
from tests.ptxcount.compiled_project import FILES, FLAGS, SOURCE, Project


def _write(name: str, text: str) -> Callable[[Project], None]:
    return lambda project: project.write(name, text)


def _edit_unseen(project: Project) -> None:
    """Edit a header; keep its size and time."""
    header = project.folder / "second" / "inner.h"
    status = header.stat()
    header.write_text("#define INNER 2\n")
    os.utime(header, ns=(status.st_atime_ns, status.st_mtime_ns))


def _flags(flags: str) -> Callable[[Project], None]:
    return lambda project: setattr(project, "flags", flags)


def _link(name: str, target: str) -> Callable[[Project], None]:
    def link(project: Project) -> None:
        (project.folder / name).unlink(missing_ok=True)
        (project.folder / name).symlink_to(project.folder / target)

    return link


def _all(*changes: Callable[[Project], None]) -> Callable[[Project], None]:
    def make_changes(project: Project) -> None:
        for change in changes:
            change(project)

    return make_changes


def _remove(name: str) -> Callable[[Project], None]:
    return lambda project: (project.folder / name).unlink()


def _nothing(project: Project) -> None: ...


#: Name -> change before the first compilation, change after it, and True if the source compiles again.
CHANGES: dict[str, tuple[Callable[[Project], None], Callable[[Project], None], bool]] = {
    "nothing": (_nothing, _nothing, False),
    "the same text": (_nothing, _write("second/inner.h", FILES["second/inner.h"]), False),
    "a header that nothing includes": (_nothing, _write("second/other.h", ""), False),
    "the source": (_nothing, _write("k.cu", SOURCE + "\n"), True),
    "a header of the same size and time": (_nothing, _edit_unseen, True),
    "a header in a folder that comes first":
        (_write("first/any.h", ""), _write("first/value.h", "#define VALUE 3\n"), True),
    "a header in a folder that was not there": (_nothing, _write("first/value.h", "#define VALUE 3\n"), True),
    "a header beside the source": (_nothing, _write("near.h", "#define NEAR 3\n"), True),
    "a header that is asked for": (_nothing, _write("second/later.h", "#define LATER 3\n"), True),
    "a header that is gone":
        (_write("first/value.h", "#define VALUE 3\n"), _remove("first/value.h"), True),
    "a header below a folder that was not there":
        (_write("k.cu", SOURCE.replace("later.h", "a/b/later.h")), _write("a/b/later.h", "#define LATER 3\n"), True),
    "a header beside another": (
        _all(
            _write("k.cu", '#include "sub/part.h"\n' + SOURCE),
            _write("sub/part.h", '#if __has_include("more.h")\n#include "more.h"\n#endif\n'),
        ),
        _write("sub/more.h", "#define LATER 4\n"), True,
    ),
    "a directive in two lines":
        (_write("k.cu", '#if __has_inc\\\nlude("l.h")\n#define LATER 7\n#endif\n' + SOURCE), _write("l.h", ""), True),
    "a header behind a comment": (
        _write("k.cu", SOURCE.replace('#include "near.h"', '/* " */ # /* " */ include /* " */ "near.h"')),
        _write("near.h", "#define NEAR 3\n"), True,
    ),
    "the target of a link": (_link("second/inner.h", "elsewhere.h"), _write("elsewhere.h", "#define INNER 4\n"), True),
    "a link that had no target": (_link("second/later.h", "gone.h"), _write("gone.h", "#define LATER 4\n"), True),
    "a folder that becomes a file": (
        lambda project: (project.folder / "second/later.h").mkdir(),
        _all(lambda project: (project.folder / "second/later.h").rmdir(), _write("second/later.h", "")), True,
    ),
    "a header of the toolkit": (_nothing, _write("first/crt/host_config.h", "#error first\n"), True),
    "options": (_nothing, _flags(FLAGS + " -DMORE"), True),
    "a header that an option includes": (
        _all(_write("first/pre.h", ""), _flags(FLAGS + " -include pre.h")), _write("pre.h", "#define LATER 5\n"), True
    ),
    # never cached
    "a header that a macro names":
        (_write("k.cu", "#define NAME <later.h>\n#if __has_include(NAME)\n#endif\n" + SOURCE), _nothing, True),
    "the time of day": (_write("k.cu", SOURCE + "// __TIME__\n"), _nothing, True),
    "options in a file": (_all(_write("options", "-DMORE"), _flags(FLAGS + " -optf options")), _nothing, True),
}  # fmt: skip


@pytest.mark.parametrize("name", CHANGES)
def test_change_compiles_again_if_it_matters(name: str, project: Project) -> None:
    prepare, change, is_noticed = CHANGES[name]
    prepare(project)
    project.compile()
    change(project)
    without_files = compilations.Compiled(Compilation(ptx="", files=[]), name=None)  # nvcc need not list the files
    assert project.is_compiled(lambda _: without_files) == is_noticed


def test_compilation_is_not_cached_if_a_file_changes_meanwhile(project: Project) -> None:
    def edit_meanwhile(recipe: compilations.Recipe) -> compilations.Compiled:
        compiled = compute.compile_recipe(recipe)
        project.write("second/inner.h", "#define INNER 5\n")
        return compiled

    project.compile(edit_meanwhile)
    assert project.is_compiled()
    assert not project.is_compiled()


def test_cache_gives_the_ptx_of_nvcc(project: Project) -> None:
    for change in (
        _write("first/value.h", "#define VALUE 2\n"), _write("second/inner.h", "#define INNER 3\n"),
        _write("later.h", "#define LATER 4\n"), _remove("first/value.h"),
    ):  # fmt: skip
        change(project)
        recipe = compilations.Recipe(project.folder / "k.cu", instance=None, flags=project.flags, arch="sm_90")
        fresh = compute.compile_recipe(recipe)
        assert project.compile(lambda _, fresh=fresh: fresh) == fresh.compilation.ptx  # type: ignore[misc]
    assert not project.is_compiled()
    listed = project.list_files(recipe).compilation
    assert {*map(os.path.realpath, listed.files)} == {*map(os.path.realpath, fresh.compilation.files)}
