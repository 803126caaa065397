"""The library's exceptions. A message names the wrong value, the allowed ones, and the remedy."""

from ptxcount.util.errors import CompileError, NvccNotFoundError, PtxError

__all__ = [
    "ERRORS",
    "ArgumentError",
    "CompileError",
    "CompilerWarning",
    "KernelwatchError",
    "NoDeviceError",
    "NoSuchDtypeError",
    "NoSuiteError",
    "NvccNotFoundError",
    "SuiteError",
    "UnknownArgumentError",
    "UnknownDtypeError",
    "UnknownFlagsError",
    "UnknownKernelError",
]


class KernelwatchError(Exception):
    """The base of all errors that this library raises on purpose."""


#: Errors that the library raises on purpose: its own, and those of ptxcount, which it uses to compile.
ERRORS = (KernelwatchError, PtxError)


class NoSuiteError(KernelwatchError):
    """The project names no suite."""


class SuiteError(KernelwatchError):
    """The project's suite is missing or cannot be imported; a message on an import begins with the file and line."""


class UnknownKernelError(KernelwatchError, LookupError):
    """The suite has no kernel of that name."""


class UnknownDtypeError(KernelwatchError, LookupError):
    """A kernel, or a mapping by item size, does not support a dtype."""


class NoSuchDtypeError(UnknownDtypeError):
    """NumPy has no such dtype, or it holds Python objects."""


class UnknownFlagsError(KernelwatchError, LookupError):
    """The package has no such set of flags, or the text of flags cannot be split into arguments."""


class ArgumentError(KernelwatchError, ValueError):
    """A size, an offset, a stride or an array does not fit the kernel."""


class UnknownArgumentError(ArgumentError, LookupError):
    """The arguments of a launch or a declaration do not match those of the kernel or the entry point."""


class NoDeviceError(KernelwatchError, RuntimeError):
    """The driver or the device is missing, or the driver is too old for the compiler."""


class CompilerWarning(UserWarning):
    """nvcc succeeded, but printed messages."""
