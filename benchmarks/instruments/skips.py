"""Skips benchmarks for which an old commit lacks something. They never fail."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from gpu_kernels.errors import UnknownDtypeError, UnknownFlagsError, UnknownKernelError

#: What `gpu_kernels` raises for a name that it does not know.
UNKNOWN = (UnknownKernelError, UnknownDtypeError, UnknownFlagsError)


@contextmanager
def of_unknown_names() -> Iterator[None]:
    """Turn an unknown kernel, dtype or flag set into asv's skip, with the name in the reason.

    Raises
    ------
    NotImplementedError
        The installed commit lacks what was asked for.
    """
    try:
        yield
    except UNKNOWN as error:
        raise NotImplementedError(because(error)) from None


def because(what: object) -> str:
    """Return the reason of a skip."""
    return f"this commit lacks it: {what}"
