"""Select the stored results of two commits, or of two compilers at one commit, by the words that a person types."""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from asv.util import UserError

from kernelwatch.review.sides import Side, Sides
from kernelwatch.store import folders, git
from kernelwatch.store.results import History
from kernelwatch.toolchain import releases as compilers

_HASH = re.compile("[0-9a-f]{4,40}")

#: Commits that an error message lists.
_LISTED = 8


class CannotCompareError(Exception):
    """There is nothing to judge; the message says what was given, what exists, and what to do."""


@dataclass(frozen=True, kw_only=True)
class Selection(Sides):
    """Two sides with the histories that hold them; two compilers have one each."""

    histories: tuple[History, History]
    environments: tuple[str, str]

    @property
    def history(self) -> History:
        """The history of base."""
        return self.histories[0]


def select_commits(base: str, head: str, name: str | None, root: Path) -> list[Selection]:
    """Return the stored results of two revisions: git's, or beginnings of hashes of commits with results.

    They are of every machine that measured both, or of the machine `name`, in each of asv's environments that both
    share. `root` is the folder that holds `asv.conf.json`, `results/` and the repository.

    Raises CannotCompareError where a revision is unknown, or its results are missing.
    """
    histories, given = load_histories(name, root), (base, head)
    measured = sorted({commit for history in histories for commit in history.dates()})
    commits = [resolve(revision, root, measured) for revision in given]
    distance = _distance(commits[0], commits[1], root)
    selections = [
        replace(selection, distance=distance)
        for history in histories
        for selection in select_environments(history, given, commits)
    ]
    if not selections:
        names = " and ".join(f"{text!r} ({commit[:8]})" for text, commit in zip(given, commits, strict=True))
        listed = (f"{history.machine}: {few(history.commits()[::-1])}" for history in histories if history.commits())
        missing = [commit for commit in commits if commit not in measured] or commits
        raise CannotCompareError(
            f"no machine has results of both {names} by one Python; results exist of "
            f"{'; '.join(listed) or 'no machine'}; run: "
            + " and ".join(f"asv run --record-samples {commit[:8]}^!" for commit in missing)
        )
    return selections


def select_environments(history: History, given: tuple[str, str], commits: Sequence[str]) -> list[Selection]:
    """Return the results of one machine from each of asv's environments that both commits have."""
    base, head = (history.environment_names(commit) for commit in commits)
    shared = [name for name in base if name in head]  # another environment is another series
    return [
        Selection(
            machine=history.machine,
            environment=name,
            base=Side(given[0], commits[0], history.compiler),
            head=Side(given[1], commits[1], history.compiler),
            place=f"{history.machine}, {name}" if shared[1:] else history.machine,
            histories=(history, history),
            environments=(name, name),
        )
        for name in shared
    ]


def select_compilers(base: str, head: str, commit: str | None, machine: str | None, root: Path) -> Selection:
    """Return the stored results of two compilers, releases of CUDA such as "13.0.2", at one commit.

    That is the newest commit that both compiled, if none is given. Without a `machine`, they are of the one whose
    results of both are newest. Errors and `root` are as of `select_commits`.
    """
    names = [compilers.find_requested_compiler({compilers.VARIABLE: release}) for release in (base, head)]
    histories = load_histories(machine, root)
    both = [tuple(history.by(name) for name in names) for history in histories if {*names} <= {*history.compilers}]
    every = {each for history in (*histories, *itertools.chain(*both)) for each in history.dates()}
    wanted = resolve(commit, root, sorted(every)) if commit else None
    dated = []
    for old, new in both:
        for at in [each for each in old.commits() if each in new.dates() and wanted in (None, each)][-1:]:
            environments = old.environment_names(at)[-1], new.environment_names(at)[-1]
            selection = Selection(
                machine=old.machine,
                environment=environments[1],
                base=Side(base, at, old.compiler),
                head=Side(head, at, new.compiler),
                place=old.machine,
                histories=(old, new),
                environments=environments,
            )
            dated.append((min(old.dates()[at], new.dates()[at]), selection))
    if not dated:
        others = sorted({name or compilers.DEFAULT for history in histories for name in history.compilers})
        of_commit, again = (f"of {wanted[:8]} ", wanted[:8]) if wanted else ("", "HEAD")
        raise CannotCompareError(
            f"no machine has results {of_commit}by both {base} and {head}, only by {', '.join(others)}; "
            f"run with each of both: {compilers.VARIABLE}={head} asv run --bench track_ {again}^!"
        )
    return max(dated, key=lambda pair: pair[0])[1]


def load_histories(name: str | None, root: Path) -> list[History]:
    """Return the results of a machine, or of every machine. Raises CannotCompareError where none can be read."""
    machines = folders.machines(folders.results(root / "results"))
    if not machines or (name is not None and name not in machines):
        raise CannotCompareError(
            f"{root / 'results'} holds results of {', '.join(machines) or 'no machine'}; given: {name or 'none'}; "
            "choose one that it holds (--machine NAME, MACHINE=NAME), or measure here: asv run --record-samples HEAD^!"
        )
    try:
        return [
            History(each, root, compiler=compilers.find_requested_compiler()) for each in ([name] if name else machines)
        ]
    except UserError as error:
        raise CannotCompareError(f"the results under {root / 'results'} cannot be read: {error}") from None


def _distance(base: str, head: str, root: Path) -> str:
    """How many commits lie between two; empty where git does not know them."""
    said = git.asked(root, "rev-list", "--count", "--left-right", f"{base}...{head}")
    back, ahead = map(int, said.split()) if said else (0, 0)
    told = {"back": back, "ahead" if back else "": ahead}
    return ", ".join(f"{n} commit{'s' * (n != 1)} {where}".strip() for where, n in told.items() if n)


def resolve(given: str, root: Path, measured: list[str]) -> str:
    """The full hash; git's word counts, and where it has none, the stored results'."""
    # A text that begins with a dash must not be an option, nor one with a colon a file.
    found = git.asked(root, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{given}^{{commit}}")
    if found:
        return found
    matches = [commit for commit in measured if _HASH.fullmatch(given) and commit.startswith(given)]
    if len(matches) != 1:
        problem = f"is the beginning of {len(matches)} hashes" if matches else "names no commit"
        raise CannotCompareError(
            f"{given!r} {problem}, neither to git in {root} nor among the stored results of {few(measured)}; "
            "give a branch, a tag or a hash, or fetch the commit: git fetch origin"
        )
    return matches[0]


def few(commits: list[str]) -> str:
    """The beginnings of the first hashes, and how many more there are."""
    shown = ", ".join(commit[:8] for commit in commits[:_LISTED]) or "no commit"
    return f"{shown} and {len(commits) - _LISTED} more" if len(commits) > _LISTED else shown
