"""What Overview, the page of a commit and Regressions show, in one piece: the pages only draw it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from kernelwatch.review.groups import ANY_FLAGS
from kernelwatch.show.site import commits
from kernelwatch.show.site.changes import AT_LEAST, changes
from kernelwatch.show.site.tiles import tiles
from kernelwatch.store.results import History


def overview(histories: Sequence[History], config: Any, repo: Any) -> dict[str, Any]:
    """Return the newest commit and the tiles of each machine, all changes, and the facts of all measured commits.

    Parameters
    ----------
    histories : sequence of History
        The stored results of each machine.
    config : asv.config.Config
        It names where commits are shown.
    repo : asv.plugins.git.Git
        The repository.
    """
    found = [change for history in histories for change in changes(history)]
    dates = {commit: _date(history, commit) for history in histories for commit in history.commits()}
    for change in found:
        touched = sorted({group["kernel"] for group in change["groups"]})
        change["lines"] = commits.lines(repo, change["head"], touched)
        bases = {change["base"] or change["previous"], *(group["base"] for group in change["groups"])}
        change["between"] = {base: commits.between(repo, base, change["head"]) for base in sorted(bases)}
    known = commits.described(repo, dates)
    _explain(found)
    url = config.show_commit_url
    return {
        "at_least": AT_LEAST,
        "commit_url": None if url == commits.PAGE else url,
        "commits": {commit: {"measured": date, **known.get(commit, {})} for commit, date in dates.items()},
        "machines": {history.machine: _machine(history) for history in histories},
        "changes": found,
    }


def _explain(found: list[dict[str, Any]]) -> None:
    """Put what one machine counted beside the times of another that counted nothing of the same two commits.

    `told` marks the groups that only repeat what stands beside times.
    """
    by_head: dict[str, list[tuple[dict[str, Any], dict[str, Any]]]] = defaultdict(list)
    for change in found:
        for group in change["groups"]:
            group["counted_on"], group["told"] = None, False
            by_head[change["head"]].append((change, group))
    for pairs in by_head.values():
        counted = [(change, group) for change, group in pairs if not _is_of_times(group)]
        for change, group in pairs:
            if not _is_of_times(group):
                continue
            for where, other in counted:
                alike = other["flags"] == ANY_FLAGS or group["flags"] in other["flags"].split(", ")
                same = (group["kernel"], group["base"]) == (other["kernel"], other["base"])
                if same and alike and not other["elsewhere"] and where is not change:
                    other["told"] = True
                    if not group["more"] + group["fewer"] + group["noted"]:
                        group["counted_on"] = where["machine"]
                        group["evidence"] = [*group["evidence"], *_of_arch(other["evidence"], change["arch"])]


def _is_of_times(group: dict[str, Any]) -> bool:
    return bool(group["slower"] or group["faster"] or (group["times"] and group["acknowledged"]))


def _of_arch(evidence: Iterable[dict[str, Any]], arch: str | None) -> Iterator[dict[str, Any]]:
    """What holds on one architecture, of evidence some of which names those that it holds on."""
    for each in evidence:
        if not each["archs"] or arch is None or arch in each["archs"]:
            yield {**each, "archs": []}


def _machine(history: History) -> dict[str, Any]:
    newest = history.commits()[-1:]
    results = history.commit(newest[0]) if newest else None
    return {
        "newest": newest[0] if newest else None,
        "gpu": None if results is None else history.timed_run_of(results).get("gpu"),
        "commits": history.commits(),
        "tiles": tiles(history),
    }


def _date(history: History, commit: str) -> int:
    """Of the commit, in milliseconds, as asv stored it."""
    results = history.commit(commit)
    assert results is not None, "it was measured"
    return int(results.date)
