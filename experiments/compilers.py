"""What each release of nvcc made of the kernels, and the times of what two of them made otherwise.

python -m experiments.compilers --render docs/evidence/compilers.md   # from results/, as `make compilers` left them
python -m experiments.compilers --carry FOLDER 13.0.2 13.5.0          # what a machine without these compilers needs
python -m experiments.compilers --time FOLDER 13.0.2 13.5.0           # there: times of what differs, into results/
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import geometric_mean
from typing import Any

from experiments import pages
from gpu_kernels import nvcc
from kernelwatch.asv import suite
from kernelwatch.project import ROOT
from kernelwatch.review.commits import CannotCompareError
from kernelwatch.review.comparison import compare
from kernelwatch.review.releases import find
from kernelwatch.review.rows import Row
from kernelwatch.review.verdict import Verdict
from kernelwatch.show.compiled import described
from kernelwatch.store.results import TIMED, History, machines
from kernelwatch.toolchain import releases as compilers

#: The architecture whose code is carried: H100 and H200.
ARCH = "sm_90"

#: Environment variable with the folder of compiled kernels.
_CACHE = "GPU_KERNELS_CACHE"

#: In the folder that is carried: what asv is to time, a regular expression a line.
_TIMED = "timed.txt"

#: Stands where a compiler is: it says which one it is, and its output lies in the cache.
_STAND_IN = """\
#!/bin/sh
# Everything that nvcc {release} compiles here is in the cache: GPU_KERNELS_CACHE.
here=$(dirname "$0")
case "$*" in
  --version) cat "$here/version.txt" ;;
  "--cubin probe.cu") cp "$here/probe.cubin" probe.cubin ;;
  *) echo "only what nvcc {release} made was carried here, and not this: $*" >&2; exit 1 ;;
