"""What asv's environments install, and where `setup_cache` runs."""

from __future__ import annotations

import itertools
from importlib.metadata import version
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from kernelwatch import suite
from kernelwatch.asv import background, environments

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


@pytest.mark.parametrize(("code", "kind"), list(itertools.product((0, 3), suite.Kind)))
def test_setup_cache_is_forked(code: int, kind: suite.Kind) -> None:
    """The server forks for the classes of the suite; what failed is told as asv tells it. Others are left to asv."""
    asked: list[Any] = []

    def run(*question: Any) -> tuple[str, int]:
        asked.append(question)
        return "said", code

    create = environments._forked(lambda _, name, *__: (f"asv's {name}", None))
    server, name = SimpleNamespace(run=run), next(name for name, (of, _) in suite.BENCHMARKS.items() if of is kind)
    folder, said = create(server, name, 7.0, "{}")
    assert said == ("said\nasv: setup_cache failed (exit status 3)" if code else None)
    assert asked == [(name, "{}", "None", background.CACHE, 7.0, asked[0][-1])]
    assert folder == (None if code else asked[0][-1])
    assert create(server, "their.own", 7.0, "{}") == ("asv's their.own", None)
    assert len(asked) == 1


@pytest.mark.parametrize(("file", "called"), [(background.CACHE, "cache"), ("result.json", "run")])
def test_the_server_takes_it(file: str, called: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """By the name of the file that is asked for."""
    calls: list[Any] = []
    monkeypatch.setattr(background, "_setup_cache", lambda asked: calls.append(("cache", asked)))
    words = ("folder", "name", "{}", "None", file)
    background._also_caches(lambda asked: calls.append(("run", asked)))(words)
    assert calls == [(called, words if called == "run" else words[:3])]
