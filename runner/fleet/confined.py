"""What the driver unpickles of all that workers send: bytes, and errors that are texts. Nothing else is run or made.

Dask unpickles results, errors and warnings in the process that asks for them, and a pickle can run anything there.
"""

from __future__ import annotations

import builtins
import io
import pickle
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any
from unittest import mock

#: Types of `builtins` that a pickle may name. They have no state that one could change.
ALLOWED = ("RuntimeError", "bytes")


class UnreadError(TypeError):
    """A pickle names something else. Dask expects a TypeError of what it cannot unpickle."""


class _Unpickler(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        if module == "builtins" and name in ALLOWED:
            return getattr(builtins, name)
        raise UnreadError(f"a worker sent an object of {module}.{name}, which is not read")


def loads(data: Any, *, buffers: Iterable[Any] | None = None, **_: Any) -> Any:
    """Stand for `pickle.loads`. Raises UnreadError."""
    return _Unpickler(io.BytesIO(data), buffers=buffers).load()


@contextmanager
def driver() -> Iterator[None]:
    """Let all that this process unpickles be confined."""
    with mock.patch.object(pickle, "loads", loads):
        yield
