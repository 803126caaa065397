"""Cached compilations are valid while nvcc would read the same: against nvcc, change by change."""

from __future__ import annotations

import os
import random
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from ptxcount.gate import cache, compilations, compute, inclusions
from ptxcount.source.nvcc import Compilation, find_nvcc
from tests.ptxcount.gate_repository import LAUNCH, Repository, repository

__all__ = ["repository"]

SOURCE = """\
#include <value.h>
#include "near.h"
#if __has_include(<later.h>)
#include <later.h>
#endif
#ifndef LATER
#define LATER 0
#endif
__global__ void k(int* out) { out[0] = VALUE; out[1] = NEAR; out[2] = LATER; }
"""
FLAGS = "-Ifirst -Isecond -I."
#: Files by name.
FILES = {
    "k.cu": SOURCE,
    "second/value.h": '#pragma once\n#include "inner.h"\n#define VALUE INNER\n',
    "second/inner.h": "#define INNER 1\n",
    "second/near.h": "#define NEAR 1\n",
    "unused/value.h": "#define VALUE 9\n",
    "elsewhere.h": "#define INNER 1\n",
}


class Project:
    """A folder with a source and headers, and its number of compilations."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.flags, self.compiled = folder, FLAGS, 0
        self.layout: inclusions.Layout | None = None
        for name, text in FILES.items():
            self.write(name, text)

    def write(self, name: str, text: str) -> None:
        """Write a file and its folder."""
        (self.folder / name).parent.mkdir(parents=True, exist_ok=True)
        (self.folder / name).write_text(text)

    def compile(self, compile_recipe: Callable[[compilations.Recipe], compilations.Compiled] | None = None) -> str:
        """Compile the source by a function or the cache; return the PTX.

        Without a function nvcc only lists the files, in a fifth of the time, and once if the cache asks as well.
        """

        def count_compilation(recipe: compilations.Recipe) -> compilations.Compiled:
            self.compiled += 1
            return (compile_recipe or self.list_files)(recipe)

        compilations.forget_files()
        self.layout = None
        recipe = (self.folder / "k.cu", None, self.flags, "sm_90")
        return compilations.load_or_compile(recipe, count_compilation)[0].ptx

    def is_compiled(self) -> bool:
        """Return whether a call compiles now."""
        before = self.compiled
        self.compile()
        return self.compiled > before

    def query_layout(self, source: Path, flags: str, arch: str) -> inclusions.Layout | None:
        """Ask nvcc for the files, and keep them."""
        self.layout = inclusions.query_layout(source, flags, arch)
        return self.layout

    def list_files(self, recipe: compilations.Recipe) -> compilations.Compiled:
        """Return a compilation that has files, and no PTX."""
        source, _, flags, arch = recipe
        layout = self.layout or self.query_layout(source, flags, arch)
        return Compilation("", [source, *map(Path, layout.files if layout else ())]), None


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    """Return a cached project in the current folder."""
    project = Project(tmp_path / "project")
    monkeypatch.setattr(compilations, "query_layout", project.query_layout)
    monkeypatch.chdir(project.folder)
    return project


def _write(name: str, text: str) -> Callable[[Project], None]:
    return lambda project: project.write(name, text)


def _edit_unseen(project: Project) -> None:
    """Edit a header, keeping its size and time."""
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


def _nothing(project: Project) -> None: ...


#: Preparation, later change, and whether it is noticed.
CHANGES: dict[str, tuple[Callable[[Project], None], Callable[[Project], None], bool]] = {
    "nothing": (_nothing, _nothing, False),
    "the same text": (_nothing, _write("second/inner.h", FILES["second/inner.h"]), False),
    "a header that nothing includes": (_nothing, _write("second/other.h", ""), False),
    "the source": (_nothing, _write("k.cu", SOURCE + "\n"), True),
    "a header of the same size and time": (_nothing, _edit_unseen, True),
    "a header in a folder that comes first": (
        _write("first/any.h", ""), _write("first/value.h", "#define VALUE 3\n"), True
    ),
    "a header in a folder that was not there": (_nothing, _write("first/value.h", "#define VALUE 3\n"), True),
    "a header beside the source": (_nothing, _write("near.h", "#define NEAR 3\n"), True),
    "a header that is asked for": (_nothing, _write("second/later.h", "#define LATER 3\n"), True),
    "a header that is gone": (
        _write("first/value.h", "#define VALUE 3\n"), lambda project: (project.folder / "first/value.h").unlink(), True
    ),
    "a header below a folder that was not there": (
        _write("k.cu", SOURCE.replace("later.h", "a/b/later.h")), _write("a/b/later.h", "#define LATER 3\n"), True
    ),
    "a header beside another": (
        _all(
            _write("k.cu", '#include "sub/part.h"\n' + SOURCE),
            _write("sub/part.h", '#if __has_include("more.h")\n#include "more.h"\n#endif\n'),
        ),
        _write("sub/more.h", "#define LATER 4\n"), True,
    ),
    "a directive in two lines": (
        _write("k.cu", '#if __has_inc\\\nlude("l.h")\n#define LATER 7\n#endif\n' + SOURCE), _write("l.h", ""), True
    ),
    "a header behind a comment": (
        _write("k.cu", SOURCE.replace('#include "near.h"', '/* " */ # /* " */ include /* " */ "near.h"')),
        _write("near.h", "#define NEAR 3\n"), True,
    ),
    "the target of a link": (
        _link("second/inner.h", "elsewhere.h"), _write("elsewhere.h", "#define INNER 4\n"), True
    ),
    "a link that had no target": (_link("second/later.h", "gone.h"), _write("gone.h", "#define LATER 4\n"), True),
    "a folder that becomes a file": (
        lambda project: (project.folder / "second/later.h").mkdir(),
        _all(lambda project: (project.folder / "second/later.h").rmdir(), _write("second/later.h", "")), True,
    ),
    "a header of the toolkit": (_nothing, _write("first/crt/host_config.h", "#error first\n"), True),
    "options": (_nothing, _flags(FLAGS + " -DMORE"), True),
    "a header that an option includes": (
        _all(_write("first/pre.h", ""), _flags(FLAGS + " -include pre.h")),
        _write("pre.h", "#define LATER 5\n"), True,
    ),
    "a header that a macro names": (
        _write("k.cu", "#define NAME <later.h>\n#if __has_include(NAME)\n#endif\n" + SOURCE), _nothing, True
    ),
    "the time of day": (_write("k.cu", SOURCE + "// __TIME__\n"), _nothing, True),
    "options in a file": (
        _all(_write("options", "-DMORE"), _flags(FLAGS + " -optf options")), _nothing, True
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CHANGES)
def test_changes(name: str, project: Project) -> None:
    """A change that may alter the PTX compiles again; otherwise no compiler starts."""
    prepare, change, is_noticed = CHANGES[name]
    prepare(project)
    project.compile()
    change(project)
    assert project.is_compiled() == is_noticed


def test_variables(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    """Variables of nvcc, gcc and the loader are part of the key; others are not."""
    recipe = (project.folder / "k.cu", None, project.flags, "sm_90")
    before = compilations._find_entry_file(recipe)
    assert before is not None
    for variable in ("CPATH", "NVCC_APPEND_FLAGS", "NVCC_PREPEND_FLAGS", "NVCC_CCBIN", "LD_PRELOAD", "PATH", "LANG"):
        with monkeypatch.context() as patch:
            patch.setenv(variable, f"{os.environ.get(variable, '')}:/nowhere")
            assert compilations._find_entry_file(recipe) not in (before, None)
    monkeypatch.setenv("UNRELATED", "1")
    assert compilations._find_entry_file(recipe) == before


@pytest.fixture
def own_nvcc(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the folder of a copied nvcc, which NVCC names."""
    toolkit, own = find_nvcc().resolve().parents[1], tmp_path / "toolkit"
    (own / "bin").mkdir(parents=True)
    for path in [*toolkit.iterdir(), *(toolkit / "bin").iterdir()]:
        if path.name != "bin":
            link = own / path.relative_to(toolkit)
            shutil.copy2(path, link) if path.name.startswith("nvcc") else link.symlink_to(path)
    monkeypatch.setenv("NVCC", str(own / "bin" / "nvcc"))
    (tmp_path / "path").mkdir()
    monkeypatch.setenv("PATH", f"{tmp_path / 'path'}:{os.environ['PATH']}")
    return own / "bin"


