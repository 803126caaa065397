"""asv's environments: one compiler, the Python that runs asv, nothing installed twice, nothing imported twice."""

from __future__ import annotations

import functools
import sys
import tempfile
from importlib.metadata import distributions
from pathlib import Path
from typing import TYPE_CHECKING, Any

from packaging.requirements import InvalidRequirement, Requirement

from kernelwatch import suite
from kernelwatch.asv import background
from kernelwatch.asv.patches import Feature, Patch
from kernelwatch.toolchain import releases

if TYPE_CHECKING:
    from asv.plugins.virtualenv import Virtualenv
    from asv.runner import ForkServer


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
        is_provided = any("kernelwatch provide" in each for each in self._install_command)
        asked = {**self._requirements, **self._base_requirements, "pip+setuptools>=70.1": ""}  # in place of `wheel`
        folders = [*map(str, Path(self._path).glob("lib/python3*/site-packages")), *sys.path]
        if not (is_provided and all(_is_met(name.removeprefix("pip+"), asked[name], folders) for name in asked)):
            install(self)

    return wrapped


def _is_met(name: str, release: str, folders: list[str]) -> bool:
    """Whether the first distribution of that name in some folders is what asv would install."""
    try:
        asked = Requirement(f"{name}=={release}" if release else name)
    except InvalidRequirement:  # a path or an address
        return False
    found = next(iter(distributions(name=asked.name, path=folders)), None)
    return found is not None and not asked.extras and asked.specifier.contains(found.version, prereleases=True)


def _forked(create: Any) -> Any:
    @functools.wraps(create)
    def wrapped(self: ForkServer, name: str, timeout: float, params: str) -> tuple[str | None, str | None]:
        """Have the fork server fork for `setup_cache`: asv starts a Python for each, which imports everything anew."""
        if name not in suite.BENCHMARKS:
            found: tuple[str | None, str | None] = create(self, name, timeout, params)
            return found
        folder = tempfile.mkdtemp()
        said, code = self.run(name, params, "None", background.CACHE, timeout, folder)
        return (folder, None) if code == 0 else (None, f"{said}\nasv: setup_cache failed (exit status {code})".strip())

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
            "environments that install and import nothing twice",
            (
                Patch("asv.plugins.virtualenv:Virtualenv._install_requirements", _what_is_missing, "source 8340b400"),
                Patch("asv.runner:ForkServer.create_setup_cache", _forked, "source e470162b"),
            ),
        ),
    )
