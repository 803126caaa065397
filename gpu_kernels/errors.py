"""The package's exceptions. Every message says what was given, what is allowed and what to do."""

from __future__ import annotations


class GpuKernelsError(Exception):
    """Base of every error that this package raises on purpose."""


class UnknownKernelError(GpuKernelsError, LookupError):
    """The catalog holds no kernel of that name."""


class UnknownDtypeError(GpuKernelsError, LookupError):
    """No element type of the table has that item size, or there is no such dtype."""


class UnknownFlagsError(GpuKernelsError, LookupError):
    """The table of flag sets has no such text."""


class ArgumentError(GpuKernelsError, ValueError):
    """A size, an offset, a stride or an array does not fit the kernel."""


class NvccNotFoundError(GpuKernelsError, FileNotFoundError):
    """There is no nvcc to compile with."""


class CompileError(GpuKernelsError, RuntimeError):
    """nvcc failed. The message has nvcc's text."""


class CacheError(GpuKernelsError, OSError):
    """The folder of compiled kernels cannot be written: raised up to ab7cbc0, since then a CacheWarning."""


class NoDeviceError(GpuKernelsError, RuntimeError):
    """There is no driver, no device, or the driver is too old for the compiler."""


class CacheWarning(UserWarning):
    """The folder of compiled kernels cannot be written. Everything continues without it."""


class CompilerWarning(UserWarning):
    """nvcc succeeded with messages."""
