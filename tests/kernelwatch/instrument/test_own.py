"""Kernels of anybody's, measured on a GPU that is none: executed on the CPU, verified; wrong ones have no time."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from kernelwatch import Kernel, suite
from kernelwatch.instrument import buffers
from kernelwatch.instrument.arrangement import Arrangement
from kernelwatch.instrument.session import Session
from kernelwatch.instrument.verification import WrongOutputError
from kernelwatch.kernel import Launch
from kernelwatch.project import CHECKOUT
from tests.fake_cuda import FakeGpu
from tests.on_fake_gpu import SECONDS, fake_gpu, measured
from tests.own_kernels import CASES


@pytest.fixture
def gpu(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[FakeGpu]:
    """One that executes PTX, for which a folder stands in the place of a checkout."""
    monkeypatch.setenv(CHECKOUT, str(tmp_path))
    with fake_gpu(monkeypatch) as made:
        yield made


def _launch(kernel: Kernel, name: str, monkeypatch: pytest.MonkeyPatch) -> Launch:
    monkeypatch.setattr(suite, "kernel", lambda _: kernel)
    return Launch(kernel.name, CASES[name].dtype, arguments=CASES[name].small)


@pytest.mark.parametrize("how", [{}, {"isolated": True}, {"in_l2": True}], ids=str)
@pytest.mark.parametrize("name", CASES)
def test_right(name: str, how: dict[str, Any], gpu: FakeGpu, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It has times; the memory is given back."""
    session = Session()
    launch = _launch(CASES[name].kernel(CASES[name].text, tmp_path), name, monkeypatch)
    found, _, asked = measured(gpu, launch, session, **how)
    assert found.samples == pytest.approx([SECONDS] * 3, rel=0.1)
    assert len(asked) <= 1
    session.close()
    assert set(gpu.allocations) - set(gpu.variables) == {int(session.references._pool)}


@pytest.mark.parametrize("name", CASES)
def test_wrong(name: str, gpu: FakeGpu, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It has none, unless nothing says what is right; and also then it may not write behind an end."""
    wrong = CASES[name].kernel(CASES[name].text.replace(*CASES[name].wrong), tmp_path)
    launch = _launch(wrong, name, monkeypatch)
    with pytest.raises(WrongOutputError, match=wrong.name):
        measured(gpu, launch)
    wrong.reference = None
    assert measured(gpu, launch)[0].samples
    once = Arrangement.launch_once

    def behind(self: Arrangement, job: Any) -> None:
        once(self, job)
        written = next(each for each in job.arrays if each.is_written)
        gpu.view(self.rotation.address(written, self.rotation.sets - 1))[written.nbytes] ^= 1

    monkeypatch.setattr(Arrangement, "launch_once", behind)
    with pytest.raises(WrongOutputError, match="behind the end of its output, first 0 bytes on"):
        measured(gpu, launch)


@pytest.mark.parametrize("size", [48 << 10, (48 << 10) + 1])
def test_dynamic_shared_memory(size: int, gpu: FakeGpu, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A driver must be told that a block needs more than any kernel may have."""
    kernel = CASES["a text"].kernel(CASES["a text"].text, tmp_path)
    kernel.dynamic_shared = size
    assert measured(gpu, _launch(kernel, "a text", monkeypatch))[0].samples


@pytest.mark.parametrize("staged", [64 << 10, 1024])
def test_first_values_before_each_sample(
    staged: int, gpu: FakeGpu, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is scaled in place holds its first values in every set, whatever control and launches left there."""
    monkeypatch.setattr(buffers, "_STAGED", staged)
    buffers._staging.cache_clear()
    held: list[set[bytes]] = []
    replay = gpu.driver.cuGraphLaunch

    def looking(graph: list[Any], stream: Any) -> Any:
        nodes = [node for node in graph if not isinstance(node, int)]
        mine = {node.addresses[0] for node in nodes if node.name.endswith("scalePfi")}
        held.extend([{gpu.view(address)[:4000].tobytes() for address in mine}] if mine else [])
        for address in mine:
            gpu.view(address)[:4000] = 7  # as launches would that are not executed here
        return replay(graph, stream)

    gpu.driver.cuGraphLaunch = looking
    kernel = CASES["in place"].kernel(CASES["in place"].text, tmp_path)
    kernel.reference = None
    measured(gpu, _launch(kernel, "in place", monkeypatch))
    assert len(held) > 4
    assert len(set.union(*held)) == 1
    (first,) = held[0]
    assert np.ptp(np.frombuffer(first, np.float32)) > 1
