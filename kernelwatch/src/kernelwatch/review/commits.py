"""From what a person types to stored results of two commits, or of two compilers at one commit."""

from __future__ import annotations

import itertools
import re
from dataclasses import dataclass, replace
from pathlib import Path

from asv.util import UserError

from kernelwatch.store import folders, git
from kernelwatch.store.models import Document
from kernelwatch.store.results import History, Point
from kernelwatch.toolchain import releases as compilers

_HASH = re.compile("[0-9a-f]{4,40}")

#: Commits that an error message lists.
_LISTED = 8


class CannotCompareError(Exception):
    """There is nothing to judge; the message says what was given, what exists, and what to do."""


@dataclass(frozen=True)
class Side:
    """One of the two commits: as given, its full hash, and its results."""

    given: str
    commit: str
    results: Document

    @property
    def compiler(self) -> str | None:
        """The compiler of the results, as `kernelwatch.toolchain.releases` calls it; None for the default."""
        return compilers.compiler_of_results(self.results.env_vars)


@dataclass(frozen=True)
class Sides:
    """Two columns of results that one machine measured in the same of asv's environments.

    They are of two commits, or of one by two compilers. The `distance` is how far head lies from base, "3 commits",
    empty where git does not say. The `place` is the machine, and the environment where both have several.
    """

    history: History
    base: Side
    head: Side
    distance: str = ""
    place: str = ""

    @property
    def both(self) -> tuple[Side, Side]:
        """Base and head."""
        return self.base, self.head

    def points(self, benchmark: str) -> list[tuple[Point | None, Point | None]]:
        """What base and head have of each configuration of a benchmark, matched by its parameters."""
        every = (self.history.points(side.results, benchmark) for side in self.both)
        base, head = ({tuple(point.params.items()): point for point in points} for points in every)
        return [(base.get(key), head.get(key)) for key in dict.fromkeys([*base, *head])]

    @property
    def environment(self) -> str:
        """The environment of asv's that head was measured in."""
        return str(self.head.results.env_name)

    @property
    def is_of_compilers(self) -> bool:
        """Whether two compilers are compared, not two commits."""
        return self.base.compiler != self.head.compiler

    @property
    def again(self) -> str:
        """The command that measures them again."""
        if self.is_of_compilers:
            release = self.head.compiler or compilers.DEFAULT
            return f"{compilers.VARIABLE}={release} asv run --record-samples {self.head.commit[:8]}^!"
        return f"kernelwatch measure {self.base.commit[:8]} {self.head.commit[:8]}"


def find(base: str, head: str, name: str | None, root: Path) -> list[Sides]:
    """Return the stored results of two revisions: git's, or beginnings of hashes of commits with results.

    They are of every machine that measured both, or of the machine `name`, in each of asv's environments that both
    share. `root` is the folder that holds `asv.conf.json`, `results/` and the repository.

    Raises CannotCompareError where a revision is unknown, or its results are missing.
    """
    known, given = histories(name, root), (base, head)
    measured = sorted({commit for history in known for commit in history.commits()})
    commits = [resolve(each, root, measured) for each in given]
    distance = _distance(commits[0], commits[1], root)
    found = [replace(each, distance=distance) for history in known for each in sides(history, given, commits)]
    if not found:
        names = " and ".join(f"{text!r} ({commit[:8]})" for text, commit in zip(given, commits, strict=True))
        listed = (f"{history.machine}: {few(history.commits()[::-1])}" for history in known if history.commits())
        missing = [commit for commit in commits if commit not in measured] or commits
        raise CannotCompareError(
            f"no machine has results of both {names} by one Python; results exist of "
            f"{'; '.join(listed) or 'no machine'}; run: "
            + " and ".join(f"asv run --record-samples {commit[:8]}^!" for commit in missing)
        )
    return found


def sides(history: History, given: tuple[str, str], commits: list[str]) -> list[Sides]:
    """The results of one machine from each of asv's environments that both commits have: another is another series."""
    base, head = (history.environments(commit) for commit in commits)
    shared = sorted(base.keys() & head.keys())
    return [
        Sides(
            history,
            Side(given[0], commits[0], base[name]),
            Side(given[1], commits[1], head[name]),
            place=f"{history.machine}, {name}" if shared[1:] else history.machine,
        )
        for name in shared
    ]


def of_compilers(base: str, head: str, commit: str | None, machine: str | None, root: Path) -> Sides:
    """Return the stored results of two compilers, releases of CUDA such as "13.0.2", at one commit.

    That is the newest commit that both compiled, if none is given. Without a `machine`, they are of the one whose
    results of both are newest. Errors and `root` are as of `find`.
    """
    names = [compilers.find_requested_compiler({compilers.VARIABLE: each}) for each in (base, head)]
    known = histories(machine, root)
    both = [[each.by(name) for name in names] for each in known if {*names} <= {*each.compilers}]
    every = {each for history in (*known, *itertools.chain(*both)) for each in history.commits()}
    wanted = resolve(commit, root, sorted(every)) if commit else None
    found = []
    for one, other in both:
        for at in [each for each in one.commits() if each in other.commits() and wanted in (None, each)][-1:]:
            old, new = (list(each.environments(at).values())[-1] for each in (one, other))
            found.append(Sides(one, Side(base, at, old), Side(head, at, new), place=one.machine))
    if not found:
        others = sorted({each or compilers.DEFAULT for history in known for each in history.compilers})
        what, again = (f"of {wanted[:8]} ", wanted[:8]) if wanted else ("", "HEAD")
        raise CannotCompareError(
            f"no machine has results {what}by both {base} and {head}, only by {', '.join(others)}; "
            f"run with each of both: {compilers.VARIABLE}={head} asv run --bench track_ {again}^!"
        )
    return max(found, key=lambda each: min(side.results.date for side in each.both))


def histories(name: str | None, root: Path) -> list[History]:
    """Return the results of a machine, or of every machine. Raises CannotCompareError where none can be read."""
    known = folders.machines(folders.results(root / "results"))
    if not known or (name is not None and name not in known):
        raise CannotCompareError(
            f"{root / 'results'} holds results of {', '.join(known) or 'no machine'}; given: {name or 'none'}; "
            "choose one that it holds (--machine NAME, MACHINE=NAME), or measure here: asv run --record-samples HEAD^!"
        )
    try:
        return [
            History(each, root, compiler=compilers.find_requested_compiler()) for each in ([name] if name else known)
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
