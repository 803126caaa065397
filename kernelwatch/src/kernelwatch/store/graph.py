"""The order of the measured commits in git: the ancestors to compare with, and the branch of each commit."""

from collections.abc import Iterator, Mapping, Sequence, Set
from functools import cached_property
from pathlib import Path

from kernelwatch.config.project_root import CONFIG_FILE
from kernelwatch.store import git
from kernelwatch.store.reading import UnreadableError

#: Values of `CommitGraph.branches` for commits that are merged, on no branch, or missing in this repository.
MERGED, NO_BRANCH, UNKNOWN = "merged", "no branch", "unknown to git"


class CommitGraph:
    """The history of measured commits. If git knows none of the commits, their dates give the order.

    Parameters
    ----------
    root : Path
        The repository's folder.
    dates : mapping of str to int
        Measured commit -> its date in milliseconds since 1970.
    branches : sequence of str or None
        The published branches, as in asv's configuration. The checked-out branch is used if no named one was measured.
    """

    def __init__(self, root: Path, dates: Mapping[str, int], branches: Sequence[str | None] = ()) -> None:
        self._root, self._dates, self._branches = root, dates, branches

    @cached_property
    def parents(self) -> dict[str, list[str]]:
        """Commit -> its parents, for the measured commits in git and all their ancestors; ancestors come first."""
        words = ("--ignore-missing", "--date-order", "--reverse", *self._dates)
        return self._list_parents(*words) if self._dates else {}

    @cached_property
    def commits(self) -> list[str]:
        """The measured commits, oldest first, each after its ancestors even if the dates disagree."""
        moments, last = dict(self._dates), 0
        places = {commit: place for place, commit in enumerate(self.parents)}
        for commit in self.parents:
            if commit in moments:
                last = moments[commit] = max(last, moments[commit])
        return sorted(moments, key=lambda commit: (moments[commit], places.get(commit, 0), commit))

    def iter_ancestors(self, commit: str) -> Iterator[str]:
        """Yield the measured ancestors of a measured commit, the nearest first.

        Ancestors along first parents come before merged ones, as in asv. A commit that git does not know has none. But
        if git knows none of the commits, yield all earlier measured commits, the newest first.
        """
        if not self.parents:
            yield from self.commits[: self.commits.index(commit)][::-1]
            return
        seen, queue, current = {commit}, [commit], commit
        while parents := self.parents.get(current):
            current = parents[0]
            queue.append(current)
            seen.add(current)
            if current in self._dates:
                yield current
        for descendant in queue:  # it grows during the loop: breadth-first search
            for parent in self.parents.get(descendant, ()):
                if parent not in seen:
                    seen.add(parent)
                    queue.append(parent)
                    if parent in self._dates:
                        yield parent

    @cached_property
    def line(self) -> list[str]:
        """The published line: measured commits on the first parents of published branches; all if git knows none."""
        return [commit for commit in self.commits if not self.branches[commit]]

    @cached_property
    def positions(self) -> dict[str, int]:
        """Commit of `line` -> number of commits, measured or not, that can be reached from this part of the line."""
        positions, reached = dict[str, int](), set[str]()
        for commit in self.line:
            pending = [commit]
            while pending:
                if (current := pending.pop()) not in reached:
                    reached.add(current)
                    pending += self.parents.get(current, ())
            positions[commit] = len(reached)
        return positions

    @cached_property
    def branches(self) -> dict[str, str]:
        """Measured commit -> its branch, or MERGED, NO_BRANCH or UNKNOWN; empty for commits of the published line.

        If git knows none of the commits, all are empty. Raises UnreadableError if a full clone lacks a named branch.
        """
        if not self.parents:
            return dict.fromkeys(self._dates, "")
        published = [tip for branch in self._branches if branch for tip in self._resolve_branch(branch)]
        line, merged = self._trace_line(published)
        if not line & self._dates.keys():  # if only another branch was measured, use the checked-out one
            line, merged = self._trace_line(git.find_commits(self._root, "HEAD"))
        return {
            commit: "" if commit in line else MERGED if commit in merged else self._find_branch(commit)
            for commit in self._dates
        }

    def _trace_line(self, tips: Sequence[str | None]) -> tuple[set[str], Set[str]]:
        """Return the commits on the first parents of tips, and all commits that tips reach; both include the tips."""
        parents, line = self._list_parents(*filter(None, tips)), set[str]()
        for tip in tips:
            commit = tip
            while commit in parents and commit not in line:
                line.add(commit)
                commit = next(iter(parents[commit]), None)
        return line, parents.keys()

    def _resolve_branch(self, branch: str) -> list[str]:
        """Return the tips of a branch in this repository and at origin; only a shallow clone may have none."""
        tips = git.find_commits(self._root, branch, f"origin/{branch}")
        if not any(tips) and not git.is_shallow(self._root):
            advice = "fetch it, or choose another"
            raise UnreadableError(f"{self._root / CONFIG_FILE}, branches: there is no branch {branch!r}; {advice}")
        return list(filter(None, tips))

    def _list_parents(self, *words: str) -> dict[str, list[str]]:
        """Return commit -> its parents, in the order of `git rev-list WORDS`; empty if git fails."""
        output = git.try_text(self._root, "rev-list", "--parents", *words) or ""
        return {commit: parents for commit, *parents in map(str.split, output.splitlines())}

    def _find_branch(self, commit: str) -> str:
        if commit not in self.parents:
            return UNKNOWN
        words = ["for-each-ref", "--format=%(refname:short)", "--contains", commit, "refs/heads", "refs/remotes"]
        return next(iter((git.try_text(self._root, *words) or "").split()), NO_BRANCH)
