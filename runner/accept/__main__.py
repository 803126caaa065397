"""The command: `python -m runner.accept INCOMING RESULTS --machine NAME --commits REVISION...`."""

from __future__ import annotations

import argparse
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from runner.accept import lines, results, strict, suite, tree
from runner.accept.strict import RefusedError, require

_MACHINE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")


def dates(revisions: Sequence[str], repository: Path, *, ancestors: bool) -> dict[str, int]:
    """Commit -> when it was written in milliseconds, as asv stores it.

    Raises
    ------
    RefusedError
        Git does not know a revision.
    """
    walk = [] if ancestors else ["--no-walk"]
    words = ["git", "log", *walk, "--format=%H %at", "--end-of-options", *revisions, "--"]
    done = subprocess.run(words, cwd=repository, capture_output=True, text=True, check=False)
    require(done.returncode == 0, " ".join(revisions), f"git says: {done.stderr.strip()}")
    found = (line.split() for line in done.stdout.splitlines())
    return {commit: 1000 * int(seconds) for commit, seconds in found}


def accept(
    incoming: Path,
    stored: Path,
    machine: str,
    commits: Mapping[str, int],
    *,
    new_suite: bool = False,
    replace: bool = False,
) -> str:
    """Check what came in, and if all of it is as it should be, take what is expected of it.

    Parameters
    ----------
    incoming : Path
        The folder that came, in the shape of `results/`.
    stored : Path
        The results to add to; it knows the machines that may be added to.
    machine : str
        The one whose results are expected; those of others are passed over.
    commits : mapping of str to int
        The expected ones, with their dates in milliseconds; results of others are passed over.
    new_suite : bool
        Whether `benchmarks.json` is taken from what came, or results must fit the stored one.
    replace : bool
        Whether stored results of a commit may be replaced.

    Returns
    -------
    str
        What was taken, in a sentence.

    Raises
    ------
    RefusedError
        With what is wrong and where; nothing is taken then.
    """
    facts = stored / machine / "machine.json"
    require(
        _MACHINE.fullmatch(machine) and facts.is_file(),
        repr(machine),
        f"is no known machine: {stored} holds no machine.json of it; commit one to admit it",
    )
    found = tree.files(incoming)
    known = strict.read(facts)
    given = found.get(f"{machine}/machine.json")
    require(given is not None and strict.read(given) == known, f"{machine}/machine.json", "is not as it is known")
    described = (incoming if new_suite else stored) / suite.FILE
    benchmarks = suite.load(described)

    by_beginning = {commit[:8]: commit for commit in commits}
    copied: list[Path] = [described] if new_suite else []
    appended: dict[Path, list[str]] = {}
    for name, path in found.items():
        folder, _, file = name.rpartition("/")
        match = results.NAME.fullmatch(file)
        if folder != machine:
            continue
        if file in lines.FILES:
            appended[path] = lines.added(path, name, stored / name, commits)
        elif match and match["commit"] in by_beginning and not _same(path, stored / name):
            commit = by_beginning[match["commit"]]
            results.check(path, name, known, benchmarks, commit, commits[commit])
            require(replace or not (stored / name).exists(), name, "differs from what is stored of this commit")
            copied.append(path)

    for path in copied:
        shutil.copyfile(path, stored / path.relative_to(incoming))
    for path, new in appended.items():
        with (stored / path.relative_to(incoming)).open("a", encoding="utf-8") as target:
            target.writelines(f"{line}\n" for line in new)
    total = sum(map(len, appended.values()))
    return f"{machine}: {len(copied)} files and {total} lines taken, of {len(found)} files that came"


def _same(one: Path, other: Path) -> bool:
    return other.exists() and one.read_bytes() == other.read_bytes()


def main(words: Sequence[str] | None = None, repository: Path = Path()) -> int:
    """Take results, or say what is wrong with them; return 0 or 1."""
    parser = argparse.ArgumentParser("python -m runner.accept", description="Check results from elsewhere; take them.")
    parser.add_argument(
        "incoming", type=Path, metavar="INCOMING", help="the folder that came, in the shape of results/"
    )
    parser.add_argument("results", type=Path, metavar="RESULTS", help="the folder to take them into")
    parser.add_argument("--machine", required=True, help="whose results are expected; RESULTS must know it")
    parser.add_argument("--commits", required=True, nargs="+", metavar="REVISION", help="whose results are expected")
    parser.add_argument("--ancestors", action="store_true", help="results of all ancestors of the commits, too")
    parser.add_argument("--new-suite", action="store_true", help="take INCOMING's benchmarks.json, too")
    parser.add_argument("--replace", action="store_true", help="replace results of a commit that RESULTS has")
    options = parser.parse_args(words)
    try:
        commits = dates(options.commits, repository, ancestors=options.ancestors)
        print(
            accept(
                options.incoming,
                options.results,
                options.machine,
                commits,
                new_suite=options.new_suite,
                replace=options.replace,
            )
        )
    except RefusedError as error:
        # One line, whatever a hostile file is called.
        print("refused:", str(error).encode("unicode_escape").decode()[:1000], file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
