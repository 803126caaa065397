"""Skips benchmarks for which an old commit lacks something. They never fail."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

from gpu_kernels.errors import CompileError, UnknownDtypeError, UnknownFlagsError, UnknownKernelError

#: What nvcc says of an architecture that it does not know.
_UNSUPPORTED = re.compile(r"Unsupported gpu architecture.*")

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


@contextmanager
def of_unknown_archs() -> Iterator[None]:
    """Turn an architecture that the compiler does not know into asv's skip, with nvcc's text in the reason.

    Raises
    ------
    NotImplementedError
        The compiler is too old, or too new, for what was asked for.
    """
    try:
        yield
    except CompileError as error:
        said = _UNSUPPORTED.search(str(error))
        if said is None:
            raise
        raise NotImplementedError(f"this compiler lacks it: {said[0]}") from None
