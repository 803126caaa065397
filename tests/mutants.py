"""Single faults, planted one by one by Cosmic Ray, and those that no test notices: ``make mutants``.

A session a group of modules is kept in ``.mutants/`` and goes on where it was ended. It works on a copy of the commit
that is checked out. docs/evidence/mutants.md has what was found.
"""

from __future__ import annotations

import argparse
import ast
import os
import random
import shlex
import subprocess
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from kernelwatch.project import ROOT

FOLDER = ROOT / ".mutants"

#: What ends a process of pytest soonest, and leaves nothing behind.
_PYTEST = ("-m", "pytest", "-x", "-q", "--no-header", "--tb=no", "-p", "no:cacheprovider", "-p", "no:xdist")


class Group(NamedTuple):
    """Modules, patterns of the tests that hold them (first what fails soonest), and seconds that count as a failure."""

    modules: tuple[str, ...]
    tests: tuple[str, ...]
    seconds: int = 300


_COUNTER = "ptxcount/src/ptxcount"


def _tests(folder: str, names: str) -> tuple[str, ...]:
    return tuple(f"{folder}/test_{name}.py" for name in names.split())


def _counter(modules: str) -> tuple[str, ...]:
    return tuple(f"{_COUNTER}/{name}.py" for name in modules.split())


def _executor(modules: str, first: str) -> Group:
    """Modules of the executor, which all its tests hold: these before the others."""
    others = "state checks patterns values features unsupported integer floating constant counters parser fuzz"
    tests = dict.fromkeys([*_tests("tests/ptxcount", first), *_tests("tests/ptxcount", others)])
    return Group(_counter(modules), tuple(tests))


GROUPS = {
    "arithmetic": _executor("floating integer convert instructions bfloat directed", "integer floating"),
    "transactions": _executor("transactions counters values warps", "values patterns counters state"),
    "memory": _executor("memory shared races atomics bind_memory bind_atomic", "state checks features"),
    "flow": _executor("flow schedule chunk execute executable", "state features checks unsupported"),
    "instructions": _executor(
        "bind bind_move bind_warp bind_call bind_extended operands errors findings", "unsupported features state checks"
    ),
    "text": _executor("lexer parser statements program", "parser constant unsupported"),
    "command": Group(
        _counter("__main__ arguments command_line host_memory launch listing nvcc"),
        _tests("tests/ptxcount", "launch listing host_memory nvcc command_line"),
    ),
    "review": Group(
        ("kernelwatch/src/kernelwatch/review", "kernelwatch/src/kernelwatch/store/results.py"),
        _tests("tests", "compare_[a-qs-z]* compare acknowledged regressions readme two_runs compare_r*"),
    ),
    "acceptance": Group(
        ("kernelwatch/src/kernelwatch/store/accept",), ("tests/test_accept*.py", "tests/faults/test_hostile*.py")
    ),
    "cache": Group(("gpu_kernels/cache.py",), (*_tests("tests", "cache"), *_tests("tests/faults", "cache"))),
    "kernels": Group(("gpu_kernels/spec.py",), _tests("tests", "spec build contract")),
}


def _copied(commit: str, tree: Path) -> None:
    """Make a clean copy of a commit."""
    if not tree.exists():
        _git(ROOT, "clone", "--quiet", "--shared", str(ROOT), str(tree))
    _git(tree, "checkout", "--quiet", "--force", commit)  # also what a run that was killed left planted


def _git(where: Path, *words: str) -> str:
    done = subprocess.run(["git", *words], cwd=where, check=True, capture_output=True, text=True)
    return done.stdout.strip()


def _begin(group: Group, config: Path, session: Path, tree: Path, most: int, seed: int) -> None:
    """Make a session of all faults, but for those in annotations; with ``most``, of as many, chosen by the seed."""
    tests = dict.fromkeys(str(file.relative_to(tree)) for name in group.tests for file in sorted(tree.glob(name)))
    command = shlex.join([sys.executable, *_PYTEST, *tests])
    config.write_text(
        f"[cosmic-ray]\nmodule-path = {list(group.modules)}\ntimeout = {group.seconds}\nexcluded-modules = []\n"
        f"test-command = {command!r}\ndistributor.name = 'local'\n",
        encoding="utf-8",
    )
    _cosmic_ray(tree, "baseline", str(config))
    _cosmic_ray(tree, "init", str(config), str(session))
    from cosmic_ray.work_db import WorkDB, use_db
    from cosmic_ray.work_item import WorkerOutcome, WorkResult

    with use_db(session, WorkDB.Mode.open) as database:
        items = list(database.work_items)
        annotated = {file: list(_annotated(tree / file)) for file in {item.mutations[0].module_path for item in items}}
        faults = [i for i in items if not _within(i.mutations[0].start_pos, annotated[i.mutations[0].module_path])]
        chosen = random.Random(seed).sample(faults, min(most or len(faults), len(faults)))
        left_out = {item.job_id for item in items} - {item.job_id for item in chosen}
        database.set_multiple_results(left_out, WorkResult(WorkerOutcome.SKIPPED))


