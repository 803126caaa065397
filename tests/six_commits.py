"""Six commits, two of them regressions and one the fix of the second, and what the review and the site say of them."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Mapping
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

from kernelwatch.show.commands import compare as main
from tests.repository import SMALL_VALUES, Repository

KERNELS = ("offset_copy", "transpose_read_write_coalesced")

COPY = "gpu_kernels/kernels/offset_copy.cu"
ALIGNED = """    const long long index = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x;
    if (index < size) {
"""
#: The same elements, but each warp begins one later: the output is right, and every warp reaches into another sector.
MISALIGNED = """    const long long thread = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x;
    if (thread < size) {
        const long long index = thread + 1 < size ? thread + 1 : 0;
"""

#: What each commit after the first does: its message, and the file, the old text and the new text.
CHANGES = {
    "another text": ("README.md", "# coalescing-watch", "# Another title"),
    "no padding": ("gpu_kernels/kernels/transpose.cu", "transpose_through_tile<1>", "transpose_through_tile<0>"),
    "misaligned": (COPY, ALIGNED, MISALIGNED),
    "a third text": ("README.md", "# Another title", "# A third title"),
    "aligned again": (COPY, MISALIGNED, ALIGNED),
}
FIRST = "as it is"


def build(folder: Path, values: Mapping[tuple[str, str], Any] = SMALL_VALUES) -> tuple[Repository, dict[str, str]]:
    """Make the repository; it, and its commits: message -> hash, oldest first."""
    repository = Repository(folder, KERNELS, values)
    commits = {FIRST: repository.commit(FIRST)}
    for message, change in CHANGES.items():
        repository.replace(*change)
        commits[message] = repository.commit(message)
    return repository, commits


def before(commits: dict[str, str], message: str) -> str:
    """The hash of the commit before one."""
    return commits[list(commits)[list(commits).index(message) - 1]]


def reviewed(repository: Repository, base: str, head: str) -> tuple[int, list[str], list[str]]:
    """The exit code, what is SLOW or rose beside times, and what is FAST; nothing is UNDECIDED or broken."""
    printed = io.StringIO()
    with redirect_stdout(printed):
        exit_code = main([base, head, "--format", "json"], repository.path)
    assert exit_code in (0, 1), printed.getvalue()
    document = json.loads(printed.getvalue())
    found: dict[str, list[str]] = {"SLOWER": [], "FASTER": [], "UNDECIDED": []}
    for row in document["rows"]:
        if row["verdict"] != "SAME":
            rose = row["verdict"] in ("NOTED", "TRADE")  # beside times that decide
            found["SLOWER" if rose else row["verdict"]].append(row["configuration"])
    assert found["UNDECIDED"] == []
    assert not document["broken"]
    assert document["exit_code"] == exit_code
    return exit_code, sorted(found["SLOWER"]), sorted(found["FASTER"])


def listed(repository: Repository) -> dict[str, str]:
    """The published regressions: configuration -> commit, from regressions.json and the site's numbers of commits."""
    html = repository.path / "html"
    hashes = json.loads((html / "index.json").read_text(encoding="utf-8"))["revision_to_hash"]
    found: dict[str, str] = {}
    entries: list[Any] = json.loads((html / "regressions.json").read_text(encoding="utf-8"))["regressions"]
    for name, _, _, _, _, _, jumps in entries:
        ((before, after, _, _),) = jumps
        assert before is None, "one commit, not a range of them"
        found[name.replace("'", "")] = hashes[str(after)]
    return found


def fed(repository: Repository) -> set[tuple[str, str]]:
    """(benchmark, commit) of the feed's entries, from their links."""
    feed = (repository.path / "html" / "regressions.xml").read_text(encoding="utf-8")
    return set(re.findall(r'<link href="index\.html#([\w.]+)\?[^"]*commits=([0-9a-f]{40})"', feed))


def published(repository: Repository, newest: str) -> dict[str, str]:
    """Publish with a commit as the newest; the regressions, which list and feed both name: configuration -> commit."""
    publish = repository.asv("publish", newest)
    assert publish.returncode == 0, publish.stdout + publish.stderr
    found = listed(repository)
    assert fed(repository) == {(name.partition("(")[0], commit) for name, commit in found.items()}
    return found
