"""A cache of values that are computed for each measured commit. A value is reused until one of its inputs changes."""

import itertools
import multiprocessing
import os
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import TypeVar

import msgspec

from kernelwatch.store import git, index
from kernelwatch.store.index import digest_code, digest_file, digest_texts
from kernelwatch.store.reading import BENCHMARKS_FILE
from kernelwatch.store.results import History
from kernelwatch.store.source_changes import ACKNOWLEDGED_FILE, locate_project

M = TypeVar("M")

#: Number of commits from which several processes read them.
MIN_PARALLEL = 8

#: Reads a commit, in a worker.
_read_commit: Callable[[str], object]


def load_values_by_commit(
    name: str, history: History, model: type[M], read_commit: Callable[[str], M], root: Path
) -> dict[str, M]:
    """Return commit -> `read_commit(commit)` for all commits of a history, from the cache `name` if possible.

    `model` is the type of a value. New values are encoded and decoded, so they equal cached ones.
    """
    path = index.cache_path(name, history.folder)
    cached = index.load_cached(path, dict[str, model]) or {}  # type: ignore[valid-type]
    keys = compute_keys(history, root)
    missing = [commit for commit, key in keys.items() if key not in cached]
    new = {
        commit: msgspec.msgpack.decode(content, type=model)
        for commit, content in zip(missing, _encode_commits(missing, read_commit), strict=True)
    }
    commits = {commit: new[commit] if commit in new else cached[key] for commit, key in keys.items()}
    if cached.keys() != {*keys.values()}:
        index.save_cached(path, {key: commits[commit] for commit, key in keys.items()})
    return commits


def _encode_commits(commits: Sequence[str], read_commit: Callable[[str], object]) -> list[bytes]:
    """Return the encoded values of commits. If there are many, a process per core reads neighbouring commits."""
    if len(commits) < MIN_PARALLEL or "fork" not in multiprocessing.get_all_start_methods():
        return [msgspec.msgpack.encode(read_commit(commit)) for commit in commits]
    workers = min(os.cpu_count() or 1, len(commits) // 2)
    # A forked process has `read_commit`, which need not be picklable.
    context = multiprocessing.get_context("fork")
    with ProcessPoolExecutor(workers, context, initializer=_set_reader, initargs=(read_commit,)) as pool:
        return list(pool.map(_encode_commit, commits, chunksize=-(-len(commits) // (4 * workers))))


def _set_reader(read_commit: Callable[[str], object]) -> None:
    global _read_commit  # noqa: PLW0603 -- of a worker
    _read_commit = read_commit


def _encode_commit(commit: str) -> bytes:
    return msgspec.msgpack.encode(_read_commit(commit))


def compute_keys(history: History, root: Path) -> dict[str, str]:
    """Return commit -> digest of its inputs: results up to the commit, benchmarks, settings, code, acknowledgements.

    The results include other machines' hashes of machine code. The acknowledgements of the checked-out commit are those
    in its folder. Those of another commit are part of the commit.
    """
    files = {
        prefix: [f"{path.name} {digest_file(path)}" for path in paths]
        for prefix, paths in index.group_files(history.folder).items()
    }
    shared = [history.results / BENCHMARKS_FILE, root / "pyproject.toml", root / "asv.conf.json"]
    identity = history.machine, str(history.compiler), digest_code(root)
    common = digest_texts(*identity, *map(digest_file, shared), *files.get("", ()))
    commits = history.list_commits()
    parents_by_commit = dict(history.graph.parents) or {
        commit: [older] if older else [] for older, commit in itertools.pairwise(["", *commits])
    }
    parents_by_commit |= {commit: [] for commit in commits if commit not in parents_by_commit}  # unknown to git
    lineage: dict[str, str] = {}
    for commit, parents in parents_by_commit.items():
        inherited = (lineage.get(parent, "") for parent in parents)
        lineage[commit] = digest_texts(commit, *files.get(commit[:8], ()), *inherited)
    head = git.try_text(root, "rev-parse", "HEAD")
    acknowledged = digest_file(locate_project(history.results, root) / ACKNOWLEDGED_FILE)
    return {commit: digest_texts(common, lineage[commit], acknowledged if commit == head else "") for commit in commits}
