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
    dated = {commit: date for each in by_compiler.values() for commit, date in each.dates().items()}
    built = Counter(commit for each in by_compiler.values() for commit in each.commits())
    most = max(built.values(), default=0)
    if most < 2:
        return None
    commit = max((date, commit) for commit, date in dated.items() if built[commit] == most)[1]
    own = {name: each for name, each in by_compiler.items() if commit in each.commits()}
    codes = [_codes(Cubins(history.folder, name), commit) for name in own]
    resources = {metric: [_resource(each, commit, metric) for each in own.values()] for metric in RESOURCES}
    known = {one for found in codes for one in found}
    known |= {one for each in resources.values() for found in each for one in found}
    every = dict.fromkeys(code for each in codes for code in each.values())
    places = {code: place for place, code in enumerate(every)}
    counted = instructions(history.folder)
    return {
        "commit": commit,
        "compilers": [{"name": name or compilers.DEFAULT, "nvcc": compilers.version_of(name)} for name in own],
        "base": compilers.DEFAULT,
        "instructions": [counted.get(code) for code in places],
        "configurations": [
            {
                **dict(zip(COMPILED.axes, one, strict=True)),
                "code": [places.get(found.get(one, "")) for found in codes],
                **{metric: [found.get(one) for found in each] for metric, each in resources.items()},
            }
            for one in sorted(known)
        ],
        "times": _times(own, commit),
    }


def _order(name: str | None) -> tuple[int, ...]:
    return compilers.order(compilers.version_of(name))


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
    points = history.points(results, name) if name in history.benchmarks("track") else ()
    return {_configuration(point.params): int(point.value) for point in points if point.value is not None}


def _configuration(params: dict[str, str]) -> Configuration:
    kernel, dtype, flags, arch = (params[axis] for axis in COMPILED.axes)
    return kernel, dtype, flags, arch


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
            one = launch(key[0], point.params)
            if one is not None and key in base and point.value and base[key].value:
                rows = ratios.setdefault(f"{one.kernel} {one.flags}", [[] for _ in found])
                rows[place].append(point.value / (base[key].value or 1.0))
    return {name: [geometric_mean(each) if each else None for each in rows] for name, rows in sorted(ratios.items())}
