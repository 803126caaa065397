"""The library's exceptions. Every message says what was given, what is allowed and what to do."""

from __future__ import annotations


class KernelwatchError(Exception):
    """Base of every error that this library raises on purpose."""


class UnknownKernelError(KernelwatchError, LookupError):
    """The suite has no kernel of that name."""


class UnknownDtypeError(KernelwatchError, LookupError):
    """No element type of the table has that item size, or there is no such dtype."""


class UnknownFlagsError(KernelwatchError, LookupError):
    """The package has no such set of flags, or nobody can split its text into words."""


class ArgumentError(KernelwatchError, ValueError):
    """A size, an offset, a stride or an array does not fit the kernel."""


class NvccNotFoundError(KernelwatchError, FileNotFoundError):
    """There is no nvcc to compile with."""


class CompileError(KernelwatchError, RuntimeError):
    """nvcc failed. The message has nvcc's text."""


class NoDeviceError(KernelwatchError, RuntimeError):
    """There is no driver, no device, or the driver is too old for the compiler."""


class CacheWarning(UserWarning):
    """The folder of compiled kernels cannot be written. Everything continues without it."""


class CompilerWarning(UserWarning):
    """nvcc succeeded with messages."""
