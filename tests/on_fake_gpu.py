"""Measure launches on a fake GPU."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from kernelwatch.instrument import buffers, build_job, helper_kernels, inputs, memory
from kernelwatch.instrument.job_messages import DeviceFacts
from kernelwatch.instrument.memory import FetchReference
from kernelwatch.instrument.session import Session
from kernelwatch.kernel import Launch
from kernelwatch.toolchain import build
from tests import fake_cuda
from tests.fake_cuda import FakeGpu

FACTS = DeviceFacts(arch=fake_cuda.ARCH, multiprocessors=fake_cuda.MULTIPROCESSORS)

SECONDS, COPY_SECONDS = 5e-6, 2e-6

SMALL = Launch.parse("transpose_read_coalesced rows=31 columns=63 float32")
LARGE = Launch.parse("transpose_read_coalesced rows=97 columns=101 float32")


def _forget() -> None:
    inputs.input_block.cache_clear()
    for cached in (helper_kernels._compile_helper, buffers._staging_buffer, buffers.pin_block, memory._staging_buffer):
        cached.cache_clear()


def make_fetch(described: build_job.JobDescription) -> FetchReference:
    return lambda _: memory.make_reader(described.reference.content())


@contextmanager
def fake_gpu(monkeypatch: pytest.MonkeyPatch, l2_bytes: int = 64 << 10) -> Iterator[FakeGpu]:
    """Yield a small fake GPU: a wave is 4 blocks of 1024 threads, or 16 blocks of 256."""
    monkeypatch.setattr(build, "assemble_cubin", fake_cuda.ptx_for_cubin)
    monkeypatch.setattr(buffers, "_STAGING_BYTES", 64 << 10)
    monkeypatch.setattr(inputs, "BLOCK", 16 * 65537)  # 16 times a prime, as the real block
    monkeypatch.setattr(inputs, "_tiled_blocks", {})
    _forget()
    device = fake_cuda.install(monkeypatch, FakeGpu(l2_bytes=l2_bytes, total=16 << 20))
    device.seconds = {"device_copy": COPY_SECONDS, "stamp": 1e-8}
    yield device
    _forget()


def measure_launch(gpu: FakeGpu, launch: Launch, session: Session | None = None, **how: Any) -> Any:
    """Return the outcome of a launch, its job, and the length of each requested reference, in bytes."""
    described = build_job.describe_launch(launch, **{"samples": 3, **how})
    job = described.make_job(FACTS)
    gpu.seconds.setdefault(job.entry, SECONDS)
    lengths: list[int] = []

    def fetch(length: int) -> Any:
        lengths.append(length)
        return make_fetch(described)(length)

    (outcome,) = (session or Session()).measure([job], fetch)
    return outcome, job, lengths
