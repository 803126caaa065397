"""Which commits a run measures: what a person has typed, read as asv reads it."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from asv import util
from asv.benchmarks import Benchmarks
from asv.console import log
from asv.repo import NoSuchNameError

from kernelwatch.store import reading, rows


def selected(conf: Any, repo: Any, options: Mapping[str, Any], results: Path) -> list[str]:
    """Return the hashes of the commits of a range, as `asv run` takes one.

    Raises
    ------
    UserError
        There is no such range, branch or file, or no commit in it.
    """
    asked: Any = options.get("range_spec")
    existing = _existing(results) if asked in ("NEW", "EXISTING") else []
    named: dict[str | None, Callable[[], list[str]]] = {
        None: lambda: list({repo.get_hash_from_name(branch) for branch in conf.branches}),
        "HEAD": lambda: [repo.get_hash_from_name("HEAD")],
        "TAGS": lambda: list(repo.get_tags().values())[::-1],
        "NEW": lambda: repo.get_new_branch_commits(conf.branches, existing),
        "ALL": lambda: repo.get_new_branch_commits(conf.branches, []),
        "EXISTING": lambda: existing,
    }
    try:
        if isinstance(asked, list):
            found = asked
        elif asked in named:
            found = named[asked]()
        elif asked.startswith("HASHFILE:"):
            found = _of_file(repo, asked.removeprefix("HASHFILE:"))
        else:
            found = repo.get_hashes_from_range(asked)
    except NoSuchNameError as error:
        raise util.UserError(f"Unknown branch {error} in configuration") from None
    if options.get("date_period") is not None:
        found = repo.filter_date_period(found, options["date_period"], existing if asked == "NEW" else None)
    if options.get("steps") is not None:
        found = util.pick_n(found, options["steps"])
    if not found:
        raise util.UserError("No commit hashes selected")
    return found


def _existing(results: Path) -> list[str]:
    return sorted({each.commit_hash for path in results.glob("*") for each in reading.iter_documents(path)})


def _of_file(repo: Any, name: str) -> list[str]:
    if name != "-" and not Path(name).is_file():
        raise util.UserError(f'Requested commit hash file "{name}" is not a file')
    text = sys.stdin.read() if name == "-" else Path(name).read_text(encoding="utf-8")
    found = []
    for line in filter(None, map(str.strip, text.splitlines())):
        try:
            found.append(repo.get_hash_from_name(line))
        except NoSuchNameError:
            log.warning(f"Unknown commit hash {line} in input file")
    return found


def left_out(
    results: Path, machine: str, commit: str, environment: str, benchmarks: Benchmarks, options: Mapping[str, Any]
) -> set[str] | None:
    """Return the benchmarks that a commit has, where a run is to skip these; None if it is to skip the commit."""
    found: set[str] = set()
    for each in reading.iter_documents(results / machine, commit):
        if each.commit_hash == commit and options.get("skip_existing_commits"):
            return None
        for name in benchmarks if (each.commit_hash, each.env_name) == (commit, environment) else ():
            row = each.results.get(name)
            if row is not None and row.version == benchmarks[name]["version"]:
                values = rows.reindex(each.get_row(name), benchmarks[name]["params"])["result"]
                has_failed = values is None or None in values
                if options.get("skip_failed" if has_failed else "skip_successful"):
                    found.add(name)
    return found
