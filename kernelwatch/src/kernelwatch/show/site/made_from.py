"""All that the reviews of a machine's commits are made from: where nothing of it changed, they are not made again.

A commit has the files of its results, and the lines of the records that name it. All commits share this project's code,
thresholds, acknowledgements and benchmarks, and which compilers and architectures there are.
"""

from __future__ import annotations

import ast
import functools
import re
import subprocess
from collections import defaultdict
from collections.abc import Iterable
from hashlib import sha256
from importlib.metadata import version
from pathlib import Path
from typing import Any

from kernelwatch.project import ROOT
from kernelwatch.review import acknowledged
from kernelwatch.show.site import kept
from kernelwatch.store import noise, record
from kernelwatch.store.accept import suite
from kernelwatch.store.cubins import Cubins
from kernelwatch.store.results import History

#: Packages that a verdict depends on besides this project's.
_PACKAGES = ("asv", "numpy", "scipy")

#: What is measured and what counts, wholly: their modules import each other by relative names.
_WHOLE = (ROOT / "gpu_kernels", ROOT / "ptxcount" / "src")

#: A commit, wherever a line of a record names it.
_HASH = re.compile(rb'"([0-9a-f]{40})"')


class MadeFrom:
    """What the reviews of a machine's commits are made from.

    Parameters
    ----------
    history : History
        The stored results of the machine.
    module : str
        The module that makes the reviews: its code counts, and that of all that it imports.
    """

    def __init__(self, history: History, module: str) -> None:
        folder, results = history.folder, history.folder.parent
        root, commits = acknowledged.beside(history.results), history.commits()
        by_beginning = {commit[:8]: commit for commit in commits}
        #: Commit -> the names and digests of its results.
        self.results: dict[str, list[list[str]]] = defaultdict(list)
        for path in sorted(folder.glob("*-*.json")):
            self.results[by_beginning.get(path.name[:8], "")].append([path.name, digest(path)])
        self._lines: dict[str, list[str]] = defaultdict(list)
        own = [folder / record.FILE, folder / record.FINGERPRINTS_FILE]
        # `instructions.jsonl` and `lines.jsonl` say nothing that a review reads; a cubin may be told by any machine.
        for path in [*own, *sorted(results.glob(f"*/{record.CUBINS_FILE}"))]:
            for line in path.read_bytes().splitlines() if path.exists() else ():
                for commit in set(_HASH.findall(line)):
                    self._lines[commit.decode()].append(f"{path.parent.name} {path.name} {sha256(line).hexdigest()}")
        self._known = _known(root, commits)
        self._head = _head(root)  # of the commit that is checked out, the acknowledgements in the folder count
        self._shared = kept.key(
            history.machine,
            history.compiler,
            code(module),
            [version(package) for package in _PACKAGES],
            [digest(path) for path in (folder / noise.FILE, results / suite.FILE, root / acknowledged.FILE)],
            [
                sorted({str(run.get("nvcc")) for run in record.read(results, path.parent.name)})
                for path in sorted(results.glob(f"*/{record.FILE}"))
            ],
            Cubins(folder, history.compiler).archs(),
        )

    def key(self, commits: Iterable[str], *more: Any) -> str:
        """Return the name of what is made from some commits, and more."""
        facts = [[one, self.results[one], self._lines[one], one in self._known, one == self._head] for one in commits]
        return kept.key(self._shared, facts, more)


def digest(path: Path) -> str:
    """Return the digest of a file; empty where there is none."""
    return sha256(path.read_bytes()).hexdigest() if path.exists() else ""


def _known(root: Path, commits: Iterable[str]) -> set[str]:
    """The commits that git knows: acknowledging asks it what lies between two."""
    words = ["git", "cat-file", "--batch-check=%(objectname)"]
    try:
        said = subprocess.run(words, input="\n".join(commits), cwd=root, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return set()
    return set(said.stdout.split("\n"))


def _head(root: Path) -> str:
    """The commit that is checked out; empty where git does not know one."""
    words = ["git", "rev-parse", "--verify", "--quiet", "HEAD"]
    try:
        return subprocess.run(words, cwd=root, capture_output=True, text=True, check=False).stdout.strip()
    except OSError:
        return ""


def _files(name: str) -> list[Path]:
    places = (ROOT, ROOT / "kernelwatch" / "src")
    return [path for place in places for path in (place / f"{name}.py", place / name / "__init__.py")]


@functools.cache
def code(module: str) -> str:
    """Return the digest of a module, and of all of this project that it imports, however deep."""
    found = {str(path): digest(path) for folder in _WHOLE for path in sorted(folder.rglob("*.py"))}
    wanted = [module]
    while wanted:
        name = wanted.pop().replace(".", "/")
        for path in _files(name):
            if path.exists() and str(path) not in found:
                found[str(path)] = digest(path)
                for node in ast.walk(ast.parse(path.read_bytes())):
                    if isinstance(node, ast.Import):
                        wanted += [each.name for each in node.names]
                    elif isinstance(node, ast.ImportFrom) and node.module:
                        wanted += [node.module, *(f"{node.module}.{each.name}" for each in node.names)]
    return kept.key(sorted((name.removeprefix(str(ROOT)), digest) for name, digest in found.items()))