#: Line and column.
Position = tuple[int, int]


def _annotated(file: Path) -> Iterator[tuple[Position, Position]]:
    """Where annotations begin and end in a module that are never evaluated: msgspec evaluates those of its models."""
    text = file.read_text(encoding="utf-8")
    nodes = list(ast.walk(ast.parse(text)))
    classes = [node for node in nodes if isinstance(node, ast.ClassDef)] if "import msgspec" in text else []
    fields = {field for each in classes for field in each.body}
    for node in nodes:
        places: Iterable[ast.AST | None] = ()
        if isinstance(node, ast.FunctionDef):
            places = (node.returns, *(a.annotation for a in ast.walk(node.args) if isinstance(a, ast.arg)))
        elif isinstance(node, ast.AnnAssign) and node not in fields:
            places = (node.annotation,)
        for place in places:
            if isinstance(place, ast.expr):
                end = place.end_lineno or place.lineno, place.end_col_offset or place.col_offset
                yield (place.lineno, place.col_offset), end


def _within(position: Position, places: Iterable[tuple[Position, Position]]) -> bool:
    return any(begin <= position < end for begin, end in places)


def _cosmic_ray(tree: Path, *words: str) -> None:
    environment = {**os.environ, "PYTHONPATH": f"{tree}{os.pathsep}{tree / 'ptxcount' / 'src'}"}
    subprocess.run([sys.executable, "-m", "cosmic_ray.cli", *words], cwd=tree, env=environment, check=True)


def _told(name: str, session: Path) -> Iterator[str]:
    """How many faults were tried and noticed; then every one that was not, as a diff."""
    from cosmic_ray.work_db import WorkDB, use_db
    from cosmic_ray.work_item import WorkerOutcome

    with use_db(session, WorkDB.Mode.open) as database:
        done: list[tuple[Any, Any]] = [
            (item, result)
            for item, result in database.completed_work_items
            if result.worker_outcome != WorkerOutcome.SKIPPED
        ]
        pending = len(list(database.pending_work_items))
    killed = sum(result.is_killed for _, result in done)
    late = sum(result.output == "timeout" for _, result in done)  # on a busy machine perhaps a fault that none noticed
    yield f"{name}: {killed} of {len(done)} noticed, {late} by taking too long; {pending} not tried yet"
    for item, result in sorted(
        done, key=lambda pair: (str(pair[0].mutations[0].module_path), pair[0].mutations[0].start_pos)
    ):
        if not result.is_killed:
            fault = item.mutations[0]
            yield f"\n{fault.module_path}:{fault.start_pos[0]} {fault.operator_name}\n{result.diff}"


def main(words: Sequence[str] | None = None) -> int:
    """Plant what is left to plant, and tell what was not noticed."""
    parser = argparse.ArgumentParser("python -m tests.mutants", description=__doc__.splitlines()[0])
    parser.add_argument("groups", nargs="*", metavar="GROUP", help=f"of {', '.join(GROUPS)} (default: all)")
    parser.add_argument("--most", type=int, default=0, help="faults of a group, chosen by the seed (default: all)")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--tell", action="store_true", help="only tell what has been found so far")
    parser.add_argument("--commit", default="HEAD", help="whose sessions begin or go on (default: HEAD)")
    options = parser.parse_args(words)
    commit = _git(ROOT, "rev-parse", "--short=8", options.commit)
    folder, tree = FOLDER / commit, FOLDER / commit / "tree"
    if not options.tell:
        _copied(commit, tree)
    for name in options.groups or GROUPS:
        config, session = folder / f"{name}.toml", folder / f"{name}.sqlite"
        if not options.tell:
            if not session.exists():
                _begin(GROUPS[name], config, session, tree, options.most, options.seed)
            _cosmic_ray(tree, "exec", str(config), str(session))
        if session.exists():
            print("\n".join(_told(name, session)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
