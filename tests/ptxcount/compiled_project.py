"""A project whose compilations are cached."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from ptxcount.gate import compilations, inclusions
from ptxcount.source.cuda_compiler import Compilation

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
#: Content of each file of the project, by name.
FILES = {
    "k.cu": SOURCE,
    "second/value.h": '#pragma once\n#include "inner.h"\n#define VALUE INNER\n',
    "second/inner.h": "#define INNER 1\n",
    "second/near.h": "#define NEAR 1\n",
    "unused/value.h": "#define VALUE 9\n",
    "elsewhere.h": "#define INNER 1\n",
}
#: Layouts as JSON, with `_FOLDER` for the project's folder, by flags, architecture and files of the project.
_ANSWERS: dict[str, bytes] = {}
_FOLDER = b"{project}"


class Project:
    """A folder with a source and headers, and the number of compilations so far."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.flags, self.compiled = folder, FLAGS, 0
        self.layout: inclusions.Layout | None = None
        for name, text in FILES.items():
            self.write(name, text)

    def write(self, name: str, text: str) -> None:
        (self.folder / name).parent.mkdir(parents=True, exist_ok=True)
        (self.folder / name).write_text(text)

    def compile(self, compile_recipe: Callable[[compilations.Recipe], compilations.Compiled] | None = None) -> str:
        """Return the PTX of the source from the cache, or else from `compile_recipe`.

        The default of `compile_recipe` is `list_files`: nvcc only lists the files, in a fifth of the time.
        """

        def count_compilation(recipe: compilations.Recipe) -> compilations.Compiled:
            self.compiled += 1
            return (compile_recipe or self.list_files)(recipe)

        compilations.read_disk.cache_clear()
        self.layout = None
        recipe = compilations.Recipe(self.folder / "k.cu", instance=None, flags=self.flags, arch="sm_90")
        return compilations.load_or_compile(recipe, count_compilation).compilation.ptx

    def is_compiled(self, compile_recipe: Callable[[compilations.Recipe], compilations.Compiled] | None = None) -> bool:
        """Compile or use the cache; return True if the source was compiled."""
        before = self.compiled
        self.compile(compile_recipe)
        return self.compiled > before

    def is_compiled_once(self) -> bool:
        return self.is_compiled() and not self.is_compiled()

    def query_layout(self, source: Path, flags: str, arch: str) -> inclusions.Layout | None:
        """Ask nvcc for the files of a compilation, or use its answer for an equal project; keep it in `layout`."""
        import msgspec

        paths = [path for path in sorted(self.folder.rglob("*")) if path.is_file()]
        key = str([flags, arch, *((path.relative_to(self.folder), path.read_bytes()) for path in paths)])
        if key not in _ANSWERS or "NVCC" in os.environ:
            layout = inclusions.query_layout(source, flags, arch)
            _ANSWERS[key] = msgspec.json.encode(layout).replace(bytes(self.folder), _FOLDER)
        answer = _ANSWERS[key].replace(_FOLDER, bytes(self.folder))
        self.layout = msgspec.json.decode(answer, type=inclusions.Layout | None)
        return self.layout

    def list_files(self, recipe: compilations.Recipe) -> compilations.Compiled:
        """Return a compilation with its list of files, and without PTX."""
        layout = self.layout or self.query_layout(recipe.source, recipe.flags, recipe.arch)
        files = [recipe.source, *map(Path, layout.files if layout else ())]
        return compilations.Compiled(Compilation(ptx="", files=files), name=None)


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    project = Project(tmp_path / "project")
    monkeypatch.setattr(compilations, "query_layout", project.query_layout)
    monkeypatch.chdir(project.folder)
    return project
