"""The commits that a run measures, and the benchmarks that it skips."""

from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from asv.benchmarks import Benchmarks
from asv.config import Config
from asv.console import log
from asv.plugins.git import Git
from asv.util import UserError

from kernelwatch.runner import revision_range
from kernelwatch.store import git
from tests.commits import begin, commit
from tests.stored import COUNT, TIME, Outcome, write

NAN, DAY = float("nan"), 86_400


@pytest.fixture(scope="module")
def asv_repository(tmp_path_factory: pytest.TempPathFactory) -> tuple[Any, list[str], Path]:
    """Return asv's clone of a repository, the four commits, and a folder with results of the second commit."""
    folder = tmp_path_factory.mktemp("commits")
    root = begin(folder / "root")
    commits = []
    for number in range(4):
        with pytest.MonkeyPatch.context() as patch:
            for role in ("AUTHOR", "COMMITTER"):
                patch.setenv(f"GIT_{role}_DATE", f"@{DAY * (number + 1)} +0000")
            commits.append(commit(root, message=f"{number}"))
            if number < 2:
                git.text(root, "tag", "--annotate", "--message", "a tag", f"v{number}")
    (folder / "results").mkdir()
    write(folder / "results", {commits[1]: {TIME: {"one": 1.0}}})
    return Git(str(root), str(folder / "mirror")), commits, folder / "results" / "results"


#: Range and other options -> commits by number, or an error.
RANGES: list[tuple[Any, dict[str, Any], list[int] | str]] = [
    (None, {}, [3]),
    ("HEAD", {}, [3]),
    ("C0..C2", {}, [2, 1]),
    ("C3^!", {}, [3]),
    ("TAGS", {}, [1, 0]),
    ("ALL", {}, [3, 2, 1, 0]),
    ("NEW", {}, [3, 2]),  # later than the stored commit 1
    ("EXISTING", {}, [1]),
    (["C0", "C3"], {}, [0, 3]),
    ("HASHFILE:FILE", {}, [2, 0]),
    ("ALL", {"steps": 2}, [3, 1]),  # two commits, evenly spaced
    ("ALL", {"date_period": 2 * DAY}, [2, 0]),  # a commit a day, counted from the oldest
    ("NEW", {"date_period": 2 * DAY}, [3]),  # 2 is only a day later than the stored commit 1
    ("C0..C0", {}, "the range .* has no commits; give one with commits, such as HEAD"),
    ("HASHFILE:no-such-file", {}, "HASHFILE:no-such-file names no file; HASHFILE:- reads standard input"),
    ("HASHFILE:FILE", {"interleave_rounds": True}, "'no-such' is not a commit; give a branch, a tag or a hash"),
    ("no-such^!", {}, "'no-such\\^!' names no commits; give a revision, or a range such as"),
    ("C0..no-such --since=2001-01-01", {}, "names no commits"),
    ("", {}, "'' names no commits"),
    ("C3'", {}, "names no commits"),
    (None, {"branches": ["gone"]}, "branch gone of asv.conf.json does not exist; correct `branches`"),
]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"interleave_rounds": True, "dry_run": True},
            r"an interleaved run \(kernelwatch measure, --interleave-rounds\) has no --dry-run",
        ),
        *(({"machine": name}, f"--machine {name} is not the name of a folder; give") for name in ("a/b", "..", "/")),
        ({"attribute": {"rounds": 0}}, "--attribute rounds=0 measures nothing; give 1 or more"),
        ({"bench": ["time", "("]}, r"--bench \( is not a regular expression: missing \), .*; correct it"),
    ],
)
def test_wrong_options_are_errors(options: dict[str, Any], message: str) -> None:
    """Results of a machine in a deeper folder would not be found."""
    with pytest.raises(UserError, match=message):
        revision_range.check_options(options)


