"""The library face before it needs a GPU: what it refuses."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gpu_kernels import arrays
from kernelwatch.kernel import loading
from tests.bad_arrays import BAD


class _Fake(np.ndarray[Any, Any]):
    """An array that looks as if it were on a GPU."""

    @property
    def gpudata(self) -> int:
        return self.ctypes.data


@pytest.mark.parametrize("first", [0, 24])
def test_halves_of_one_buffer(first: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """What lies side by side does not overlap."""
    launched: list[tuple[int, ...]] = []
    monkeypatch.setattr(loading, "load", lambda *_: lambda *addresses, **_how: launched.append(addresses))
    buffer: Any = np.zeros(48).view(_Fake)
    matrix, out = buffer[first : first + 24].reshape(4, 6), buffer[24 - first : 48 - first].reshape(6, 4)
    assert arrays.transpose(matrix, out=out) is out
    assert launched == [(out.gpudata, matrix.gpudata)]


@pytest.mark.parametrize(("call", "error", "message"), BAD)
def test_bad_arrays(call: Any, error: type[Exception], message: str) -> None:
    """A bad array or name is refused with what was given and what is allowed, device or not."""
    with pytest.raises(error, match=message):
        call(lambda array: array.view(_Fake))
