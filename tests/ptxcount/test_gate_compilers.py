"""Cached compilations: compilers and environment variables that they depend on, and processes that they save."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from ptxcount.gate import compilations, count_cache, inclusions
from ptxcount.source.cuda_compiler import find_nvcc
from tests.ptxcount.compiled_project import Project
from tests.ptxcount.gate_repository import LAUNCH, Repository


def test_variables_of_compilers_are_in_the_key(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    recipe = compilations.Recipe(project.folder / "k.cu", None, project.flags, "sm_90")
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
    """Copy nvcc, and set NVCC to the copy; return its folder."""
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


@pytest.fixture
def cached(own_nvcc: Path, project: Project) -> Project:
    project.compile()
    assert not project.is_compiled()
    return project


def test_changed_nvcc_compiles_again(own_nvcc: Path, cached: Project) -> None:
    program = (own_nvcc / "nvcc").read_bytes()
    (own_nvcc / "nvcc").write_bytes(program)  # the same content with a new time
    assert cached.is_compiled_once()
    with (own_nvcc / "nvcc.profile").open("a") as profile:
        profile.write("\n")
    assert cached.is_compiled_once()


def test_nothing_is_cached_while_the_host_compiler_is_a_script(own_nvcc: Path, cached: Project) -> None:
    gcc = own_nvcc.parents[1] / "path" / "gcc"
    gcc.write_text(f'#!/bin/sh\nexec {shutil.which("gcc")} "$@"\n')
    gcc.chmod(0o755)
    assert cached.is_compiled()
    assert cached.is_compiled()  # the cache cannot know what a script calls
    gcc.unlink()
    assert cached.is_compiled_once()


def test_changed_link_compiles_again(own_nvcc: Path, cached: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    """NVCC is behind a link, first to the copy of the toolkit, then to the toolkit."""
    toolkit = (own_nvcc.parent / "include").resolve().parent
    link = own_nvcc.parents[1] / "link"
    link.symlink_to(own_nvcc.parent)
    monkeypatch.setenv("NVCC", str(link / "bin" / "nvcc"))
    assert cached.is_compiled_once()
    link.unlink()
    link.symlink_to(toolkit)
    assert cached.is_compiled()


def test_nothing_is_cached_while_nvcc_is_a_script(own_nvcc: Path, cached: Project) -> None:
    script = own_nvcc / "nvcc"
    script.rename(own_nvcc / "real-nvcc")
    script.write_text(f'#!/bin/sh\nexec {own_nvcc / "real-nvcc"} "$@"\n')
    script.chmod(0o755)
    assert cached.is_compiled()
    assert cached.is_compiled()


@pytest.mark.parametrize(("options", "folders"), [
    (["-I/x/usr/include"], ["/usr/include"]),  # another folder
    (["-I/usr/include"], []), (["-isystem", "/usr/include"], []),
    (["-Xcompiler=-I/usr/include,-O2"], []),
])  # fmt: skip
def test_folder_of_an_option_is_no_system_folder(options: list[str], folders: list[str]) -> None:
    assert inclusions._list_system_folders(["/usr/include"], options) == folders


def test_unchanged_check_starts_no_process(repository: Repository, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compilations, "query_layout", inclusions.query_layout)
    count_cache.nvcc_release.cache_clear()  # reported by an earlier test's folder
    repository.write_launches(LAUNCH + 'flags = "-I ."\n')
    assert repository.run("pin")[0] == 0
    script = """
import subprocess, sys
from ptxcount.gate.command import main
subprocess.Popen = None
listed = []
sys.addaudithook(lambda event, words: listed.append(words[0]) if event in ("os.listdir", "os.scandir") else None)
print(main(["check"]), *{"numpy", "dataclasses"} & {*sys.modules}, listed.count("/usr/include"))
"""
    done = subprocess.run([sys.executable, "-c", script], cwd=repository.folder, capture_output=True, text=True)
    # exit code 0, none of these modules, and one look into the folder
    assert (done.stdout, done.stderr) == ("1 launch passed\n0 1\n", "")
