"""Skips benchmarks for which a commit lacks something, or which no kernel is meant for. They never fail."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

from kernelwatch.errors import CompileError, UnknownDtypeError, UnknownFlagsError, UnknownKernelError
from kernelwatch.suite import registry

#: What nvcc says of an architecture that it does not know.
_UNSUPPORTED = re.compile(r"Unsupported gpu architecture.*")

#: What a package raises for a name that it does not know.
UNKNOWN = (UnknownKernelError, UnknownDtypeError, UnknownFlagsError)


#: How the reason begins of what no commit will have.
NEVER = "not meant to be: "


def reason_of(skip: str) -> str:
    """Return the reason of a skip, in one text for all kernels where no commit will have what is asked for."""
    return "kernels are not meant for these dtypes" if skip.startswith(NEVER) else skip


@contextmanager
def of_unknown_names(kernel: str = "", dtype: str = "") -> Iterator[None]:
    """Turn an unknown kernel, dtype or flag set into asv's skip, which is a NotImplementedError, with the name in it.

    Where a dtype is given that the kernel is not meant for, nothing is tried.
    """
    meant = registry.current().dtypes.get(kernel)
    if meant is not None and dtype not in meant:
        raise NotImplementedError(f"{NEVER}{kernel} is not for {dtype}, only for {', '.join(sorted(meant))}")
    try:
        yield
    except UNKNOWN as error:
        raise NotImplementedError(because(error)) from None


def because(what: object) -> str:
    """Return the reason of a skip that another commit would not need."""
    return f"this commit lacks it: {what}"


@contextmanager
def of_unknown_archs() -> Iterator[None]:
    """Turn an architecture that the compiler is too old or too new for into asv's skip, with nvcc's text in it."""
    try:
        yield
    except CompileError as error:
        said = _UNSUPPORTED.search(str(error))
        if said is None:
            raise
        raise NotImplementedError(f"this compiler lacks it: {said[0]}") from None
