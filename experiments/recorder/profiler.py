"""Nsight Compute's metrics of all launches of a program."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from experiments import nsight

#: Count of ptxcount -> metrics of Nsight Compute, whose sum it is.
METRICS: dict[str, tuple[str, ...]] = {
    f"{prefix}{kind}_{amount}": tuple(f"l1tex__t_{amount}_pipe_lsu_mem_{space}_op_{op}.sum" for op in operations)
    for space, prefix in (("global", ""), ("local", "local_"))
    for kind, operations in (("load", ("ld",)), ("store", ("st",)), ("atomic", ("red", "atom")))
    for amount in ("requests", "sectors")
    if space == "global" or kind != "atomic"
} | {
    f"shared_{kind}_wavefronts": (f"l1tex__data_pipe_lsu_wavefronts_mem_shared_op_{op}.sum",)
    for kind, op in (("load", "ld"), ("store", "st"))
}


def profile_program(command: Sequence[str], environment: Mapping[str, str]) -> str:
    """Profile all launches of a program; return Nsight Compute's CSV."""
    metrics = ",".join(metric for names in METRICS.values() for metric in names)
    options = "--cache-control all --clock-control none --csv --print-units base --print-kernel-base mangled"
    done = subprocess.run(
        ["ncu", *options.split(), "--metrics", metrics, *command],
        env=dict(environment), capture_output=True, text=True, check=False,
    )  # fmt: skip
    if done.returncode:
        raise nsight.NsightError(f"ncu ended with {done.returncode}: {done.stdout[-2000:]}{done.stderr[-2000:]}")
    return "".join(line for line in done.stdout.splitlines(keepends=True) if line.startswith('"'))


def read_profile(file: Path) -> list[tuple[str, dict[str, float]]]:
    """Return, for each launch, the kernel's name and its counts by ptxcount's names."""
    names, readings = nsight.parse_readings(file.read_text().splitlines())
    return [
        (name, {count: sum(reading[metric] for metric in metrics) for count, metrics in METRICS.items()})
        for name, reading in zip(names, readings, strict=True)
    ]
