"""Publishing does things once: asv by itself reads all results three times, and asks git for every step of a graph."""

from __future__ import annotations

import functools
import gc
import json
import multiprocessing
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import orjson
from asv import util
from asv.graph import Graph
from asv.plugins.git import Git
from asv.results import Results, iter_results_paths
from asv.util import UserError


@contextmanager
def once(results_dir: str) -> Iterator[None]:
    """Within it, asv's results are those of its beginning, without samples, which no page shows.

    Besides, graphs are put together once instead of three times, and git is asked once what lies between two commits.
    asv has no hook for any of this, so methods of it are replaced meanwhile (asv is pinned).
    """
    every = read(results_dir)
    load = Results.load

    def known(path: str, machine_name: str | None = None) -> Results:
        found = every.get(Path(path).absolute())
        if found is None or machine_name not in (None, found.params.get("machine")):
            return load(path, machine_name=machine_name)  # which says what is wrong
        return found

    replacements = (
        (Results, "load", staticmethod(known)),
        (Graph, "get_data", functools.cache(Graph.get_data)),
        (Git, "get_hashes_from_range", functools.cache(Git.get_hashes_from_range)),
    )
    gc.freeze()  # what was read stays: the collector need not look at all of it again and again
    try:
        with ExitStack() as stack:
            for owner, name, value in replacements:
                stack.enter_context(replaced(owner, name, value))
            yield
    finally:
        gc.unfreeze()


def read(results_dir: str) -> dict[Path, Results | None]:
    """All results without their samples, by file, read by all cores."""
    paths = [Path(folder, name).absolute() for folder, name, _ in iter_results_paths(results_dir)]
    # Forked, since asv has this module from a folder that a fresh process would not find.
    with multiprocessing.get_context("fork").Pool() as pool:
        return dict(zip(paths, pool.imap(_without_samples, paths, chunksize=16), strict=True))


@contextmanager
def replaced(owner: object, name: str, value: Any) -> Iterator[None]:
    """Within it, an attribute of a module or class is `value`."""
    before = vars(owner)[name]
    setattr(owner, name, value)
    try:
        yield
    finally:
        setattr(owner, name, before)


def _loads(text: str) -> Any:
    """What a JSON text says, six times as fast as by `json` where it holds no NaN, which JSON does not know."""
    try:
        return orjson.loads(text)
    except ValueError:
        return json.loads(text)


def _without_samples(path: Path) -> Results | None:
    """What a file holds, lean enough to hand to another process; None if asv cannot read it."""
    try:
        with replaced(util, "json", SimpleNamespace(loads=_loads)):
            results = Results.load(str(path))
    except UserError:
        return None
    for benchmark in results.get_all_result_keys():
        results.remove_samples(benchmark)
    return results
