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
    """The base of the errors in this module, and of most others that this library defines."""


#: Bases of the errors that the library raises on purpose, with those of ptxcount, which it uses to compile.
ERRORS = (KernelwatchError, PtxError)


class NoSuiteError(KernelwatchError):
    """The project names no suite, and has none in the default place."""


class SuiteError(KernelwatchError):
    """The suite that the project names does not exist, is not a suite, or cannot be imported.

    The message on a failed import begins with the file and line that failed.
    """


class UnknownKernelError(KernelwatchError, LookupError):
    """The suite has no such kernel, or the commit lacks the kernel's source or entry point, or a needed constant."""


class UnknownDtypeError(KernelwatchError, LookupError):
    """A kernel does not support a dtype, or there is no C++ type or launch geometry for the dtype."""


class NoSuchDtypeError(UnknownDtypeError):
    """NumPy has no such dtype, or the dtype holds Python objects."""


class UnknownFlagsError(KernelwatchError, LookupError):
    """The text of nvcc's flags cannot be split into arguments, or an option lacks its value."""


class ArgumentError(KernelwatchError, ValueError):
    """An argument of a declaration or a launch is not valid, or a function of the project fails."""


class UnknownArgumentError(ArgumentError, LookupError):
    """The arguments of a launch or a declaration do not match those of the kernel or the entry point."""


class NoDeviceError(KernelwatchError, RuntimeError):
    """PyCUDA, the driver or a device is missing, the driver is older than nvcc, or a thread has no CUDA context."""


class CompilerWarning(UserWarning):
    """nvcc succeeded, but printed warnings."""
