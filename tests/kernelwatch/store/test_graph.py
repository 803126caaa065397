"""Order and branches of commits, with a branch, a merge, an amended commit and equal dates."""

from pathlib import Path

import pytest

from kernelwatch.store import git
from kernelwatch.store.graph import MERGED, NO_BRANCH, UNKNOWN, CommitGraph
from kernelwatch.store.reading import UnreadableError
from tests.commits import begin, commit


@pytest.fixture(scope="module")
def history(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, str]]:
    r"""Return a repository and its commits by name. All commits have nearly the same date.

    M1 - M2 - M3 - G (merges F1) - M4      main
      \ F1 ------/
       \ U1 - U2                          feature, not merged
        \ A                               amended: no branch holds it
    """
    root = begin(tmp_path_factory.mktemp("graph"))
    commits_by_name: dict[str, str] = {}

    def commit_files(*names: str) -> None:
        commits_by_name.update((name, commit(root, message=name)) for name in names)

    commit_files("M1")
    for branch, *names in (("feature", "U1", "U2"), ("other", "F1"), ("amended", "A")):
        git.text(root, "checkout", "--quiet", "-b", branch, commits_by_name["M1"])
        commit_files(*names)
    git.text(root, "checkout", "--quiet", "main")
    commit_files("M2", "M3")
    git.text(root, "merge", "--quiet", "--no-ff", "--no-edit", "other")
    commits_by_name["G"] = git.text(root, "rev-parse", "HEAD")
    commit_files("M4")
    git.text(root, "branch", "--quiet", "-D", "other", "amended")
    return root, commits_by_name


#: Measured commits -> nearest measured ancestor of each commit that has one.
MEASURED: dict[str, dict[str, str]] = {
    "M1 M2 M3 M4": {"M2": "M1", "M3": "M2", "M4": "M3"},
    "M1 U1 M3 U2": {"U1": "M1", "M3": "M1", "U2": "U1"},
    "M1 F1 M2 G": {"F1": "M1", "M2": "M1", "G": "M2"},
    "F1 U2 M4": {"M4": "F1"},
    "A M1 M2": {"A": "M1", "M2": "M1"},
}


@pytest.mark.parametrize("backwards", [False, True])
@pytest.mark.parametrize(("measured", "nearest"), MEASURED.items())
def test_nearest_measured_ancestor_is_found(
    measured: str, nearest: dict[str, str], backwards: bool, history: tuple[Path, dict[str, str]]
) -> None:
    """First parents are searched, then merged commits, whatever the dates. An ancestor precedes in `commits`."""
    root, commits = history
    names = {commits[name]: name for name in measured.split()}
    graph = CommitGraph(root, {commit: -age if backwards else 0 for age, commit in enumerate(names)}, ["main"])
    bases = {names[commit]: names[base] for commit in names if (base := next(graph.iter_ancestors(commit), ""))}
    assert bases == nearest
    for name in names:
        assert all(graph.commits.index(base) < graph.commits.index(name) for base in graph.iter_ancestors(name))


def test_published_line_and_branches(history: tuple[Path, dict[str, str]]) -> None:
    """Commits on the branch's first parents have a position. Other commits have the name of their branch."""
    root, commits = history
    graph = CommitGraph(root, dict.fromkeys([*commits.values(), "f" * 40], 0), ["main"])
    names = {commit: name for name, commit in commits.items()}
    assert {names[commit]: position for commit, position in graph.positions.items()} == {
        "M1": 1, "M2": 2, "M3": 3, "G": 5, "M4": 6,
    }  # fmt: skip
    ends = CommitGraph(root, {commits[name]: 0 for name in ("M1", "M4")}, ["main"])
    assert [*ends.positions.values()] == [1, 6], "commits that are not measured have positions, too"
    assert [*graph.positions] == graph.line
    assert {names.get(commit, "?"): branch for commit, branch in graph.branches.items() if branch} == {
        "U1": "feature", "U2": "feature", "F1": MERGED, "A": NO_BRANCH, "?": UNKNOWN,
    }  # fmt: skip


def test_published_branch_may_be_remote(history: tuple[Path, dict[str, str]]) -> None:
    root, commits = history
    git.text(root, "update-ref", "refs/remotes/origin/theirs", commits["U2"])
    for branch in ("feature", "theirs"):
        own_branch = CommitGraph(root, {commits["U2"]: 0, commits["A"]: 0}, [branch])
        assert (own_branch.line, own_branch.branches[commits["A"]]) == ([commits["U2"]], NO_BRANCH)
    git.text(root, "update-ref", "-d", "refs/remotes/origin/theirs")


def test_missing_published_branch_is_an_error(history: tuple[Path, dict[str, str]]) -> None:
    root, commits = history
    with pytest.raises(UnreadableError, match=r"asv\.conf\.json, branches: there is no branch 'mian'; fetch it"):
        CommitGraph(root, {commits["M1"]: 0}, ["main", "mian"]).line  # noqa: B018


def test_line_of_the_only_or_current_branch(history: tuple[Path, dict[str, str]]) -> None:
    """The line ends at HEAD if a shallow clone lacks the published branch, or only another branch was measured."""
    root, commits = history
    shallow = root / "shallow"
    git.text(root, "clone", "--quiet", "--depth=1", "--branch=feature", root.as_uri(), str(shallow))
    assert CommitGraph(shallow, {commits["U2"]: 0}, ["main"]).line == [commits["U2"]], (
        "a checkout of a pull request in CI has one branch"
    )
    git.text(root, "checkout", "--quiet", "feature")
    assert CommitGraph(root, {commits["U1"]: 0, commits["U2"]: 0}, ["main"]).line == [commits["U1"], commits["U2"]]
    git.text(root, "checkout", "--quiet", "main")


def test_commits_without_git_are_ordered_by_date(tmp_path: Path) -> None:
    graph = CommitGraph(tmp_path, {"a" * 40: 2, "b" * 40: 1, "c" * 40: 3})
    assert [commit[0] for commit in graph.line] == ["b", "a", "c"]
    assert [commit[0] for commit in graph.iter_ancestors("c" * 40)] == ["a", "b"]
