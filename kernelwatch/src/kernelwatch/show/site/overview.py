"""What Overview, Regressions and the pages of commits tell: `pages.py` and its templates say it in words."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from kernelwatch.review.groups import ANY_FLAGS


def overview(machines: Mapping[str, Mapping[str, Any]], known: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """Return each machine's newest commit and tiles, all changes, and the facts of all measured commits.

    Parameters
    ----------
    machines : mapping
        Machine -> what is told of it, of `machine.Machine`.
    known : mapping
        The measured commits that git knows, as `commits.described` has them.
    """
    dates = {commit: date for told in machines.values() for commit, date in told["dates"].items()}
    branches = {commit: branch for told in machines.values() for commit, branch in told["branches"].items()}
    found = [change for told in machines.values() for change in told["changes"]]
    _explain(found)
    shown = {name: _machine(told) for name, told in machines.items()}
    return {
        "commits": {
            commit: {"measured": date, "branch": branches[commit], **known.get(commit, {})}
            for commit, date in dates.items()
        },
        "machines": dict(sorted(shown.items(), key=lambda each: (-each[1]["date"], -len(each[1]["tiles"])))),
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
    return bool(group["slower"] or group["faster"] or (group["timed"] and group["acknowledged"]))


def _of_arch(evidence: Iterable[tuple[str, list[str]]], arch: str | None) -> Iterator[list[Any]]:
    """What holds on one architecture, of evidence some of which names those that it holds on."""
    return ([said, []] for said, archs in evidence if not archs or arch is None or arch in archs)


def _machine(told: Mapping[str, Any]) -> dict[str, Any]:
    commits = told["commits"]
    newest = next((each for each in reversed(commits) if not told["branches"][each]), None)
    return {
        "newest": newest,
        "date": told["dates"][newest] if newest else 0,
        "commits": commits,
        "tiles": told["tiles"],
        "timed": sum(len(tile["rates"]) for tile in told["tiles"]),
    }
