"""Skips of benchmarks: a commit lacks a kernel, an argument or a dtype; or the compiler lacks the architecture.

HEAD must have everything that its suite declares. So a run of HEAD turns a skip with the prefix LACKS into a failure.
"""

import re
from collections.abc import Iterator
from contextlib import contextmanager

from kernelwatch.errors import (
    CompileError,
    NoSuchDtypeError,
    UnknownArgumentError,
    UnknownDtypeError,
    UnknownKernelError,
)

#: Message of nvcc for an architecture that it does not know.
_UNSUPPORTED = re.compile(r"Unsupported gpu architecture.*")

#: Errors for a kernel, a dtype or an argument that the measured commit does not have.
UNKNOWN_NAME_ERRORS = (UnknownKernelError, UnknownDtypeError, UnknownArgumentError)

#: Prefix of the reason for a kernel and dtype that the suite does not combine. Results store it, so it does not change.
NOT_SUPPORTED = "not meant to be: "

#: Prefix of the reason for a name that this commit lacks, except a dtype.
LACKS = "this commit does not have it: "


@contextmanager
def skip_unknown_names(kernel: str = "", dtype: str = "") -> Iterator[None]:
    """Turn an unknown kernel, dtype or argument into NotImplementedError, for which asv skips.

    If `kernel` is given, a dtype that the suite does not use with the kernel is skipped, too.
    """
    from kernelwatch.suite import registry  # noqa: PLC0415 -- imports NumPy, which a run's own process does not need

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
    """Return the reason for a skip that an error of UNKNOWN_NAME_ERRORS causes.

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
