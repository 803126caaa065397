"""What runs store beside asv's results, made up: the site must show it, and say so where it is missing."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from kernelwatch.project import ROOT
from kernelwatch.review import acknowledged
from kernelwatch.store import record
from kernelwatch.store.record import CUBINS_FILE as CUBINS
from kernelwatch.store.results import History

#: Acknowledged by a stored commit: the registers of one kernel.
ACCEPTED = "it holds more elements a thread"
ACCEPTED_AT = "ab7cbc0c21552f542a53b3b543c965164a440bde"


_AT = acknowledged.at


def accepted_at(folder: Path, commit: str) -> Sequence[acknowledged.Entry]:
    """What a commit acknowledges."""
    own = [acknowledged.Entry("matmul_tiled", "registers", ACCEPTED)]
    return own if commit == ACCEPTED_AT else _AT(folder, commit) or ()


ARCHS = ("sm_80", "sm_90")

#: The one kernel whose machine code is another from the second commit on.
CHANGED = "transpose_read_write_coalesced"

#: The one kernel whose machine code is not known of the first commit.
UNKNOWN = "transpose_write_coalesced"

OLD, NEW = "a1" * 32, "b2" * 32

PARTIAL, PARTIAL_COMMITS = "partial-gpu", ("f30f4e4f", "4df5b48d")

#: A name that would run a script wherever it were taken for markup. A folder bears it: no slash.
HOSTILE, HOSTILE_COMMITS = '"><img src=x onerror="window.attacked=1">', ("f22cf79d", "926c2401")
HOSTILE_BENCHMARKS = ("time_copy.MatrixSizedCopy.time_back_to_back", "track_compiled.Compiled.track_spill_bytes")

SHARED = "nvidia-h100-80gb-hbm3"

L2_BYTES = 60 * 2**20


def results(folder: Path) -> None:
    """Copy the stored results, with all that may lie beside them, and with two machines more."""
    folder.mkdir()
    copy = bare(folder)
    (folder / acknowledged.FILE).write_text(f"# {ACCEPTED}", encoding="utf-8")  # by it reviews are kept apart
    # Hashes were stored under "kernel, dtype, flags" up to 917313d, and are under a launch's text since.
    for machine, between in (("nvidia-h200", ", "), ("no-gpu-x86_64", " ")):
        history = History(machine)
        axes = history.axes("track_compiled.Compiled.track_registers")
        names = [(kernel, between.join((kernel, dtype, flags))) for kernel, dtype, flags in _product(axes)]
        lines = [
            {
                "commit": commit,
                "arch": arch,
                "cubins": {
                    name: NEW if kernel == CHANGED and age > 0 else OLD
                    for kernel, name in names
                    if kernel != UNKNOWN or age > 0
                },
            }
            for age, commit in enumerate(history.commits())
            for arch in ARCHS
        ]
        stored = record.read(ROOT / "results", machine, CUBINS)
        codes = [line | {"cubins": {}} for line in stored if "code" in line]  # what compilers made is as it is
        _write(copy / machine / CUBINS, [*lines, *codes])
    runs = record.read(copy, "nvidia-h200")
    for run in runs:
        run["arch"] = "sm_90"
        run["before"]["l2_bytes"] = L2_BYTES
        run["after"].pop("l2_bytes", None)
    _write(copy / "nvidia-h200" / record.FILE, runs)
    _partial(copy)
    _hostile(copy)


def _left_out(folder: str, names: list[str]) -> set[str]:
    """The hashes, and what runs have left in this checkout."""
    words = ["git", "-C", folder, "ls-files", "--others", "-z"]
    untracked = subprocess.run(words, capture_output=True, text=True).stdout.split("\0")
    return {CUBINS, *untracked} & {*names}


def bare(folder: Path) -> Path:
    """Copy the stored results as runs once left them, without any of that; the copy's folder."""
    copy = folder / "results"
    shutil.copytree(ROOT / "results", copy, ignore=_left_out)
    for path in copy.glob(f"*/{record.FILE}"):
        runs = record.read(copy, path.parent.name)
        for run in runs:
            run.pop("arch", None)
            for moment in ("before", "after"):
                run.get(moment, {}).pop("l2_bytes", None)
        _write(path, runs)
    return copy


def _partial(results: Path) -> None:
    """Add a machine that ran few benchmarks, and whose runs stored nothing of the L2 cache."""
    machine = _renamed(results, PARTIAL, PARTIAL_COMMITS)
    (machine / CUBINS).unlink()
    runs = record.read(results, PARTIAL)
    for run in runs:
        run.pop("arch")
        run["before"].pop("l2_bytes")
    _write(machine / record.FILE, runs)


def _hostile(results: Path) -> None:
    """Add a machine whose every text is hostile, and make two benchmarks' titles and a unit so."""
    machine = _renamed(results, HOSTILE, HOSTILE_COMMITS)
    described = json.loads((results / "benchmarks.json").read_text(encoding="utf-8"))
    for name in HOSTILE_BENCHMARKS:
        described[name]["pretty_name"] = HOSTILE
        described[name]["unit"] = HOSTILE if described[name]["type"] == "track" else described[name]["unit"]
    (results / "benchmarks.json").write_text(json.dumps(described), encoding="utf-8")
    compiler = str(record.read(results, HOSTILE)[0]["nvcc"])  # its hashes are not those of other machines
    for name, texts in {
        CUBINS: {"sm_80": HOSTILE, OLD: HOSTILE},
        record.FILE: {compiler: HOSTILE, "580.159.04": HOSTILE},
    }.items():
        text = (machine / name).read_text(encoding="utf-8")
        for plain, hostile in texts.items():
            text = text.replace(json.dumps(plain), json.dumps(hostile))
        (machine / name).write_text(text, encoding="utf-8")


def _renamed(results: Path, name: str, commits: tuple[str, ...]) -> Path:
    """Copy a machine with some of its commits under another name, which all in it then says; the copy."""
    machine, copy = results / "nvidia-h200", results / name
    others = [path.name for path in machine.glob("*-*.json") if not path.name.startswith(commits)]
    shutil.copytree(machine, copy, ignore=shutil.ignore_patterns(*others))
    for path in copy.glob("*.json"):
        entry = json.loads(path.read_text(encoding="utf-8"))
        (entry if path.name == "machine.json" else entry["params"])["machine"] = name
        path.write_text(json.dumps(entry), encoding="utf-8")
    return copy


def _product(axes: dict[str, list[str]]) -> list[tuple[str, str, str]]:
    return [(kernel, dtype, flags) for kernel in axes["kernel"] for dtype in axes["dtype"] for flags in axes["flags"]]


def _write(path: Path, lines: list[dict[str, Any]]) -> None:
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
