"""asv's environments: one compiler, the Python that runs asv, nothing installed twice."""

from __future__ import annotations

import functools
import json
import re
import sys
from importlib.metadata import distributions
from pathlib import Path
from typing import TYPE_CHECKING, Any

from packaging.requirements import InvalidRequirement, Requirement

from kernelwatch import project, settings
from kernelwatch.asv.patches import Feature, Patch
from kernelwatch.store import git
from kernelwatch.toolchain import releases

if TYPE_CHECKING:
    from asv.plugins.virtualenv import Virtualenv

#: In an environment's folder: its packages, and what its installed commit was installed from.
_PACKAGES, _MADE_FROM = "lib/python3*/site-packages", "installed-from.json"

#: What lies beside a package and is not installed with it, in the first folder of a repository.
_BESIDE = re.compile(r"docs|tests|results|\.github|.*\.(md|rst)")


def _one_compiler(iter_matrix: Any) -> Any:
    @functools.wraps(iter_matrix)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        """Leave one of the watched compilers: a run has one."""
        releases.use()
        return releases.one_of_the_matrix(iter_matrix(*args, **kwargs))

    return wrapped


def _this_python(find: Any) -> Any:
    @functools.wraps(find)
    def wrapped(python: str) -> str | None:
        """Take "3", of asv.conf.json, for the Python that runs asv, whatever stands first on PATH."""
        found: str | None = sys.executable if python == "3" else find(python)
        return found

    return wrapped


def _knows_3(is_this_version: Any) -> Any:
    """Take "3" for the Python that runs asv: `asv profile` asks, and finds no environment otherwise."""
    return lambda python: python == "3" or is_this_version(python)


def _what_is_missing(install: Any) -> Any:
    @functools.wraps(install)
    def wrapped(self: Virtualenv) -> None:
        """Install requirements, a pip each, unless the environment will find them all: its own, or this Python's."""
        asked = {**self._requirements, **self._base_requirements, "pip+setuptools>=70.1": ""}  # in place of `wheel`
        folders = [*map(str, Path(self._path).glob(_PACKAGES)), *sys.path]
        if not (_is_provided(self) and all(_is_met(name.removeprefix("pip+"), asked[name], folders) for name in asked)):
            install(self)

    return wrapped


def _is_provided(environment: Virtualenv) -> bool:
    return any("kernelwatch provide" in each for each in environment._install_command or ())


def _what_changed(install: Any) -> Any:
    @functools.wraps(install)
    def wrapped(self: Virtualenv, repo: Any, commit_hash: str, build_dir: str) -> None:
        """Install a commit, unless all that is installed of it is installed already, of an earlier one."""
        note = Path(self._path, _MADE_FROM)
        if note.exists() and note.read_text(encoding="utf-8") == _made_from(self, commit_hash):
            return
        note.unlink(missing_ok=True)
        install(self, repo, commit_hash, build_dir)
        if _is_provided(self) and self._uninstall_command == []:  # else asv takes it away before the next
            note.write_text(_made_from(self, commit_hash), encoding="utf-8")

    return wrapped


def _made_from(environment: Virtualenv, commit: str) -> str:
    """All that a commit's installation is made from, and when the environment's packages were last changed."""
    lines = git.text(Path(environment._build_root), "ls-tree", commit).splitlines()
    named = {line.partition("\t")[2]: line for line in lines}
    beside = {name for name in named if _BESIDE.fullmatch(name)} | {settings.suite_folder()}
    parts = sorted(named[name] for name in named.keys() - (beside - {settings.package()}))
    changed = [path.stat().st_mtime_ns for path in sorted(Path(environment._path).glob(_PACKAGES))]
    return json.dumps([environment._get_install_checksum(), sys.prefix, project.libraries(), parts, changed])


def _is_met(name: str, release: str, folders: list[str]) -> bool:
    """Whether the first distribution of that name in some folders is what asv would install."""
    try:
        asked = Requirement(f"{name}=={release}" if release else name)
    except InvalidRequirement:  # a path or an address
        return False
    found = next(iter(distributions(name=asked.name, path=folders)), None)
    return found is not None and not asked.extras and asked.specifier.contains(found.version, prereleases=True)


def _without_submodules(run: Any) -> Any:
    @functools.wraps(run)
    def wrapped(self: Any, args: list[str], cwd: Any = True, **kwargs: Any) -> str:
        """Ask nothing about submodules where there are none: git's answer is a script of twenty processes."""
        if "submodule" in args and isinstance(cwd, str) and not Path(cwd, ".gitmodules").exists():
            return ""
        found: str = run(self, args, cwd, **kwargs)
        return found

    return wrapped


def features() -> tuple[Feature, ...]:
    """Return what makes them so."""
    return (
        Feature(
            "one compiler a run, and the Python that runs asv for its environments",
            (
                Patch("asv.environment:iter_matrix", _one_compiler, "environment_type pythons conf"),
                Patch("asv.plugins.virtualenv:Virtualenv._find_python", _this_python, "python"),
                Patch("asv.util:env_py_is_sys_version", _knows_3, "env_python"),
            ),
        ),
        Feature(
            "environments that install nothing twice",
            (
                Patch("asv.plugins.virtualenv:Virtualenv._install_requirements", _what_is_missing, "source 8340b400"),
                Patch("asv.environment:Environment._install_project", _what_changed, "repo commit_hash build_dir"),
                Patch("asv.plugins.git:Git._run_git", _without_submodules, "args cwd"),
            ),
        ),
    )
