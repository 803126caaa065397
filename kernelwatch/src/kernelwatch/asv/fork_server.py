"""asv's fork server does more than asv asks of it: a Python that has imported the suite once forks for all.

asv starts a Python that imports everything to discover benchmarks, one for each `setup_cache`, and the server.
"""

from __future__ import annotations

import functools
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from asv.console import log
from asv.runner import ForkServer
from asv.util import ProcessError

from kernelwatch import suite
from kernelwatch.asv import background
from kernelwatch.asv.patches import Feature, Patch

#: Of the run under way: the server that has discovered benchmarks, with the commit that it has, until it is asked for.
_Kept = dict[str, ForkServer]
_current: list[_Kept] = []


@contextmanager
def kept(launch_method: str | None) -> Iterator[None]:
    """Let a run that asks for fork servers keep the one that discovers benchmarks."""
    if launch_method != "forkserver":
        yield
        return
    _current.append({})
    try:
        yield
    finally:
        _end(_current.pop())


def _end(servers: _Kept) -> None:
    while servers:
        servers.popitem()[1].close()


def _discovered(run: Any) -> Any:
    @functools.wraps(run)
    def wrapped(self: Any, args: Sequence[str], **kwargs: Any) -> Any:
        """Have a fork server discover benchmarks."""
        if args[1:2] != ["discover"] or not _current:
            return run(self, args, **kwargs)
        _, _, folder, file = args
        _end(_current[-1])  # of a commit that could not be imported
        server = _current[-1][self.installed_commit_hash] = ForkServer(self, folder)
        imported = is_there, said = server.preimport()
        server.preimport = lambda: imported  # asv asks before it measures
        code = 1
        if is_there:
            said, code = server.run(background.DISCOVERY, "", "None", file, None, kwargs["cwd"])
        if code:
            log.error(said)
            raise ProcessError(args, code, said, "")
        return said

    return wrapped


def _kept_one(get: Any) -> Any:
    @functools.wraps(get)
    def wrapped(env: Any, benchmark_dir: str, launch_method: str | None) -> Any:
        """Take the server that has discovered benchmarks, if it has that commit."""
        servers, commit = _current[-1] if _current else {}, env.installed_commit_hash
        if commit in servers and servers[commit].env is env:
            return servers.pop(commit)
        _end(servers)
        return get(env, benchmark_dir, launch_method)

    return wrapped


def _forked(create: Any) -> Any:
    @functools.wraps(create)
    def wrapped(self: ForkServer, name: str, timeout: float, params: str) -> tuple[str | None, str | None]:
        """Have the fork server fork for `setup_cache`."""
        if name not in suite.BENCHMARKS:
            found: tuple[str | None, str | None] = create(self, name, timeout, params)
            return found
        folder = tempfile.mkdtemp()
        said, code = self.run(name, params, "None", background.CACHE, timeout, folder)
        return (folder, None) if code == 0 else (None, f"{said}\nasv: setup_cache failed (exit status {code})".strip())

    return wrapped


def features() -> tuple[Feature, ...]:
    """Return what makes it so; `background` has what is done in the server itself."""
    return (
        Feature(
            "one Python that imports the suite",
            (
                Patch("asv.plugins.virtualenv:Virtualenv.run", _discovered, "args"),
                Patch("asv.runner:get_spawner", _kept_one, "env benchmark_dir launch_method"),
                Patch("asv.runner:ForkServer.create_setup_cache", _forked, "source e470162b"),
            ),
        ),
    )
