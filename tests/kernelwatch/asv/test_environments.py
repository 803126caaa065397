"""What asv's environments install."""

from __future__ import annotations

from importlib.metadata import version
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from kernelwatch.asv import environments
from tests import commits

PROVIDED = ["in-dir={env_dir} /usr/bin/env kernelwatch provide {env_dir}"]
HERE = {"pip+asv_runner": version("asv_runner"), "pip+numpy": ""}


@pytest.mark.parametrize(
    ("asked", "setuptools", "commands", "is_installed"),
    [
        pytest.param(HERE, "80.1", PROVIDED, False, id="all of it is here"),
        pytest.param(HERE, "80.1", ["python -m pip install {build_dir}"], True, id="not provided"),
        pytest.param(HERE | {"pip+numpy": "1.0"}, "80.1", PROVIDED, True, id="another release"),
        pytest.param(HERE | {"no_such_package": ""}, "80.1", PROVIDED, True, id="nowhere"),
        pytest.param(HERE | {"pip+setuptools>=81": ""}, "80.1", PROVIDED, True, id="older in the environment"),
        pytest.param(HERE, "65.5", PROVIDED, True, id="a setuptools that needs wheel"),
        pytest.param({"pip+git+https://example.org/x": ""}, "80.1", PROVIDED, True, id="an address"),
        pytest.param({"pip+numpy[extra]": ""}, "80.1", PROVIDED, True, id="an extra"),
    ],
)
def test_requirements(
    asked: dict[str, str], setuptools: str, commands: list[str], is_installed: bool, tmp_path: Path
) -> None:
    """Nothing is installed if the environment finds all of it: its own distributions come first."""
    own = tmp_path / "lib" / "python3.99" / "site-packages" / f"setuptools-{setuptools}.dist-info"
    own.mkdir(parents=True)
    (own / "METADATA").write_text(f"Name: setuptools\nVersion: {setuptools}\n")
    installed: list[Any] = []
    environment = SimpleNamespace(
        _requirements=asked, _base_requirements={}, _install_command=commands, _path=str(tmp_path)
    )
    environments._what_is_missing(installed.append)(environment)
    assert installed == [environment] * is_installed


@pytest.mark.parametrize(
    ("change", "is_installed"),
    [
        pytest.param([], False, id="nothing"),
        pytest.param(["docs/a.md", "README.md", "benchmarks/a.py"], False, id="what lies beside it"),
        pytest.param(["gpu_kernels/__init__.py"], True, id="the package"),
        pytest.param(["pyproject.toml"], True, id="how it is installed"),
        pytest.param(["setup.py"], True, id="a file that was not there"),
        pytest.param("packages", True, id="somebody installed something else"),
        pytest.param("command", True, id="another command"),
        pytest.param("failed", True, id="the installation before was broken off"),
        pytest.param("uninstalled", True, id="asv takes the commit before away"),
    ],
)
def test_only_what_changed_is_installed(change: list[str] | str, is_installed: bool, tmp_path: Path) -> None:
    """A commit is not installed again if another one was, from the same files, and nothing came between."""
    packages, repository = tmp_path / "lib" / "python3.99" / "site-packages", commits.begin(tmp_path / "repository")
    packages.mkdir(parents=True)
    names = ("gpu_kernels/__init__.py", "pyproject.toml", "benchmarks/a.py", "docs/a.md", "README.md")
    first = commits.commit(repository, dict.fromkeys(names, ""))
    installed: list[str] = []
    environment: Any = SimpleNamespace(
        _path=str(tmp_path), _build_root=str(repository), _install_command=PROVIDED,
        _uninstall_command=None if change == "uninstalled" else [],
        _get_install_checksum=lambda: [environment._install_command],
    )  # fmt: skip
    install = environments._what_changed(lambda _, __, commit, ___: installed.append(commit))
    install(environment, None, first, "")
    if change == "packages":
        (packages / "other.dist-info").mkdir()
    elif change == "command":
        environment._install_command = [*PROVIDED, "pip install"]
    elif change == "failed":
        broken = environments._what_changed(lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            broken(environment, None, commits.commit(repository, {"pyproject.toml": "broken"}), "")
    changed = dict.fromkeys(change, "changed") if isinstance(change, list) else {"pyproject.toml": ""}
    second = commits.commit(repository, changed)
    install(environment, None, second, "")
    assert installed == [first, second][: 1 + is_installed]


def test_submodules_are_asked_for_where_there_are_some(tmp_path: Path) -> None:
    """Git's own answer where there are none takes twenty processes."""
    asked: list[Any] = []
    run = environments._without_submodules(lambda _, args, cwd: asked.append(args))
    for args in (["submodule", "update"], ["checkout"]):
        run(None, args, str(tmp_path))
    (tmp_path / ".gitmodules").touch()
    run(None, ["submodule", "deinit"], cwd=str(tmp_path))
    assert asked == [["checkout"], ["submodule", "deinit"]]
