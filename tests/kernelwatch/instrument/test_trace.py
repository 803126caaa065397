"""The CUDA calls of some jobs, in order: `tests/data/measured.txt`.

WRITE_GOLDEN=1 rewrites the file; its diff shows the effect of a change on a GPU.
"""

from __future__ import annotations

import itertools
import os
from typing import Any

import pytest

from gpu_kernels import catalog
from kernelwatch.config.project_root import ROOT
from kernelwatch.instrument import build_job
from kernelwatch.instrument.graph_replay import LONG_LAUNCH
from kernelwatch.instrument.session import Session
from kernelwatch.instrument.tolerance import WrongOutputError
from kernelwatch.kernel import Launch
from tests.fake_cuda import FakeGpu
from tests.on_fake_gpu import LARGE, READY, SECONDS, SMALL, make_fetch
from tests.own_kernels import CASES
from tests.wrong_kernels import WRITING

GOLDEN = ROOT / "tests" / "data" / "measured.txt"

SHAPE = "rows=97 columns=101 float32"

#: Jobs that one session measures in sequence (pairs in turns), the method, and the seconds of each launch.
MEASURED: list[tuple[str, dict[str, Any]]] = [
    (str(SMALL), {}),
    (str(LARGE), {}),
    (f"transpose_write_coalesced {SHAPE}", {}),
    (f"transpose_row_per_thread {SHAPE}", {}),
    (f"{LARGE} and transpose_write_coalesced {SHAPE}", {"samples": 3}),
    (f"transpose_write_coalesced {SHAPE}", {"samples": 3}),
    (f"transpose_write_coalesced {SHAPE}", {"samples": 3}),
    (f"transpose_clears_last_row {SHAPE}", {}),
    (f"transpose_read_write_coalesced {SHAPE}", {}),
    (f"{LARGE} and transpose_row_per_thread {SHAPE}", {}),
    ("transpose_row_per_thread rows=129 columns=300 float32", {}),
    (str(SMALL), {"isolated": True}),
    (str(LARGE), {"isolated": True}),
    (str(SMALL), {"in_l2": True}),
    ("transpose_read_coalesced rows=64 columns=128 float32", {"in_l2": True}),
    (str(LARGE), {"in_l2": True}),
    (str(LARGE), {"seconds": LONG_LAUNCH}),
    (str(LARGE), {"seconds": 0.99 * LONG_LAUNCH}),
    (str(LARGE), {"seconds": 2e-6}),
    ("histogram size=9000 bins=64 int8", {}),
    ("scale n=30000 float32", {"samples": 2}),
    ("matmul_tiled rows=33 inner=70 columns=40 float16", {}),
    ("device_copy rows=64 columns=256 float32", {}),
    ("device_copy rows=65 columns=1027 int8", {"isolated": True}),
    ("stride_copy size=1000 stride=3 complex128", {}),
    ("offset_copy size=1100000 offset=1 float32", {}),
    ("offset_copy size=3000000 offset=1 float32", {}),
]


def _measure_jobs(gpu: FakeGpu, session: Session, launches: list[Launch], seconds: float = SECONDS, **how: Any) -> None:
    """Measure launches and log their outcomes."""
    described = [build_job.describe_launch(launch, **{"samples": 1, **how}) for launch in launches]
    jobs = [description.make_job(READY) for description in described]
    gpu.seconds |= {job.entry: seconds * (1 + place) for place, job in enumerate(jobs)}
    try:
        for outcome in session.measure(jobs, make_fetch(described[0])):
            times = (
                "+".join(f"{seconds * 1e6:.2f}" for seconds in durations)
                for durations in (outcome.samples, outcome.copies)
            )
            gpu.log.append(" us, copies ".join(times))
    except (NotImplementedError, WrongOutputError) as error:
        gpu.log.append(f"{type(error).__name__}: {error}")


def test_trace_of_calls(gpu: FakeGpu, monkeypatch: pytest.MonkeyPatch) -> None:
    """The log covers contexts, memory, uploads, graphs and readbacks."""
    for kernel in (CASES["in place"].declared, WRITING[1][0]):
        monkeypatch.setitem(catalog.KERNELS, kernel.name, kernel)
    session = Session()
    for texts, how in MEASURED:
        launches = list(map(Launch.parse, texts.split(" and ")))
        gpu.log.append(f"\n{' and '.join(map(str, launches))} {how or ''}".rstrip())
        _measure_jobs(gpu, session, launches, **how)
    gpu.log.append("\nend")
    session.release_buffers()
    runs = ((line, len([*repeated])) for line, repeated in itertools.groupby(gpu.log))
    text = "".join(f"{line}{f', {count} times' * (count > 1)}\n" for line, count in runs)
    if "WRITE_GOLDEN" in os.environ:
        GOLDEN.write_text(text, encoding="utf-8")
    pairs = itertools.zip_longest(text.splitlines(), GOLDEN.read_text(encoding="utf-8").splitlines())
    assert next((pair for pair in pairs if pair[0] != pair[1]), None) is None
    assert not gpu.allocations
