"""Checks of a kernel's declaration."""

from collections.abc import Iterable, Mapping
from typing import Any

from kernelwatch.errors import ArgumentError
from kernelwatch.kernel.launch import lacks_value
from kernelwatch.kernel.parameters import ArrayParameter, ScalarParameter, to_parameters

#: Names that a launch's arguments must not have: axes that are not arguments, and parameters of grid functions.
RESERVED = ("kernel", "dtype", "flags", "arch", "copy", "sides", "multiprocessors")

#: Settings that are lists. A string would be a list of its characters.
_LISTS = ("arguments", "over", "options", "dtypes", "include", "read")


def check_settings(name: str, settings: Mapping[str, Any]) -> None:
    """Raise ArgumentError if a setting of the kernel `name` is not valid, whatever the values of its arguments."""
    if len(name.split()) != 1 or name != name.strip() or "," in name or name.startswith("-"):
        raise ArgumentError(f"{name!r} is not a name of a kernel; write one without spaces and commas")
    for setting in _LISTS:
        if isinstance(settings[setting], str):
            raise ArgumentError(f"{name}: {setting}= needs a list; given: {settings[setting]!r}")
    sources = [setting for setting in ("file", "text", "ptx") if settings[setting]]
    if len(sources) != 1:
        raise ArgumentError(f"{name}: give exactly one of file, text and ptx; given: {', '.join(sources) or 'none'}")
    options = settings["options"]
    if lacks_value(options):
        raise ArgumentError(f"{name}: options= ends with {options[-1]}, which needs a value, as in -Xptxas -O3")
    if not settings["over"] and settings["grid"] is None:
        raise ArgumentError(f"{name}: the grid is missing; give over= (lengths) or grid= (blocks)")
    _check_arguments(name, settings["arguments"])
    _check_reference(name, settings["reference"], settings["arguments"])


def _check_arguments(kernel: str, arguments: Iterable[Any]) -> None:
    for argument in arguments:
        if not isinstance(argument, str | ArrayParameter | ScalarParameter):
            allowed = "a name, or inputs(), outputs(), in_and_out() or scalar()"
            raise ArgumentError(f"{kernel}: each of the arguments must be {allowed}; given: {argument!r}")
    # A scalar may appear several times, such as the length of a square matrix.
    names = list(dict.fromkeys(argument for argument in arguments if isinstance(argument, str)))
    names += [argument.name for argument in arguments if not isinstance(argument, str)]
    if len(set(names)) < len(names):
        raise ArgumentError(f"{kernel}: two arguments have the same name; given: {', '.join(names)}")
    if not any(isinstance(argument, ArrayParameter) and argument.direction != "in" for argument in arguments):
        raise ArgumentError(
            f"{kernel}: there is no output; use outputs or in_and_out to declare the array that the kernel writes"
        )
    for parameter in to_parameters(arguments):
        for name in parameter.extent_names() if isinstance(parameter, ScalarParameter) else ():
            if name in RESERVED:
                raise ArgumentError(f"{kernel}: an argument cannot be called {name}; rename it, for example {name}_")


def _check_reference(kernel: str, reference: Any, arguments: Iterable[Any]) -> None:
    """Raise ArgumentError unless `reference` is None, a function, or a `Kernel` with the same arrays in their order."""
    if reference is None or callable(reference):
        return
    if not hasattr(reference, "declared"):
        raise ArgumentError(f"{kernel}: reference= needs a function or a Kernel; given: {reference!r}")
    own, others = (
        ", ".join(parameter.name for parameter in parameters if isinstance(parameter, ArrayParameter))
        for parameters in (arguments, reference.declared)
    )
    if own != others:
        needed = f"it must take {own}, in this order; an entry of earlier= with other arrays needs its own reference"
        raise ArgumentError(f"{kernel}: the kernel in reference= takes {others}; {needed}")
