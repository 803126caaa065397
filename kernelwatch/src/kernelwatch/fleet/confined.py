"""What the driver unpickles of all that workers send: nothing but bytes.

Dask unpickles results, errors and warnings in the process that asks for them, and a pickle can run anything there.
"""

from __future__ import annotations

import io
import pickle
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any
from unittest import mock


class UnreadError(TypeError):
    """A pickle names something else. Dask expects a TypeError of what it cannot unpickle."""


class _Unpickler(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        if (module, name) == ("builtins", "bytes"):
            return bytes
        raise UnreadError(f"a worker sent an object of {module}.{name}, which is not read")


def loads(data: Any, *, buffers: Iterable[Any] | None = None, **_: Any) -> Any:
    """Stand for `pickle.loads`. Raises UnreadError."""
    try:
        return _Unpickler(io.BytesIO(data), buffers=buffers).load()
    except Exception as error:  # noqa: BLE001 -- of any other, Dask would not go on
        raise UnreadError(str(error)) from None


@contextmanager
def driver() -> Iterator[None]:
    """Let all that this process unpickles be confined."""
    with mock.patch.object(pickle, "loads", loads):
        yield
