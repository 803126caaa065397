"""The library face before it needs a GPU: what it refuses."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.bad_arrays import BAD


class _Fake(np.ndarray[Any, Any]):
    """An array that looks as if it were on a GPU."""

    @property
    def gpudata(self) -> int:
        return self.ctypes.data


@pytest.mark.parametrize(("call", "error", "message"), BAD)
def test_bad_arrays(call: Any, error: type[Exception], message: str) -> None:
    """A bad array or name is refused with what was given and what is allowed, device or not."""
    with pytest.raises(error, match=message):
        call(lambda array: array.view(_Fake))
