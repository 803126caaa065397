"""Skips of benchmarks: an older commit lacks a kernel, a dtype, an argument or flags, or a kernel lacks a dtype.

HEAD must have everything that its suite declares, so there a run turns such a skip into a failure.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

from kernelwatch.errors import (
    CompileError,
    NoSuchDtypeError,
    UnknownArgumentError,
    UnknownDtypeError,
    UnknownFlagsError,
    UnknownKernelError,
)
from kernelwatch.suite import registry

#: Message of nvcc for an architecture that it does not know.
_UNSUPPORTED = re.compile(r"Unsupported gpu architecture.*")

#: Errors for a kernel, a dtype, flags or an argument that the measured commit does not have.
UNKNOWN_NAME_ERRORS = (UnknownKernelError, UnknownDtypeError, UnknownFlagsError, UnknownArgumentError)


#: Prefix of the reason for a combination that no commit supports. Results store it, so it does not change.
NOT_SUPPORTED = "not meant to be: "

#: Prefix of the reason for a name that only this commit lacks.
LACKS = "this commit does not have it: "


@contextmanager
def skip_unknown_names(kernel: str = "", dtype: str = "") -> Iterator[None]:
    """Turn an unknown kernel, dtype, argument or flag set into asv's skip: a NotImplementedError with the name.

    A dtype that the kernel does not support is skipped without an attempt.
    """
    supported_dtypes = registry.current_suite().dtypes.get(kernel)
    if supported_dtypes is not None and dtype not in supported_dtypes:
        raise NotImplementedError(
            f"{NOT_SUPPORTED}{kernel} does not support {dtype}, only {', '.join(sorted(supported_dtypes))}"
        )
    try:
        yield
    except UNKNOWN_NAME_ERRORS as error:
        raise NotImplementedError(format_missing(error)) from None


def format_missing(error: Exception) -> str:
    """Return the reason of a skip at this commit, for an error of UNKNOWN_NAME_ERRORS.

    A dtype that the kernel does not support has its own text, because other commits may support it.
    """
    if isinstance(error, UnknownDtypeError) and not isinstance(error, NoSuchDtypeError):
        return f"this commit does not have the dtype: {error}"
    return f"{LACKS}{error}"


@contextmanager
def skip_unknown_archs() -> Iterator[None]:
    """Skip a benchmark whose architecture the compiler does not support; the reason has nvcc's text."""
    try:
        yield
    except CompileError as error:
        match = _UNSUPPORTED.search(str(error))
        if match is None:
            raise
        raise NotImplementedError(f"this compiler does not support the architecture: {match[0]}") from None
