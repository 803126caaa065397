"""Which commits a run measures, and what of them it leaves out: what a person has typed, read as asv reads it."""

from __future__ import annotations

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
def known(tmp_path_factory: pytest.TempPathFactory) -> tuple[Any, list[str], Path]:
    """A repository of four commits, the first two with tags, as asv has it; and results of the second."""
    folder = tmp_path_factory.mktemp("commits")
    root = begin(folder / "root")
    found = []
    for number in range(4):
        with pytest.MonkeyPatch.context() as patch:
            for who in ("AUTHOR", "COMMITTER"):
                patch.setenv(f"GIT_{who}_DATE", f"@{DAY * (number + 1)} +0000")
            found.append(commit(root, message=f"{number}"))
            if number < 2:
                git.text(root, "tag", "--annotate", "--message", "a tag", f"v{number}")
    (folder / "results").mkdir()
    write(folder / "results", {found[1]: {TIME: {"one": 1.0}}})
    return Git(str(root), str(folder / "mirror")), found, folder / "results" / "results"


#: What is typed, and other options -> the commits by their numbers, or what is said.
RANGES: list[tuple[Any, dict[str, Any], list[int] | str]] = [
    (None, {}, [3]),
    ("HEAD", {}, [3]),
    ("C0..C2", {}, [2, 1]),
    ("C3^!", {}, [3]),
    ("TAGS", {}, [1, 0]),
    ("ALL", {}, [3, 2, 1, 0]),
    ("NEW", {}, [3, 2]),
    ("EXISTING", {}, [1]),
    (["C0", "C3"], {}, [0, 3]),
    ("HASHFILE:FILE", {}, [2, 0]),
    ("ALL", {"steps": 2}, [3, 1]),
    ("ALL", {"date_period": 2 * DAY}, [2, 0]),
    ("NEW", {"date_period": 2 * DAY}, [3]),
    ("C0..C0", {}, "No commit hashes selected"),
    ("HASHFILE:no-such-file", {}, '"no-such-file" is not a file'),
    (None, {"branches": ["gone"]}, "Unknown branch gone"),
]


@pytest.mark.parametrize(("asked", "more", "expected"), RANGES, ids=str)
def test_ranges(
    asked: Any, more: dict[str, Any], expected: Any, known: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Newest first, as asv has them; a line of a file that is no commit is named."""
    repo, every, results = known
    told: list[str] = []
    monkeypatch.setattr(log, "warning", told.append)
    (tmp_path / "file").write_text(f"{every[2]}\n\nno-such\n {every[0]}\n")

    def filled(text: Any) -> Any:
        for number, each in enumerate(every):
            text = text.replace(f"C{number}", each)
        return text.replace(":FILE", f":{tmp_path / 'file'}")

    range_spec = filled(asked) if isinstance(asked, str) else asked and list(map(filled, asked))
    conf = SimpleNamespace(branches=more.get("branches", ["main"]))
    is_error = isinstance(expected, str)
    with pytest.raises(UserError, match=expected) if is_error else nullcontext():
        found = revision_range.select_commits(conf, repo, {"range_spec": range_spec, **more}, results)
        assert [every.index(each) for each in found] == expected
    assert told == ["Unknown commit hash no-such in input file"] * (asked == "HASHFILE:FILE")


#: What asv is told -> what is left out, of a time that has a value, one that failed, and a count of another version.
LEFT_OUT: list[tuple[dict[str, bool], str, str, set[str] | None]] = [
    ({}, "c", "py", set()),
    ({"skip_existing_commits": True}, "c", "py", None),
    ({"skip_existing_commits": True}, "c", "other", None),
    ({"skip_existing_commits": True}, "d", "py", set()),
    ({"skip_successful": True}, "c", "py", {TIME}),
    ({"skip_failed": True}, "c", "py", {f"{TIME}s"}),
    ({"skip_failed": True, "skip_successful": True}, "c", "py", {TIME, f"{TIME}s"}),
    ({"skip_successful": True}, "c", "other", set()),
    ({"skip_successful": True}, "d", "py", set()),
]


@pytest.mark.parametrize(("options", "letter", "environment", "expected"), LEFT_OUT)
def test_left_out(
    options: dict[str, bool], letter: str, environment: str, expected: set[str] | None, tmp_path: Path
) -> None:
    """A commit that has results, or what it has already: not what another environment or a commit named alike has."""
    stored: dict[str, dict[str, Outcome]] = {
        TIME: {"one": 1.0, "two": NAN},
        f"{TIME}s": {"one": 1.0, "two": None},
        COUNT: {"one": 1.0, "two": 2.0},
    }
    write(tmp_path, {"c" * 40: stored}, environment="py")
    conf = Config.load(str(tmp_path / "asv.conf.json"))
    conf.results_dir = str(tmp_path / "results")
    known = Benchmarks.load(conf)
    known[COUNT]["version"] = "2"
    commit = "c" * 8 + letter * 32
    assert (
        revision_range.find_benchmarks_to_skip(tmp_path / "results", "gpu", commit, environment, known, options)
        == expected
    )
