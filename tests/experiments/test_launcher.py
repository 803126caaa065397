"""The one way in which all tools launch: what reaches a kernel."""

from __future__ import annotations

import ctypes
import struct
from types import SimpleNamespace
from typing import Any

import pytest

from experiments.launcher import Launcher
from kernelwatch.instrument import buffers, comparison, device, jobs
from kernelwatch.instrument.job import DeviceArray, Job
from kernelwatch.kernel import Launch, loading
from kernelwatch.kernel.geometry import MAX_SHARED
from tests import served


class FakeRotation:
    """Buffers of an output and two inputs."""

    def __init__(self, arrays: tuple[DeviceArray, ...], sets: int) -> None:
        self.arrays = arrays

    def poison(self) -> None:
        """Nothing to fill."""

    def free(self) -> None:
        """Nothing to give back."""

    def addresses(self, index: int) -> list[int]:
        """Addresses that take more than 32 bits."""
        return [2**40 + index, 2**41 + index, 2**42 + index]


class FakeDriver:
    """Notes launches: the shape, the stream, and the arguments that the pointers lead to."""

    CUfunction_attribute = SimpleNamespace(CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES="shared")

    def __init__(self, types: list[type[ctypes.c_int64] | type[ctypes.c_double]]) -> None:
        self.types = types
        self.launches: list[tuple[Any, ...]] = []
        self.attributes: list[tuple[Any, ...]] = []

    def cuModuleLoadData(self, data: bytes) -> tuple[int, bytes]:  # noqa: N802 -- as cuda-bindings has it
        """As cuda-bindings'."""
        return 0, data

    def cuModuleGetFunction(self, module: bytes, name: bytes) -> tuple[int, str]:  # noqa: N802
        """As cuda-bindings'."""
        return 0, f"{name.decode()} of {module.decode()}"

    def cuFuncSetAttribute(self, *given: Any) -> tuple[int]:  # noqa: N802
        """As cuda-bindings'."""
        self.attributes.append(given)
        return (0,)

    def cuLaunchKernel(self, function: str, *rest: Any) -> tuple[int]:  # noqa: N802
        """As cuda-bindings'."""
        *shape, stream, parameters, extra = rest
        pointers = (ctypes.c_void_p * len(self.types)).from_address(parameters)
        values = [kind.from_address(pointer or 0).value for kind, pointer in zip(self.types, pointers, strict=True)]
        self.launches.append((function, shape, stream, values))
        assert extra == 0
        return (0,)


@pytest.mark.parametrize(("rotate", "sets"), [(True, 3), (False, 1)])
@pytest.mark.parametrize("shared", [0, MAX_SHARED + 1])
def test_launcher(rotate: bool, sets: int, shared: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """A kernel of two inputs, an integer and a double: all reach it, on each set in turn, and are verified once."""
    driver = FakeDriver([ctypes.c_int64] * 4 + [ctypes.c_double])
    job = Job(
        name="scale_and_add",
        commit="c0ffee",
        cubin=b"code",
        entry="scale_and_add",
        grid=(132, 2, 3),
        block=(4, 5, 6),
        dynamic_shared=shared,
        arrays=(served.array(), served.array("a", "in"), served.array("b", "in")),
        parameters=bytes(24) + struct.pack("qd", 5, 0.1),
        addresses=(0, 8, 16),
        useful_bytes=60,
        reference="reference",
        samples=1,
    )
    verified: list[tuple[Job, FakeRotation]] = []
    stream = SimpleNamespace(handle=9, synchronize=lambda: None)
    current = SimpleNamespace(get_device=lambda: SimpleNamespace(multiprocessor_count=132))
    described = SimpleNamespace(job=lambda _: job, reference=served.REFERENCE)
    monkeypatch.setattr(jobs, "of", lambda *_, **__: described)
    monkeypatch.setattr(buffers, "Rotation", FakeRotation)
    monkeypatch.setattr(loading, "current_arch", lambda: "sm_90")
    monkeypatch.setattr(device, "l2_bytes", lambda: 3 * served.OUTPUT)
    monkeypatch.setattr(device, "cuda", SimpleNamespace(Stream=lambda: stream, Context=current))
    monkeypatch.setattr(device, "driver", driver)
    monkeypatch.setattr(device, "check", lambda result: (*result, None)[1])
    monkeypatch.setattr(comparison, "check", lambda job, rotation, *_, **__: verified.append((job, rotation)))
    one = Launcher(Launch("scale_and_add", arguments={"size": 5, "factor": 0.1}), rotate=rotate)
    one(7)
    one(8)
    ((own, rotation),) = verified
    assert (own, rotation.arrays) == (job, job.arrays)
    shape = [132, 2, 3, 4, 5, 6, shared]
    expected = [(index % sets, handle) for index, handle in enumerate([9] * sets + [7, 8])]
    assert driver.launches == [
        ("scale_and_add of code", shape, handle, [2**40 + index, 2**41 + index, 2**42 + index, 5, 0.1])
        for index, handle in expected
    ]
    assert driver.attributes == ([("scale_and_add of code", "shared", shared)] if shared else [])