@pytest.mark.parametrize(("range_text", "options", "expected"), RANGES, ids=str)
def test_range_selects_commits_or_fails(
    range_text: Any, options: dict[str, Any], expected: Any, asv_repository: Any, tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    """An unknown hash in a file is left out with a warning; in an interleaved run, it is an error."""
    repo, commits, results = asv_repository
    warnings: list[str] = []
    monkeypatch.setattr(log, "warning", warnings.append)
    (tmp_path / "file").write_text(f"{commits[2]}\n\nno-such\n {commits[0]}\n")

    def fill_hashes(text: Any) -> Any:
        for number, commit_hash in enumerate(commits):
            text = text.replace(f"C{number}", commit_hash)
        return text.replace(":FILE", f":{tmp_path / 'file'}")

    range_spec = [*map(fill_hashes, range_text)] if isinstance(range_text, list) else range_text
    range_spec = fill_hashes(range_text) if isinstance(range_text, str) else range_spec
    conf = SimpleNamespace(branches=options.get("branches", ["main"]))
    is_error = isinstance(expected, str)
    with pytest.raises(UserError, match=expected) if is_error else nullcontext():
        selected = revision_range.select_commits(conf, repo, {"range_spec": range_spec, **options}, results)
        assert [commits.index(commit_hash) for commit_hash in selected] == expected
    warning = f"'no-such' in HASHFILE:{tmp_path / 'file'} is not a commit, and is left out"
    assert warnings == [warning] * (range_text == "HASHFILE:FILE" and not options)


@pytest.mark.parametrize("range_spec", [None, "HEAD", "HEAD^!"])
def test_repository_without_commits_is_an_error(range_spec: str | None, tmp_path: Path) -> None:
    repo = Git(str(begin(tmp_path / "root")), str(tmp_path / "mirror"))
    with pytest.raises(UserError, match=r"^the repository has no commits; commit first$"):
        revision_range.select_commits(SimpleNamespace(branches=["main"]), repo, {"range_spec": range_spec}, tmp_path)


#: Options of asv, last letter of the commit, environment, and the skipped benchmarks. Stored in `py` for commit c are a
#: time (its NaN is no failure), a failed time, and a count of another version. Commit d differs only after 8 digits.
LEFT_OUT: list[tuple[dict[str, bool], str, str, set[str]]] = [
    ({}, "c", "py", set()),
    ({"skip_existing_commits": True}, "c", "py", {TIME, f"{TIME}s", COUNT}),
    ({"skip_existing_commits": True}, "c", "other", {TIME, f"{TIME}s", COUNT}),
    ({"skip_existing_commits": True}, "d", "py", set()),
    ({"skip_successful": True}, "c", "py", {TIME}),
    ({"skip_failed": True}, "c", "py", {f"{TIME}s"}),
    ({"skip_failed": True, "skip_successful": True}, "c", "py", {TIME, f"{TIME}s"}),
    ({"skip_successful": True}, "c", "other", set()),
    ({"skip_successful": True}, "d", "py", set()),
]


@pytest.mark.parametrize(("options", "letter", "environment", "expected"), LEFT_OUT)
def test_options_skip_stored_benchmarks(
    options: dict[str, bool], letter: str, environment: str, expected: set[str], tmp_path: Path
) -> None:
    """`skip_existing_commits` counts results of any environment and version; other options, those of the same ones."""
    second_outcomes: dict[str, Outcome] = {TIME: NAN, f"{TIME}s": None, COUNT: 2.0}
    stored: dict[str, dict[str, Outcome]] = {name: {"one": 1.0, "two": two} for name, two in second_outcomes.items()}
    write(tmp_path, {"c" * 40: stored}, environment="py")
    conf = Config.load(str(tmp_path / "asv.conf.json"))
    conf.results_dir = str(tmp_path / "results")
    benchmarks = Benchmarks.load(conf)
    benchmarks[COUNT]["version"] = "2"
    where = (tmp_path / "results", "gpu", "c" * 8 + letter * 32, environment)
    assert revision_range.find_benchmarks_to_skip(*where, benchmarks, options) == expected
