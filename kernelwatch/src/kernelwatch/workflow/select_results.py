"""Select the stored results of two commits, or of two compilers at one commit, from the user's arguments."""

import itertools
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from kernelwatch.review.sides import ReviewSide, ReviewSides
from kernelwatch.store import folders, git
from kernelwatch.store.reading import UnreadableError
from kernelwatch.store.results import History
from kernelwatch.toolchain import releases as compilers
from ptxcount.util.grammar import count_noun

_HASH = re.compile("[0-9a-f]{4,40}")

#: Pattern of the dots in a range of commits.
_RANGE = re.compile(r"\.{2,3}")

#: Maximum number of commits that an error message lists.
_LISTED = 8


class CannotCompareError(Exception):
    """Results cannot be compared or searched; the message says why, and if possible what to do."""


@dataclass(frozen=True, kw_only=True)
class Selection(ReviewSides):
    """The two sides of a review, with the history and asv's environment of each; two compilers have two histories."""

    histories: tuple[History, History]
    environments: tuple[str, str]

    @property
    def history(self) -> History:
        """The history of base."""
        return self.histories[0]


def select_commits(base: str, head: str, machine: str | None, root: Path) -> list[Selection]:
    """Return one selection for each of asv's environments in which a machine measured two revisions.

    A revision is one of git's, or the abbreviated hash of a commit with results. If `machine` is given, only this
    machine counts. `root` is the folder of `asv.conf.json` and the repository.

    Raises CannotCompareError if a revision is unknown, or its results are missing or not readable.
    """
    histories, revisions = load_histories(machine, root), (base, head)
    measured = _list_measured(histories)
    commits = [resolve_commit(revision, root, measured) for revision in revisions]
    distance = _format_distance(commits[0], commits[1], root)
    selections = [
        replace(selection, distance=distance)
        for history in histories
        for selection in select_environments(history, revisions, commits)
    ]
    if not selections:
        names = [f"{text!r} ({commit[:8]})" for text, commit in zip(revisions, commits, strict=True)]
        listed = (
            f"{history.machine}: {format_commits(history.list_commits()[::-1])}"
            for history in histories
            if history.list_commits()
        )
        missing = {commit: name for commit, name in zip(commits, names, strict=True) if commit not in measured}
        problem = f"no machine measured both {' and '.join(names)} in one environment"
        if missing:
            problem = f"there are no results of {' and '.join(missing.values())}"
        if compiler := compilers.find_requested_compiler():
            problem += f" by the nvcc of {compilers.VARIABLE}={compiler}"
        raise CannotCompareError(
            f"{problem}; results exist for {'; '.join(listed) or 'no machine'}; run: "
            + " and ".join(f"asv run --record-samples {commit[:8]}^!" for commit in missing or commits)
        )
    return selections


def select_environments(history: History, revisions: tuple[str, str], commits: Sequence[str]) -> list[Selection]:
    """Return one selection for each of asv's environments in which a machine measured both commits."""
    base, head = (history.list_environments(commit) for commit in commits)
    shared = [name for name in base if name in head]  # environments are separate series
    return [
        Selection(
            machine=history.machine,
            environment=name,
            base=ReviewSide(revisions[0], commits[0], history.compiler),
            head=ReviewSide(revisions[1], commits[1], history.compiler),
            where=f"{history.machine}, {name}" if shared[1:] else history.machine,
            histories=(history, history),
            environments=(name, name),
        )
        for name in shared
    ]


def select_compilers(base: str, head: str, commit: str | None, machine: str | None, root: Path) -> Selection:
    """Return the stored results of two compilers (releases of CUDA such as "13.0.2") at one commit.

    The default commit is the newest that both compilers compiled. The default machine is that with the newest such
    commit. `root` is as in `select_commits`. Raises CannotCompareError if a release is not valid, or results are
    missing.
    """
    for text in (base, head):
        if not compilers.RELEASE_PATTERN.fullmatch(text):
            raise CannotCompareError(f"{text!r} is not a release of CUDA; give two, such as {compilers.DEFAULT}")
    old, new = (compilers.find_requested_compiler({compilers.VARIABLE: release}) for release in (base, head))
    histories = load_histories(machine, root)
    pairs = [
        (history.select_compiler(old), history.select_compiler(new))
        for history in histories
        if {old, new} <= {*history.compilers}
    ]
    measured = _list_measured([*histories, *itertools.chain(*pairs)])
    chosen = resolve_commit(commit, root, measured) if commit else None
    selections = list(filter(None, (_select_newest(base, head, *pair, chosen) for pair in pairs)))
    if not selections:
        used_compilers = sorted({name or compilers.DEFAULT for history in histories for name in history.compilers})
        at_commit, revision = (f" at {chosen[:8]}", chosen[:8]) if chosen else ("", "HEAD")
        raise CannotCompareError(
            f"no machine has results of both {base} and {head}{at_commit}, only of {', '.join(used_compilers)}; "
            f"measure each missing release: {compilers.VARIABLE}=RELEASE asv run --bench track_ {revision}^!"
        )
    return max(
        selections,
        key=lambda selection: min(history.commit_dates()[selection.head.commit] for history in selection.histories),
    )


