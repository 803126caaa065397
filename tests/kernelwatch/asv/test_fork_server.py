"""What asv's fork server does besides benchmarks, and when it begins."""

from __future__ import annotations

import itertools
from types import SimpleNamespace
from typing import Any

import pytest
from asv.util import ProcessError

from kernelwatch import suite
from kernelwatch.asv import background, fork_server


@pytest.mark.parametrize(("code", "kind"), list(itertools.product((0, 3), suite.Kind)))
def test_setup_cache_is_forked(code: int, kind: suite.Kind) -> None:
    """The server forks for the classes of the suite; what failed is told as asv tells it. Others are left to asv."""
    asked: list[Any] = []

    def run(*question: Any) -> tuple[str, int]:
        asked.append(question)
        return "said", code

    create = fork_server._forked(lambda _, name, *__: (f"asv's {name}", None))
    server, name = SimpleNamespace(run=run), next(name for name, (of, _) in suite.BENCHMARKS.items() if of is kind)
    folder, said = create(server, name, 7.0, "{}")
    assert said == ("said\nasv: setup_cache failed (exit status 3)" if code else None)
    assert asked == [(name, "{}", "None", background.CACHE, 7.0, asked[0][-1])]
    assert folder == (None if code else asked[0][-1])
    assert create(server, "their.own", 7.0, "{}") == ("asv's their.own", None)
    assert len(asked) == 1


@pytest.mark.parametrize(
    ("name", "file", "called"),
    [
        ("a.b", background.CACHE, ("cache", ("folder", "a.b", "{}"))),
        ("a.b", "result.json", ("run", ("folder", "a.b", "{}", "None", "result.json"))),
        (background.DISCOVERY, "result.json", ("discover", ("folder", "result.json"))),
    ],
)
def test_the_server_takes_it(
    name: str, file: str, called: tuple[str, tuple[str, ...]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """By the name of what is asked for, or of its result."""
    calls: list[Any] = []
    monkeypatch.setattr(background, "_setup_cache", lambda asked: calls.append(("cache", asked)))
    monkeypatch.setattr(background, "_discover", lambda asked: calls.append(("discover", asked)))
    background._more(lambda asked: calls.append(("run", asked)))(("folder", name, "{}", "None", file))
    assert calls == [called]


class Server:
    """In the place of asv's: it can import the suite, and discovers benchmarks, if its commit lets it."""

    def __init__(self, env: Any, folder: str) -> None:
        self.env, self.folder, self.log = env, folder, env.log
        self.log.append(f"begin {env.installed_commit_hash}")

    def preimport(self) -> tuple[bool, str]:
        """Once."""
        self.log.append("import")
        return self.env.fails != "import", "said"

    def run(self, *asked: Any) -> tuple[str, int]:
        """Take notes of it."""
        assert asked == (background.DISCOVERY, "", "None", "file", None, "there")
        self.log.append("discover")
        return "said", int(self.env.fails == "discover")

    def close(self) -> None:
        """Take notes of it."""
        self.log.append("end")


@pytest.fixture
def environment(monkeypatch: pytest.MonkeyPatch) -> Any:
    """An environment, in which servers begin."""
    monkeypatch.setattr(fork_server, "ForkServer", Server)
    return SimpleNamespace(installed_commit_hash="c1", log=[], fails="")


def _discover(environment: Any) -> Any:
    run = fork_server._discovered(lambda *_, **__: "asv's")
    return run(environment, ["script", "discover", "benchmarks", "file"], cwd="there")


def _spawner(environment: Any, method: str = "forkserver") -> Any:
    return fork_server._kept_one(lambda *_: "asv's")(environment, "benchmarks", method)


def test_what_discovered_measures(environment: Any) -> None:
    """One server for both, which has imported the suite once. It is whose that asked for it: the run ends no other."""
    with fork_server.kept("forkserver"):
        assert _discover(environment) == "said"
        server = _spawner(environment)
        assert server.preimport() == (True, "said")
        assert _spawner(environment) == "asv's"
    assert environment.log == ["begin c1", "import", "discover"]


@pytest.mark.parametrize("why", ["another commit", "another environment", "nobody measures"])
def test_it_ends_with_the_run(why: str, environment: Any) -> None:
    """A server that nobody has asked for, or that has another commit."""
    with fork_server.kept("forkserver"):
        _discover(environment)
        if why == "another commit":
            environment.installed_commit_hash = "c2"
        asks = SimpleNamespace(**vars(environment)) if why == "another environment" else environment
        assert why == "nobody measures" or _spawner(asks) == "asv's"
    assert environment.log == ["begin c1", "import", "discover", "end"]


@pytest.mark.parametrize("method", [None, "spawn"])
def test_a_run_without_fork_servers(method: str | None, environment: Any) -> None:
    """All is as asv has it."""
    with fork_server.kept(method):
        assert (_discover(environment), _spawner(environment, "spawn")) == ("asv's", "asv's")
    assert _discover(environment) == "asv's"
    assert not environment.log


@pytest.mark.parametrize("fails", ["import", "discover"])
def test_a_commit_that_cannot_be_imported(fails: str, environment: Any) -> None:
    """Asv hears of it as of its own process, and tries another."""
    with fork_server.kept("forkserver"):
        environment.fails = fails
        with pytest.raises(ProcessError):
            _discover(environment)
        environment.installed_commit_hash, environment.fails = "c2", ""
        _discover(environment)
    before = ["begin c1", "import", *["discover"] * (fails == "discover"), "end"]
    assert environment.log == [*before, "begin c2", "import", "discover", "end"]
