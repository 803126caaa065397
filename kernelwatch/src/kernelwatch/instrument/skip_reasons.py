"""Skips of benchmarks for which an older commit lacks something, or which a kernel does not support.

The checkout's own commit lacks nothing that its suite declares: there, a run turns the skip into a failure.
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

#: Errors of a package for a name that it does not know.
UNKNOWN_NAME_ERRORS = (UnknownKernelError, UnknownDtypeError, UnknownFlagsError, UnknownArgumentError)


#: Prefix of the reason for a combination that no commit supports.
NOT_SUPPORTED = "not meant to be: "

#: Prefix of the reason for a name that only this commit lacks.
LACKS = "this commit lacks it: "


@contextmanager
def skip_unknown_names(kernel: str = "", dtype: str = "") -> Iterator[None]:
    """Turn an unknown kernel, dtype, argument or flag set into asv's skip, a NotImplementedError, with the name in it.

    A dtype that the kernel is not meant for is skipped without an attempt.
    """
    supported_dtypes = registry.current_suite().dtypes.get(kernel)
    if supported_dtypes is not None and dtype not in supported_dtypes:
        raise NotImplementedError(
            f"{NOT_SUPPORTED}{kernel} is not for {dtype}, only for {', '.join(sorted(supported_dtypes))}"
        )
    try:
        yield
    except UNKNOWN_NAME_ERRORS as error:
        raise NotImplementedError(format_missing(error)) from None


def format_missing(error: Exception) -> str:
    """Return the reason of a skip that only concerns this commit. A kernel may limit its dtypes at any commit."""
    is_limit = isinstance(error, UnknownDtypeError) and not isinstance(error, NoSuchDtypeError)
    return f"this commit lacks the dtype: {error}" if is_limit else f"{LACKS}{error}"


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