def _select_newest(base: str, head: str, old: History, new: History, commit: str | None) -> Selection | None:
    """Return the results of two releases at a commit, by default the newest in both histories; None without any."""
    shared = [measured for measured in old.list_commits() if measured in new.commit_dates()]
    candidates = [measured for measured in shared if commit in (None, measured)]
    if not candidates:
        return None
    newest = candidates[-1]
    environments = old.list_environments(newest)[-1], new.list_environments(newest)[-1]
    return Selection(
        machine=old.machine,
        environment=environments[1],
        base=ReviewSide(base, newest, old.compiler),
        head=ReviewSide(head, newest, new.compiler),
        where=old.machine,
        histories=(old, new),
        environments=environments,
    )


def load_histories(machine: str | None, root: Path) -> list[History]:
    """Return the history of one machine, or those of all machines if `machine` is None.

    Raises CannotCompareError if there are no results, or they cannot be read.
    """
    try:
        machines = folders.list_machines(folder := folders.results_folder(root))
        if not machines:
            raise CannotCompareError(f"{folder} has no results; run: asv run --record-samples HEAD^!")
        if machine is not None and machine not in machines:
            raise CannotCompareError(
                f"{folder} has no results of {machine}, only of {', '.join(machines)}; choose one, "
                "--machine NAME; to measure here, run: asv run --record-samples HEAD^!"
            )
        return [
            History(name, root, compiler=compilers.find_requested_compiler())
            for name in ([machine] if machine else machines)
        ]
    except UnreadableError as error:
        raise CannotCompareError(str(error)) from None


def _list_measured(histories: Sequence[History]) -> list[str]:
    """Return the hashes of the commits in some histories, newest first."""
    dates = {commit: date for history in histories for commit, date in history.commit_dates().items()}
    return sorted(dates, key=lambda commit: (-dates[commit], commit))


def _format_distance(base: str, head: str, root: Path) -> str:
    """Format the distance between two commits, as in "3 commits" or "1 commit back, 3 commits ahead".

    The text is empty if the commits are equal, or git does not know them.
    """
    counts = git.try_text(root, "rev-list", "--count", "--left-right", f"{base}...{head}")
    back, ahead = map(int, counts.split()) if counts else (0, 0)
    if not back:
        return count_noun(ahead, "commit") if ahead else ""
    back_text = f"{count_noun(back, 'commit')} back"
    return f"{back_text}, {count_noun(ahead, 'commit')} ahead" if ahead else back_text


def resolve_commit(revision: str, root: Path, measured: list[str]) -> str:
    """Return the full hash of a revision, from git, or else from the hashes of measured commits.

    Raises CannotCompareError if neither knows it, or several measured hashes begin with it.
    """
    if full_hash := git.find_commit(root, revision):
        return full_hash
    matches = [commit for commit in measured if _HASH.fullmatch(revision) and commit.startswith(revision)]
    if ".." in revision:
        raise CannotCompareError(
            f"{revision!r} is a range; give its ends as two arguments: {' '.join(_RANGE.split(revision))}"
        )
    if len(matches) != 1:
        problem = f"is the beginning of {len(matches)} hashes" if matches else f"is not a commit of {root}"
        stored = f"; results exist for {format_commits(measured)}" if measured and not matches else ""
        raise CannotCompareError(
            f"{revision!r} {problem}{stored}; give a branch, a tag or a hash, or fetch the commit: git fetch origin"
        )
    return matches[0]


def format_commits(commits: list[str]) -> str:
    """Format the first _LISTED hashes, abbreviated, and the number of further ones."""
    shown = ", ".join(commit[:8] for commit in commits[:_LISTED]) or "no commit"
    return f"{shown} and {len(commits) - _LISTED} more" if len(commits) > _LISTED else shown
