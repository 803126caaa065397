"""The command: `kernelwatch accept INCOMING RESULTS --machine NAME --commits REVISION...`."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping, Sequence
from filecmp import cmp
from pathlib import Path

from asv.util import UserError

from kernelwatch.store import git, jsonl, rows, samples, storing
from kernelwatch.store.accept import checks
from kernelwatch.store.accept.checks import SUITE
from kernelwatch.store.accept.refusal import RefusedError, convert, read, require
from kernelwatch.store.git import GitError
from kernelwatch.store.models import RESULT, Document
from kernelwatch.store.record import RECORDS
from kernelwatch.toolchain.releases import of_file
from ptxcount import whole

#: So many benchmarks are named whose numbers differ.
_NAMED = 3


def dates(revisions: Sequence[str], repository: Path, *, ancestors: bool) -> dict[str, int]:
    """Commit -> when it was written in milliseconds, as asv stores it.

    Raises
    ------
    RefusedError
        Git does not know a revision.
    """
    walk = [] if ancestors else ["--no-walk"]
    try:
        said = git.text(repository, "log", *walk, "--format=%H %at", "--end-of-options", *revisions, "--")
    except GitError as error:
        raise RefusedError(f"{' '.join(revisions)}: {error}") from None
    found = (line.split() for line in said.splitlines())
    return {commit: 1000 * int(seconds) for commit, seconds in found}


def accept(
    incoming: Path,
    stored: Path,
    machine: str,
    commits: Mapping[str, int],
    *,
    new_machine: bool = False,
    new_suite: bool = False,
    replace: bool = False,
) -> str:
    """Check what came in, and if all of it is as it should be, take what is expected; say in a sentence what that was.

    Parameters
    ----------
    incoming, stored : Path
        The folder that came, in the shape of `results/`, and the results to add to.
    machine, commits : str, mapping of str to int
        Whose results are expected, commits with their dates in milliseconds. Those of others are passed over.
    new_machine, new_suite : bool
        Whether the machine may be one that `stored` does not know, and whether `benchmarks.json` is taken, too.
    replace : bool
        Whether what came takes the place of stored numbers that differ. What only the stored file has stays.

    Raises
    ------
    RefusedError
        With what is wrong and where; nothing is taken then.
    """
    facts = stored / machine / checks.FACTS
    is_new = machine not in [path.parent.name for path in stored.glob("*/machine.json")]
    admit = f"is no known machine of {stored}: commit its machine.json to admit it"
    require(new_machine or not is_new, repr(machine), admit)
    with storing.alone(stored):
        found = checks.files(incoming, machine)
        given = found.get(f"{machine}/{facts.name}", facts)
        known = read(given if is_new else facts)
        require(given != facts and read(given) == known, f"{machine}/{facts.name}", "is not as it is known")
        described = (incoming if new_suite else stored) / SUITE
        benchmarks = checks.suite(described)
        if new_suite and (stored / SUITE).exists():
            checks.require_same_axes(benchmarks, checks.suite(stored / SUITE), SUITE)
        by_beginning = {commit[:8]: commit for commit in commits}
        taken = {stored / SUITE: described.read_bytes()} if new_suite else {}
        taken |= {facts: given.read_bytes()} if is_new else {}
        total = 0
        for name, path in found.items():
            match, target = RESULT.fullmatch(path.name), stored / name
            if target.exists() and cmp(path, target, shallow=False):
                continue
            if path.name in RECORDS:
                new = checks.lines(path, name, target, commits)
                total += len(new)
                taken |= {target: jsonl.united(target, map(str.encode, new))} if new else {}
            elif match and (commit := by_beginning.get(match["commit"])):
                checks.results(path, name, known, benchmarks, commit, commits[commit], target)
                both = [*target.parent.glob(f"{commit[:8]}-*.json"), *path.parent.glob(f"{commit[:8]}-*.json")]
                others = {each.name for each in both if of_file(each.name) == of_file(path.name)} - {path.name}
                require(not others, name, f"is a second environment of its commit, beside {sorted(others)}")
                content = _taken(path, target, name, replace=replace)
                taken |= {target: content} if content is not None else {}
        for target, content in taken.items():
            at_most = f"would have more than {checks.LARGEST} bytes"
            require(len(content) <= checks.LARGEST, f"{target.parent.name}/{target.name}", at_most)
        facts.parent.mkdir(exist_ok=True)
        for target, content in taken.items():
            whole.write(target, content)
    files = sum(path.suffix == ".json" for path in taken)
    return f"{machine}: {files} files and {total} lines taken"


def _taken(came: Path, stored: Path, where: str, *, replace: bool) -> bytes | None:
    """Return a commit's stored results with those that came and were checked; None if that is what is stored.

    Refuses numbers that differ and are not to replace the stored ones, and a stored file that is not as asv writes it.
    """
    if not stored.exists():
        return came.read_bytes()
    convert(read(stored), Document, stored)
    ours, theirs = (samples.read(path) for path in (came, stored))
    names = rows.differing(ours, theirs)
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    require(
        replace or not names, where,
        f"has other numbers than {stored.parents[1].name}/ for {', '.join(names[:_NAMED])}{more}; all stay as they "
        "are; --replace puts new numbers in the place of stored ones",
    )  # fmt: skip
    both = rows.together(ours, theirs) if replace else rows.together(theirs, ours)
    if both == (ours if replace else theirs):  # rows are the same objects, NaN or not
        return came.read_bytes() if replace else None
    return json.dumps(both, separators=(",", ":")).encode()


def main(words: Sequence[str] | None = None, repository: Path = Path()) -> int:
    """Take results, or say what is wrong with them; return 0 or 1."""
    parser = argparse.ArgumentParser(description="Check results from elsewhere; take them.")
    parser.add_argument("incoming", type=Path, metavar="INCOMING", help="the folder that came, shaped as results/")
    parser.add_argument("results", type=Path, metavar="RESULTS", help="the folder to take them into")
    parser.add_argument("--machine", required=True, help="whose results are expected; RESULTS must know it")
    parser.add_argument("--commits", required=True, nargs="+", metavar="REVISION", help="whose results are expected")
    parser.add_argument("--ancestors", action="store_true", help="results of all ancestors of the commits, too")
    parser.add_argument("--new-suite", action="store_true", help="take INCOMING's benchmarks.json, too")
    parser.add_argument("--replace", action="store_true", help="replace numbers of a commit that RESULTS has")
    options = parser.parse_args(words)
    try:
        commits = dates(options.commits, repository, ancestors=options.ancestors)
        folders = options.incoming, options.results
        print(accept(*folders, options.machine, commits, new_suite=options.new_suite, replace=options.replace))
    except (RefusedError, UserError, OSError) as error:
        # One line, whatever a hostile file is called.
        print("refused:", str(error).encode("unicode_escape").decode()[:1000], file=sys.stderr)
        return 1
    return 0