esac
"""

_BUILD = """\
from kernelwatch.instrument import prebuild, tools
prebuild.everywhere(["{arch}"])
tools.prebuild("{arch}")
"""

_METRICS = {"registers": "registers", "spill_bytes": "spilled bytes", "instructions": "instructions"}

_HOW = """\
Every watched release of nvcc compiled every kernel, element type and flag set for three architectures. Machine code is
the same if instructions and constants are, byte by byte; registers and spilled bytes are those that ptxas reports;
instructions are counted in what nvdisasm prints, without the padding at the end. No GPU is involved. The website's page
Compilers has every configuration, and instructions by class."""


def _known() -> tuple[str, dict[str, Any]]:
    """Return the machine with most compilers, and what it has."""
    every = {name: described(History(name)) for name in machines(ROOT / "results")}
    found = {name: each for name, each in every.items() if each}
    if not found:
        raise SystemExit("no commit was compiled by two compilers; run: make compilers")
    return max(found.items(), key=lambda item: len(item[1]["compilers"]))


def _values(known: dict[str, Any], one: dict[str, Any], metric: str, place: int) -> int | None:
    if metric != "instructions":
        value: int | None = one[metric][place]
        return value
    code = one["code"][place]
    counted = None if code is None else known["instructions"][code]
    return None if counted is None else sum(counted.values())


def _differing(known: dict[str, Any], base: int, head: int, **where: str) -> list[dict[str, Any]]:
    """Return the configurations whose machine code differs between two compilers."""
    own = [one for one in known["configurations"] if where.items() <= one.items()]
    pairs = ((one, one["code"][base], one["code"][head]) for one in own)
    return [one for one, before, after in pairs if None not in (before, after) and before != after]


def _moved(known: dict[str, Any], ones: Sequence[dict[str, Any]], metric: str, base: int, head: int) -> list[int]:
    pairs = [(_values(known, one, metric, base), _values(known, one, metric, head)) for one in ones]
    return [after - before for before, after in pairs if before is not None and after is not None]


def render() -> str:
    """Return the page."""
    name, known = _known()
    releases = [each["name"] for each in known["compilers"]]
    history = History(name)
    results = history.commit(known["commit"])
    day = history.run_of(results).get("started", "")[:10] if results else ""
    base, head = releases.index(known["base"]), len(releases) - 1
    return "\n".join(
        [
            "# What each compiler made of the kernels",
            "",
            "Made by `python -m experiments.compilers --render docs/evidence/compilers.md` from `results/`: "
            f"commit {known['commit'][:8]}, {day}, {len(known['configurations'])} cubins a compiler.",
            "",
            _HOW,
            "",
            "## From release to release",
            "",
            "How many cubins differ from those of the release before, by architecture and by flags; and in how many "
            "a number grew and shrank: 2, 3 is 2 that grew and 3 that shrank.",
            "",
            pages.table(list(_steps(known)), ["CUDA", "nvcc", *_archs(known), *_flags(known), *_METRICS.values()]),
            "",
            f"## From {releases[base]} to {releases[head]}, by kernel",
            "",
            "The smallest and the largest change of a cubin that differs.",
            "",
            pages.table(list(_kernels(known, base, head)), ["kernel", *_archs(known), *_METRICS.values()]),
            "",
            "## Where spilled bytes moved",
            "",
            "Bytes of spill stores and loads a thread.",
            "",
            pages.table(list(_spills(known)), ["kernel", "element type", "flags", "architecture", *releases]),
            "",
            *(line for machine in machines(ROOT / "results") for line in _timed(machine, known["base"], releases)),
        ]
    )


def _timed(machine: str, base: str, releases: Sequence[str]) -> Iterator[str]:
    """Yield the section on the times of a machine; nothing if it has none by two compilers."""
    for head in reversed(releases):
        try:
            sides = find(base, head, None, machine, ROOT)
        except CannotCompareError:
            continue
        rows = [row for row in compare(sides, ROOT).rows if row.kind == TIMED]
        if base == head or not rows:
            return
        run = sides.history.by(sides.head.compiler).run_of(sides.head.results)
        groups: dict[tuple[str, str], list[Row]] = defaultdict(list)
        for row in rows:
            groups[row.kernel, row.flags].append(row)
        yield from (
            f"## Times of {machine} by {head}, over those by {base}",
            "",
            f"Commit {sides.head.commit[:8]}, {run['started'][:10]}, {run['gpu']}, driver {run['before']['driver']}, "
            f"{len(sides.history.gpus(sides.base.results, sides.head.results))} GPU: the times of what differs.",
            "The mean is geometric, over sizes and element types; the smallest and the largest are of one of them.",
            "The [verdicts](../review.md) are those of `make compare-compilers`.",
            "",
            pages.table(
                [_group(key, each) for key, each in sorted(groups.items(), key=lambda item: -_mean(item[1]))],
                ["kernel", "flags", "mean", "smallest", "largest", "slower", "faster", "same", "undecided"],
            ),
            "",
        )
        return


def _mean(rows: Sequence[Row]) -> float:
    return geometric_mean(row.judgement.ratio for row in rows)


def _group(key: tuple[str, str], rows: Sequence[Row]) -> list[object]:
    kernel, flags = key
    ratios = [row.judgement.ratio for row in rows]
    verdicts = Counter(row.judgement.verdict for row in rows)
    shown = (Verdict.SLOW, Verdict.FAST, Verdict.SAME, Verdict.UNDECIDED)
    three = (f"{ratio:.3f}" for ratio in (_mean(rows), min(ratios), max(ratios)))
    return [f"`{kernel}`", f"`{flags}`", *three, *(verdicts[verdict] for verdict in shown)]


def _archs(known: dict[str, Any]) -> list[str]:
    return sorted({one["arch"] for one in known["configurations"]}, key=lambda arch: int(arch.partition("_")[2]))


def _flags(known: dict[str, Any]) -> list[str]:
    return [f"`{flags}`" for flags in sorted({one["flags"] for one in known["configurations"]})]


def _steps(known: dict[str, Any]) -> Iterator[list[object]]:
    for head, compiler in enumerate(known["compilers"][1:], start=1):
        base = head - 1
        every = _differing(known, base, head)
        moved = (_moved(known, every, metric, base, head) for metric in _METRICS)
        yield [
            compiler["name"],
            compiler["nvcc"],
            *(len(_differing(known, base, head, arch=arch)) for arch in _archs(known)),
            *(len(_differing(known, base, head, flags=flags.strip("`"))) for flags in _flags(known)),
            *(f"{sum(step > 0 for step in steps)}, {sum(step < 0 for step in steps)}" for steps in moved),
        ]


def _kernels(known: dict[str, Any], base: int, head: int) -> Iterator[list[object]]:
    counts = Counter((one["kernel"], one["arch"]) for one in known["configurations"])
    for kernel in dict.fromkeys(one["kernel"] for one in known["configurations"]):
        own = _differing(known, base, head, kernel=kernel)
        differing = Counter(one["arch"] for one in own)
        moved = (_moved(known, own, metric, base, head) for metric in _METRICS)
        yield [
            f"`{kernel}`",
            *(f"{differing[arch]} of {counts[kernel, arch]}" for arch in _archs(known)),
            *("" if not any(steps) else f"{min(steps):+d} to {max(steps):+d}" for steps in moved),
        ]


def _spills(known: dict[str, Any]) -> Iterator[list[object]]:
    for one in known["configurations"]:
        if len({value for value in one["spill_bytes"] if value is not None}) > 1:
            values = ("" if value is None else value for value in one["spill_bytes"])
            yield [f"`{one['kernel']}`", one["dtype"], f"`{one['flags']}`", one["arch"], *values]


def carry(folder: Path, releases: Sequence[str]) -> None:
    """Compile all that is timed by each release, and put a stand-in beside it that names the compiler.

    What is to be timed lies there too: the configurations whose machine code differs between the first and the last.
    """
    for release in releases:
        own = folder / release
        own.mkdir(parents=True, exist_ok=True)
        real = _real(release)
        environment = {**os.environ, "NVCC": str(real), _CACHE: str(folder / "cache")}
        subprocess.run([sys.executable, "-c", _BUILD.format(arch=ARCH)], cwd=ROOT, env=environment, check=True)
        version = subprocess.run([real, "--version"], stdout=subprocess.PIPE, check=True).stdout
        (own / "version.txt").write_bytes(version)
        (own / "probe.cu").write_text('extern "C" __global__ void probe() {}\n', encoding="utf-8")
        subprocess.run([real, "--cubin", "probe.cu"], cwd=own, check=True)
        (own / "nvcc").write_text(_STAND_IN.format(release=release), encoding="utf-8")
        (own / "nvcc").chmod(0o755)
    _, known = _known()
    names = [each["name"] for each in known["compilers"]]
    differing = _differing(known, names.index(releases[0]), names.index(releases[-1]), arch=ARCH)
    cubins = {f"{one['kernel']} {one['dtype']} {one['flags']}" for one in differing}
    (folder / _TIMED).write_text("".join(f"{pattern}\n" for pattern in patterns(cubins)), encoding="utf-8")
    print(f"{len(cubins)} cubins for {ARCH} differ between {releases[0]} and {releases[-1]}")
    size = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
    print(f"{folder}: {size / 1e6:.1f} MB for {ARCH}")


def _real(release: str) -> Path:
    if compilers.found() == compilers.named({compilers.VARIABLE: release}):
        return nvcc.find_nvcc()
    return compilers.fetched(release)


def time(folder: Path, releases: Sequence[str], commit: str) -> int:
    """Time what is to be timed, with each release; return asv's worst exit code."""
    words = [
        word for pattern in (folder / _TIMED).read_text(encoding="utf-8").splitlines() for word in ("--bench", pattern)
    ]
    command = [sys.executable, "-m", "asv", "run", "--record-samples", *words, f"{commit}^!"]
    codes = []
    for release in releases:
        stand_in = {"NVCC": str((folder / release / "nvcc").resolve()), _CACHE: str((folder / "cache").resolve())}
        codes.append(subprocess.run(command, cwd=ROOT, env=os.environ | stand_in, check=False).returncode)
    return max(codes)


