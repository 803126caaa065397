"""Python's collection of reference cycles."""

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def pause_collection() -> Iterator[None]:
    """Pause the collection within the block or the decorated function.

    While many objects are made that stay, the collection only visits them again and again.
    """
    is_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if is_enabled:
            gc.enable()