def test_compilers(own_nvcc: Path, project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another nvcc, its settings, or another host compiler are noticed; a script is asked."""
    toolkit = (own_nvcc.parent / "include").resolve().parent
    project.compile()
    assert not project.is_compiled()
    program = (own_nvcc / "nvcc").read_bytes()
    (own_nvcc / "nvcc").write_bytes(program)
    assert project.is_compiled()
    assert not project.is_compiled()
    with (own_nvcc / "nvcc.profile").open("a") as profile:
        profile.write("\n")
    assert project.is_compiled()
    assert not project.is_compiled()
    gcc = own_nvcc.parents[1] / "path" / "gcc"
    gcc.write_text(f'#!/bin/sh\nexec {shutil.which("gcc")} "$@"\n')
    gcc.chmod(0o755)
    assert project.is_compiled()
    assert project.is_compiled()
    gcc.unlink()
    assert project.is_compiled()
    assert not project.is_compiled()
    link = own_nvcc.parents[1] / "link"
    link.symlink_to(own_nvcc.parent)
    monkeypatch.setenv("NVCC", str(link / "bin" / "nvcc"))
    assert project.is_compiled()
    assert not project.is_compiled()
    link.unlink()
    link.symlink_to(toolkit)
    assert project.is_compiled()
    monkeypatch.setenv("NVCC", str(own_nvcc / "nvcc"))
    script = own_nvcc / "nvcc"
    script.rename(own_nvcc / "real-nvcc")
    script.write_text(f'#!/bin/sh\nexec {own_nvcc / "real-nvcc"} "$@"\n')
    script.chmod(0o755)
    assert project.is_compiled()
    assert project.is_compiled()


def test_change_while_nvcc_runs(project: Project) -> None:
    """A compilation is not stored if a file changed meanwhile."""

    def edit_meanwhile(recipe: compilations.Recipe) -> compilations.Compiled:
        compiled = compute.compile_recipe(recipe)
        project.write("second/inner.h", "#define INNER 5\n")
        return compiled

    project.compile(edit_meanwhile)
    assert project.is_compiled()
    assert not project.is_compiled()


def test_random_changes(project: Project) -> None:
    """Random changes of the files give the PTX that nvcc makes, which reads the listed files and is kept."""
    draw = random.Random(1)
    names = ("value.h", "near.h", "later.h", "inner.h")
    for step in range(10):
        header = project.folder / draw.choice(("first", "second", ".")) / draw.choice(names)
        if header.exists() and draw.random() < 0.3 and header.parent.name != "second":
            header.unlink()
        else:
            macros = {"value.h": "VALUE", "near.h": "NEAR", "later.h": "LATER", "inner.h": "INNER"}
            project.write(str(header.relative_to(project.folder)), f"#define {macros[header.name]} {step}\n")
        recipe = (project.folder / "k.cu", None, project.flags, "sm_90")
        fresh = compute.compile_recipe(recipe)
        assert project.compile(lambda _, fresh=fresh: fresh) == fresh[0].ptx  # type: ignore[misc]
    assert not project.is_compiled()
    listed, read = ({*map(os.path.realpath, files)} for files in (project.list_files(recipe)[0].files, fresh[0].files))
    assert listed == read


def test_check_without_nvcc(repository: Repository, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without changes check starts no process and does not import NumPy."""
    monkeypatch.setattr(compilations, "query_layout", inclusions.query_layout)
    cache.nvcc_release.cache_clear()  # reported by an earlier test's folder
    repository.launch(LAUNCH + 'flags = "-I ."\n')
    assert repository.run("pin")[0] == 0
    script = """
import subprocess, sys
from ptxcount.gate.command import main
subprocess.Popen = None
print(main(["check"]), "numpy" in sys.modules)
"""
    done = subprocess.run([sys.executable, "-c", script], cwd=repository.folder, capture_output=True, text=True)
    assert (done.stdout, done.stderr) == ("0 False\n", "")
