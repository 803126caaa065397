"""The one way in which all tools launch: what reaches a kernel."""

from __future__ import annotations

import ctypes
import struct
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import pytest

from experiments.launcher import Launcher
from kernelwatch.instrument import buffers, comparison, device, jobs
from kernelwatch.instrument.job import Job
from kernelwatch.kernel import Launch, loading
from kernelwatch.kernel.geometry import MAX_SHARED
from tests import served

TYPES: list[Any] = [*[ctypes.c_int64] * 4, ctypes.c_double]


@pytest.mark.parametrize(("rotate", "sets"), [(True, 3), (False, 1)])
@pytest.mark.parametrize("shared", [0, MAX_SHARED + 1])
def test_launcher(rotate: bool, sets: int, shared: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """A kernel of two inputs, an integer and a double: all reach it, on each set in turn, and are verified once."""
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
    launches: list[Any] = []

    def launched(function: str, *rest: Any) -> None:
        """Note the shape, the stream, and the arguments that the pointers lead to."""
        *shape, stream, parameters, _ = rest
        pointers = (ctypes.c_void_p * len(TYPES)).from_address(parameters)
        values = [kind.from_address(pointer or 0).value for kind, pointer in zip(TYPES, pointers, strict=True)]
        launches.append((function, shape, stream, values))

    driver = Mock(cuLaunchKernel=launched, cuModuleLoadData=bytes.decode)
    driver.cuModuleGetFunction = lambda module, name: f"{name.decode()} of {module}"
    rotation = Mock(addresses=lambda index: [2**40 + index, 2**41 + index, 2**42 + index])
    stream = SimpleNamespace(handle=9, synchronize=lambda: None)
    current = SimpleNamespace(get_device=lambda: SimpleNamespace(multiprocessor_count=132))
    made, verified = Mock(return_value=rotation), Mock()
    monkeypatch.setattr(jobs, "of", lambda *_, **__: Mock(job=lambda _: job, reference=served.REFERENCE))
    monkeypatch.setattr(buffers, "Rotation", made)
    monkeypatch.setattr(loading, "current_arch", lambda: "sm_90")
    monkeypatch.setattr(device, "l2_bytes", lambda: 3 * served.OUTPUT)
    monkeypatch.setattr(device, "cuda", SimpleNamespace(Stream=lambda: stream, Context=current))
    monkeypatch.setattr(device, "driver", driver)
    monkeypatch.setattr(device, "check", lambda result: result)
    monkeypatch.setattr(comparison, "check", verified)
    one = Launcher(Launch("scale_and_add", arguments={"size": 5, "factor": 0.1}), rotate=rotate)
    one(7)
    one(8)
    made.assert_called_once_with(job.arrays, sets)
    assert verified.call_args.args[:2] == (job, rotation)
    shape = [132, 2, 3, 4, 5, 6, shared]
    assert launches == [
        ("scale_and_add of code", shape, handle, [*rotation.addresses(index % sets), 5, 0.1])
        for index, handle in enumerate([9] * sets + [7, 8])
    ]
    allowed = driver.CUfunction_attribute.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
    expected = [("scale_and_add of code", allowed, shared)] if shared else []
    assert [each.args for each in driver.cuFuncSetAttribute.call_args_list] == expected
    one.close()
    rotation.free.assert_called_once_with()
