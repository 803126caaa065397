"""What each watched compiler made of the kernels, at the commit that most of them compiled."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby, pairwise
from statistics import geometric_mean
from typing import Any

from kernelwatch import suite
from kernelwatch.kernel import Launch
from kernelwatch.store.cubins import Cubins, instructions
from kernelwatch.store.results import History
from kernelwatch.toolchain import releases as compilers

#: Kernel, dtype, flags and architecture.
Configuration = tuple[str, str, str, str]

#: What a compiler made of a configuration: the hash of the code, its resources and instructions, None where not known.
Build = Mapping[str, Any]

#: The numbers of a build, by what they are called.
_NUMBERS = {
    "registers": "registers", "B spilled": "spill_bytes", "B shared": "shared_bytes", "instructions": "instructions",
}  # fmt: skip


def described(history: History) -> dict[str, Any] | None:
    """Return what several compilers made of one commit; None where a machine never used two on one.

    Every list has a value a compiler, oldest first, and None where it is not known. `changes` are those of a kernel
    since the release before, by architecture, from the second release on. `resources` are those of each configuration
    of a kernel, in runs of releases that made the same of it: how many, and what. `times` are multiples of the
    default's.

    Parameters
    ----------
    history : History
        The stored results of a machine, by any compiler.
    """
    by_compiler = {name: history.by(name) for name in sorted(history.compilers, key=_order)}
    dated = {commit: date for each in by_compiler.values() for commit, date in each.dates().items()}
    built = Counter(commit for each in by_compiler.values() for commit in each.commits())
    most = max(built.values(), default=0)
    if most < 2:
        return None
    commit = max((date, commit) for commit, date in dated.items() if built[commit] == most)[1]
    own = {name: each for name, each in by_compiler.items() if commit in each.commits()}
    counted = instructions(history.folder)
    builds = [_builds(each, Cubins(history.folder, name), commit, counted) for name, each in own.items()]
    known = sorted({one for each in builds for one in each})
    return {
        "commit": commit,
        "compilers": [{"name": name or compilers.DEFAULT, "nvcc": compilers.version_of(name)} for name in own],
        "base": compilers.DEFAULT,
        "changes": {
            arch: {kernel: _changes(builds, list(found)) for kernel, found in groupby(of_arch, key=lambda one: one[0])}
            for arch in sorted({one[3] for one in known})
            for of_arch in [[one for one in known if one[3] == arch]]
        },
        "resources": {
            kernel: [[*one[1:], list(_runs([each.get(one) for each in builds]))] for one in found]
            for kernel, found in groupby(known, key=lambda one: one[0])
        },
        "times": _times(own, commit),
    }


def _order(name: str | None) -> tuple[int, ...]:
    return compilers.order(compilers.version_of(name))


def _builds(
    history: History, cubins: Cubins, commit: str, counted: Mapping[str, Mapping[str, int]]
) -> dict[Configuration, dict[str, Any]]:
    found: dict[Configuration, dict[str, Any]] = {}
    unknown = dict.fromkeys(("code", *_NUMBERS.values(), "classes"))
    for arch in map(str, suite.COMPILED.axes["arch"]):
        for text, code in cubins.codes(commit, arch).items():
            one, classes = Launch.parse(text), counted.get(code)
            total = None if classes is None else sum(classes.values())
            told = {**unknown, "code": code, "classes": classes, "instructions": total}
            found[one.kernel, one.dtype, one.flags, arch] = told
    results = history.commit(commit)
    assert results is not None, "it was measured"
    for metric in suite.RESOURCES:
        name = f"{suite.COMPILED.module}.{suite.COMPILED.name}.track_{metric}"
        for point in history.points(results, name) if name in history.benchmarks("track") else ():
            if point.value is not None:
                kernel, dtype, flags, arch = (point.params[axis] for axis in suite.COMPILED.axes)
                found.setdefault((kernel, dtype, flags, arch), {**unknown})[metric] = int(point.value)
    return found


def _changes(builds: Sequence[Mapping[Configuration, Build]], configurations: Sequence[Configuration]) -> list[Any]:
    """How many configurations each release compiles otherwise than the one before, and how numbers moved."""
    return [_change([(a[one], b[one]) for one in configurations if one in a and one in b]) for a, b in pairwise(builds)]


def _change(pairs: Iterable[tuple[Build, Build]]) -> str | None:
    known = [pair for pair in pairs if all(each["code"] for each in pair)]
    other = [(a, b) for a, b in known if a["code"] != b["code"]]
    if not other:
        return "same" if known else None
    told = [f"{len(other)} of {len(known)}"]
    for name, number in _NUMBERS.items():
        steps = [b[number] - a[number] for a, b in other if None not in (a[number], b[number])]
        if any(steps):
            told.append(f"{name} {' to '.join(f'{step:+d}' for step in sorted({min(steps), max(steps)}))}")
    return "; ".join(told)


def _runs(builds: Iterable[Build | None]) -> Iterator[tuple[int, str | None]]:
    last = None
    for build, alike in groupby(builds):
        yield len(list(alike)), _told(build, last) if build else None
        last = build or last


def _told(build: Build, last: Build | None) -> str:
    """The numbers of a build, and what of its instructions is other than before."""
    told = [f"{build[each]} {name}" for name, each in _NUMBERS.items() if build[each]]
    if last is not None and build["code"] != last["code"]:
        before, after = (Counter(each["classes"] or {}) for each in (last, build))
        steps = {name: after[name] - before[name] for name in sorted({*before, *after})} if before and after else {}
        moved = [f"{name} {step:+d}" for name, step in steps.items() if step]
        told.append(f"({', '.join(moved) or 'other machine code'})")
    return ", ".join(told)


def _times(histories: dict[str | None, History], commit: str) -> dict[str, list[float | None]]:
    """Return the mean time of each kernel by flags, as multiples of the default's; of what both timed."""
    found = {}
    for compiler, history in histories.items():
        results = history.commit(commit)
        assert results is not None, "it was measured"
        times = history.times(results)
        found[compiler] = {(name, *point.params.values()): point for name, point, _ in times}
    base = found.get(None, {})
    ratios: dict[str, list[list[float]]] = {}
    for place, times_of_one in enumerate(found.values()):
        for key, point in times_of_one.items():
            one = suite.launch(key[0], point.params)
            if one is not None and key in base and point.value and base[key].value:
                rows = ratios.setdefault(f"{one.kernel} {one.flags}", [[] for _ in found])
                rows[place].append(point.value / (base[key].value or 1.0))
    means = {name: [round(geometric_mean(each), 3) if each else None for each in rows] for name, rows in ratios.items()}
    return dict(sorted(means.items()))
