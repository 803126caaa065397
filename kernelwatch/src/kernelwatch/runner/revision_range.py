"""The options of `asv run`: checks, and the commits and the skipped benchmarks of a run."""

import re
import shlex
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from asv import util
from asv.benchmarks import Benchmarks
from asv.console import log
from asv.repo import NoSuchNameError

from kernelwatch.store import reading, result_rows

#: Message for a revision that git does not know.
_NO_COMMIT = "{!r} is not a commit; give a branch, a tag or a hash"


def check_options(options: Mapping[str, Any]) -> None:
    """Raise UserError if an option has no valid value, or two cannot be used together."""
    if options.get("interleave_rounds") and options.get("dry_run"):
        raise util.UserError("an interleaved run (kernelwatch measure, --interleave-rounds) has no --dry-run")
    machine = options.get("machine") or "m"
    if machine.startswith(".") or "/" in machine:  # it names a folder of results
        raise util.UserError(f"--machine {machine} is not the name of a folder; give a name without slashes")
    rounds = (options.get("attribute") or {}).get("rounds", 1)
    if int(rounds) < 1:
        raise util.UserError(f"--attribute rounds={rounds} measures nothing; give 1 or more")
    for pattern in options.get("bench") or ():
        try:
            re.compile(pattern)
        except re.error as error:
            raise util.UserError(f"--bench {pattern} is not a regular expression: {error}; correct it") from None


def select_commits(conf: Any, repo: Any, options: Mapping[str, Any], results: Path) -> list[str]:
    """Return the hashes of the commits that the options of `asv run` select: range, date period and steps.

    Raises UserError if a revision, a branch or the file of hashes does not exist, or no commit is selected.
    """
    range_spec: Any = options.get("range_spec")
    paths = results.glob("*") if range_spec in ("NEW", "EXISTING") else ()
    existing = sorted({document.commit_hash for path in paths for document in reading.iter_documents(path)})
    try:
        if isinstance(range_spec, str) and range_spec.startswith("HASHFILE:"):
            file = range_spec.removeprefix("HASHFILE:")
            commits = _read_hash_file(repo, file, are_all_needed=bool(options.get("interleave_rounds")))
        else:
            commits = _list_commits(range_spec, repo, conf.branches, existing)
    except (NoSuchNameError, util.ProcessError, ValueError) as error:  # ValueError: an unclosed quote, or no text
        raise util.UserError(_explain_failure(error, range_spec, repo)) from None
    if options.get("date_period") is not None:
        commits = repo.filter_date_period(commits, options["date_period"], existing if range_spec == "NEW" else None)
    if options.get("steps") is not None:
        commits = util.pick_n(commits, options["steps"])
    if not commits:
        raise util.UserError(f"the range {range_spec!r} has no commits; give one with commits, such as HEAD^!")
    return commits


def _list_commits(range_spec: Any, repo: Any, branches: Sequence[str], existing: list[str]) -> list[str]:
    """Return the hashes of a range of `asv run`; `existing` are those with results."""
    commits: list[str]
    match range_spec:
        case list():
            commits = range_spec
        case None:
            commits = list({repo.get_hash_from_name(branch) for branch in branches})
        case "HEAD":
            commits = [repo.get_hash_from_name("HEAD")]
        case "TAGS":
            commits = list(repo.get_tags().values())[::-1]
        case "NEW" | "ALL":
            commits = repo.get_new_branch_commits(branches, existing)
        case "EXISTING":
            commits = existing
        case _:
            words = shlex.split(range_spec) or [""]  # git refuses an empty revision
            repo._run_git(["rev-parse", *words, "--"], display_error=False, dots=False)
            commits = repo.get_hashes_from_range(range_spec)
    return commits


def _explain_failure(error: Exception, range_spec: Any, repo: Any) -> str:
    """Return why `_list_commits` failed, and the advice."""
    if not repo._run_git(["rev-list", "--all", "--max-count=1"], dots=False):
        return "the repository has no commits; commit first"
    if not isinstance(error, NoSuchNameError):
        advice = "give a revision, or a range such as v1.0..main, of names that git knows"
        return f"{range_spec!r} names no commits; {advice}"
    if range_spec == "HEAD":
        return "the checked-out branch has no commits; commit first"
    return f"branch {error} of asv.conf.json does not exist; correct `branches`"


def _read_hash_file(repo: Any, name: str, *, are_all_needed: bool) -> list[str]:
    """Return the hashes of the revisions in a file, one per line; "-" is standard input.

    Warn of unknown revisions, or raise UserError if all are needed.
    """
    if name != "-" and not Path(name).is_file():
        raise util.UserError(f"HASHFILE:{name} names no file; HASHFILE:- reads standard input")
    text = sys.stdin.read() if name == "-" else Path(name).read_text(encoding="utf-8")
    commits = []
    for line in filter(None, map(str.strip, text.splitlines())):
        try:
            commits.append(repo.get_hash_from_name(line))
        except NoSuchNameError:
            if are_all_needed:
                raise util.UserError(_NO_COMMIT.format(line)) from None
            log.warning(f"{line!r} in HASHFILE:{name} is not a commit, and is left out")
    return commits


def find_benchmarks_to_skip(
    results: Path, machine: str, commit: str, environment: str, benchmarks: Benchmarks, options: Mapping[str, Any]
) -> set[str]:
    """Return the benchmarks that `--skip-existing...` excludes: those with results, or all of a measured commit."""
    folder, skipped = results / machine, set[str]()
    measured_commits = (document.commit_hash for document in reading.iter_documents(folder, commit))
    if options.get("skip_existing_commits") and commit in measured_commits:
        return set(benchmarks)
    document = reading.find_document(folder, commit, environment)
    if document is None:
        return skipped
    for name in benchmarks:
        row = document.results.get(name)
        if row is None or row.version != benchmarks[name]["version"]:
            continue
        values = result_rows.reindex(document.get_row(name), benchmarks[name]["params"])["result"]
        has_failed = values is None or None in values
        if options.get("skip_failed" if has_failed else "skip_successful"):
            skipped.add(name)
    return skipped
