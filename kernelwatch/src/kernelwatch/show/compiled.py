"""What each watched compiler made of the kernels, at the commit that most of them compiled."""

from __future__ import annotations

from collections import Counter
from statistics import geometric_mean
from typing import Any

from kernelwatch.kernel import Launch
from kernelwatch.store.cubins import Cubins, instructions
from kernelwatch.store.results import History
from kernelwatch.suite import COMPILED, RESOURCES, launch
from kernelwatch.toolchain import releases as compilers

#: Kernel, dtype, flags and architecture.
Configuration = tuple[str, str, str, str]


def described(history: History) -> dict[str, Any] | None:
    """Return what several compilers made of one commit; None where a machine never used two on one.

    Every list has a value a compiler, oldest first, and null where it is not known.

    Parameters
    ----------
    history : History
        The stored results of a machine, by any compiler.
    """
    by_compiler = {name: history.by(name) for name in sorted(history.compilers, key=_order)}
    built = Counter(commit for each in by_compiler.values() for commit in each.commits())
    most = max(built.values(), default=0)
    if most < 2:
        return None
    commit = next(each for each in reversed(_all_commits(by_compiler)) if built[each] == most)
    own = {name: each for name, each in by_compiler.items() if commit in each.commits()}
    codes = [_codes(Cubins(history.folder, name), commit) for name in own]
    resources = [{metric: _resource(each, commit, metric) for metric in RESOURCES} for each in own.values()]
    known = {one for found in codes for one in found} | {
        one for each in resources for found in each.values() for one in found
    }
    distinct = {
        code: place for place, code in enumerate(dict.fromkeys(code for each in codes for code in each.values()))
    }
    counted = instructions(history.folder)
    return {
        "commit": commit,
        "compilers": [{"name": name or compilers.DEFAULT, "nvcc": compilers.version_of(name)} for name in own],
        "base": compilers.DEFAULT,
        "instructions": [counted.get(code) for code in distinct],
        "configurations": [
            {
                **dict(zip(COMPILED.axes, one, strict=True)),
                "code": [distinct.get(found.get(one, "")) for found in codes],
                **{metric: [found[metric].get(one) for found in resources] for metric in RESOURCES},
            }
            for one in sorted(known)
        ],
        "times": _times(own, commit),
    }


def _order(name: str | None) -> tuple[int, ...]:
    return compilers.order(compilers.version_of(name))


def _all_commits(histories: dict[str | None, History]) -> list[str]:
    """Every measured commit, oldest first."""
    dated = {commit: date for each in histories.values() for commit, date in each.dates().items()}
    return sorted(dated, key=lambda commit: (dated[commit], commit))


def _codes(cubins: Cubins, commit: str) -> dict[Configuration, str]:
    found = {}
    for arch in map(str, COMPILED.axes["arch"]):
        for text, code in cubins.codes(commit, arch).items():
            one = Launch.parse(text)
            found[one.kernel, one.dtype, one.flags, arch] = code
    return found


def _resource(history: History, commit: str, metric: str) -> dict[Configuration, int]:
    results, name = history.commit(commit), f"{COMPILED.module}.{COMPILED.name}.track_{metric}"
    assert results is not None, "it was measured"
    if name not in history.benchmarks("track"):
        return {}
    points = history.points(results, name)
    return {_configuration(point.params): int(point.value) for point in points if point.value is not None}


def _configuration(params: dict[str, str]) -> Configuration:
    kernel, dtype, flags, arch = (params[axis] for axis in COMPILED.axes)
    return kernel, dtype, flags, arch


def _times(histories: dict[str | None, History], commit: str) -> dict[str, list[float | None]]:
    """Return the mean time of each kernel by flags, as multiples of the default's; of what both timed."""
    found = [
        {(name, *point.params.values()): point for name, point, _ in each.times(results)}
        for each in histories.values()
        if (results := each.commit(commit)) is not None
    ]
    base = found[list(histories).index(None)] if None in histories else {}
    ratios: dict[str, list[list[float]]] = {}
    for place, times in enumerate(found):
        for key, point in times.items():
            one = launch(key[0], point.params)
            if one is not None and key in base and point.value and base[key].value:
                rows = ratios.setdefault(f"{one.kernel} {one.flags}", [[] for _ in found])
                rows[place].append(point.value / (base[key].value or 1.0))
    return {name: [geometric_mean(each) if each else None for each in rows] for name, rows in sorted(ratios.items())}
