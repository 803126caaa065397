"""The library's exceptions. Every message says what was given, what is allowed and what to do."""

from __future__ import annotations

from ptxcount.util.errors import CompileError, NvccNotFoundError, PtxError

__all__ = [
    "ERRORS",
    "ArgumentError",
    "CompileError",
    "CompilerWarning",
    "KernelwatchError",
    "NoDeviceError",
    "NvccNotFoundError",
    "SuiteError",
    "UnknownDtypeError",
    "UnknownFlagsError",
    "UnknownKernelError",
]


class KernelwatchError(Exception):
    """Base of every error that this library raises on purpose."""


#: What it may raise on purpose: its own errors and those of the counter, which compiles too.
ERRORS = (KernelwatchError, PtxError)


class SuiteError(KernelwatchError):
    """The project's suite cannot be imported; the message begins with the file and line."""


class UnknownKernelError(KernelwatchError, LookupError):
    """The suite has no kernel of that name."""


class UnknownDtypeError(KernelwatchError, LookupError):
    """No element type of the table has that item size, or there is no such dtype."""


class UnknownFlagsError(KernelwatchError, LookupError):
    """The package has no such set of flags, or nobody can split its text into words."""


class ArgumentError(KernelwatchError, ValueError):
    """A size, an offset, a stride or an array does not fit the kernel."""


class NoDeviceError(KernelwatchError, RuntimeError):
    """There is no driver, no device, or the driver is too old for the compiler."""


class CompilerWarning(UserWarning):
    """nvcc succeeded with messages."""
