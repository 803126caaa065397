"""All that the instrument asks of a GPU for some jobs, in its order: `tests/data/measured.txt`.

With WRITE_GOLDEN=1 the test writes the file anew: what differs then is what a change changes on a GPU.
"""

from __future__ import annotations

import itertools
import os
from collections import defaultdict
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from kernelwatch.instrument import jobs
from kernelwatch.instrument.session import Session
from kernelwatch.kernel import Launch
from kernelwatch.project import ROOT
from tests.fake_cuda import FakeGpu
from tests.on_fake_gpu import LARGE, READY, SECONDS, SMALL, fetching

GOLDEN = ROOT / "tests" / "data" / "measured.txt"

#: What one session measures one after the other; those of a pair in turns.
MEASURED: list[tuple[list[Launch], dict[str, Any]]] = [
    ([SMALL], {}),
    ([LARGE], {}),
    ([replace(LARGE, kernel="transpose_write_coalesced")], {}),
    ([replace(LARGE, kernel="transpose_row_per_thread")], {}),
    ([LARGE, replace(LARGE, kernel="transpose_write_coalesced")], {"samples": 3}),
    ([SMALL], {"isolated": True}),
    ([SMALL], {"in_l2": True}),
    ([Launch.parse("histogram size=9000 bins=64 int8")], {}),
    ([Launch.parse("matmul_tiled rows=33 inner=70 columns=40 float16")], {}),
    ([Launch.parse("device_copy rows=64 columns=256 float32")], {}),
    ([Launch.parse("device_copy rows=65 columns=256 float32")], {}),
]

#: What is asked of PyCUDA and of cuda-bindings -> what is noted of it.
NOTED: dict[str, Callable[..., str]] = {
    "mem_alloc": lambda size: f"allocate {size} bytes",
    "memcpy_htod": lambda _, content: f"upload {content.nbytes} bytes",
    "memcpy_dtoh": lambda content, _: f"read {content.nbytes} bytes",
    "memset_d8": lambda _, value, length: f"set {length} bytes to {value:#x}",
    "cuGraphLaunch": lambda graph, _: f"graph: {_launches(graph)}",
    "cuGraphExecDestroy": lambda _: "end of a graph",
    "cuEventDestroy": lambda _: "end of an event",
}


def _launches(graph: list[Any]) -> str:
    """Say what a graph launches in which order, and on how many places in memory, which must take turns."""
    names = ["event" if isinstance(node, int) else node.name for node in graph]
    period = 4 if "stamp" in names else 1
    runs = itertools.groupby(" ".join(names[at : at + period]) for at in range(0, len(names), period))
    places: defaultdict[str, list[tuple[int, ...]]] = defaultdict(list)
    for node in graph:
        if not isinstance(node, int):
            places[node.name].append(node.addresses)
    for used in places.values():
        turns = list(dict.fromkeys(used))
        assert used == [turns[place % len(turns)] for place in range(len(used))]
    counts = [f"{len({*used})} of {name}" for name, used in places.items()]
    return f"{', '.join(f'{len([*run])} {name}' for name, run in runs)}; on {', '.join(counts)}"


@pytest.fixture
def said(gpu: FakeGpu, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What is asked of the device."""

    def noting(name: str, call: Callable[..., Any]) -> Callable[..., Any]:
        def noted(*given: Any) -> Any:
            gpu.log.append(NOTED[name](*given))
            return call(*given)

        return noted

    for name in NOTED:
        of = gpu.driver if name.startswith("cu") else gpu.cuda
        monkeypatch.setattr(of, name, noting(name, getattr(of, name)))
    return gpu.log


def test_trace(gpu: FakeGpu, said: list[str]) -> None:
    """Contexts, memory, uploads, graphs and what is read back: the same as ever."""
    session = Session()
    for launches, how in MEASURED:
        said.append(f"\n{' and '.join(map(str, launches))} {how or ''}".rstrip())
        described = [jobs.of(launch, **{"samples": 1, **how}) for launch in launches]
        made = [each.job(READY) for each in described]
        gpu.seconds = dict.fromkeys((job.entry for job in made), SECONDS) | gpu.seconds
        for outcome in session.measure(made, fetching(described[0])):
            said.append(", ".join(f"{seconds * 1e6:.2f}" for seconds in outcome.samples) + " us")
    said.append("\nend")
    session.close()
    own = [line for line in said if not line.startswith(("memset", "replay")) and line != "upload"]
    runs = ((line, len([*same])) for line, same in itertools.groupby(own))
    text = "".join(f"{line}{f', {count} times' * (count > 1)}\n" for line, count in runs)
    if "WRITE_GOLDEN" in os.environ:
        GOLDEN.write_text(text, encoding="utf-8")
    assert text == GOLDEN.read_text(encoding="utf-8")