def patterns(cubins: set[str]) -> Iterator[str]:
    """Yield what asv's `--bench` finds the times of machine code by, and their ratios to copies: one a benchmark."""
    for name, (kind, sweep) in suite.BENCHMARKS.items():
        if kind in (suite.Kind.TIMED, suite.Kind.CONTROL):
            points = [point for point in sweep.points() if suite.machine_code(name, point) in cubins]
            found = [re.escape(", ".join(map(repr, point.values()))) for point in points]
            if found:
                yield f"^{re.escape(name)}\\(({'|'.join(found)})\\)$"


def main(words: Sequence[str] | None = None) -> int:
    """Run the command."""
    parser = argparse.ArgumentParser(
        "python -m experiments.compilers", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("releases", nargs="*", help="releases of CUDA, oldest first", metavar="RELEASE")
    parser.add_argument("--render", type=Path, metavar="FILE", help="write the page")
    parser.add_argument("--carry", type=Path, metavar="FOLDER", help="compile into a folder")
    parser.add_argument("--time", type=Path, metavar="FOLDER", help="time what differs, with that folder")
    parser.add_argument("--commit", default="HEAD", help="the commit to time (default: HEAD)")
    options = parser.parse_args(words)
    if options.render:
        pages.put(render(), options.render)
    if options.carry:
        carry(options.carry, options.releases)
    return time(options.time, options.releases, options.commit) if options.time else 0


if __name__ == "__main__":
    sys.exit(main())
