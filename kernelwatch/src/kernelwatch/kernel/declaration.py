"""Checks of a kernel's declaration."""

from collections.abc import Callable, Collection, Iterable, Mapping
from os import PathLike
from typing import Any

import numpy as np

from kernelwatch.errors import ArgumentError
from kernelwatch.kernel.launch import lacks_value
from kernelwatch.kernel.parameters import ArrayParameter, ScalarParameter, to_parameters

#: Names that a launch's arguments must not have: axes that are not arguments, and parameters of grid functions.
RESERVED = ("kernel", "dtype", "flags", "arch", "copy", "sides", "multiprocessors")

#: Setting -> its allowed types, and their description in a message. None is allowed, too.
_TYPES: dict[str, tuple[Any, str]] = {
    **dict.fromkeys(("entry", "prelude", "where"), (str, "a string")),
    **dict.fromkeys(("text", "ptx"), (str | Callable, "a string or a function")),
    "file": (str | PathLike, "a path"),
    "constants": (Mapping, "a mapping from names to values"),
}

#: Setting that is a list -> the allowed types of its elements, and their description in a message.
_ELEMENT_TYPES: dict[str, tuple[Any, str]] = {
    **dict.fromkeys(("over", "options", "read"), (str, "strings")),
    "dtypes": (str | type | np.dtype, "dtypes"),
    "include": (str | PathLike, "paths"),
    "arguments": (object, "arguments"),
    "earlier": (Mapping, "mappings"),
}


def check_settings(name: str, settings: Mapping[str, Any]) -> None:
    """Raise ArgumentError if a setting of the kernel `name` is not valid, whatever the values of its arguments."""
    if (
        not isinstance(name, str)
        or len(name.split()) != 1
        or name != name.strip()
        or "," in name
        or name.startswith("-")
    ):
        raise ArgumentError(f"{name!r} is not a name of a kernel; write one without spaces, commas and a leading -")
    _check_types(name, settings)
    sources = [setting for setting in ("file", "text", "ptx") if settings[setting]]
    if len(sources) != 1:
        raise ArgumentError(f"{name}: give exactly one of file, text and ptx; given: {', '.join(sources) or 'none'}")
    options = tuple(settings["options"])
    if lacks_value(options):
        raise ArgumentError(f"{name}: options= ends with {options[-1]}, which needs a value, as in -Xptxas -O3")
    if not settings["over"] and settings["grid"] is None:
        raise ArgumentError(f"{name}: the grid is missing; give over= (lengths) or grid= (blocks)")
    _check_arguments(name, settings["arguments"])
    _check_reference(name, settings["reference"], settings["arguments"])


def _check_types(kernel: str, settings: Mapping[str, Any]) -> None:
    for setting, (types, allowed) in _TYPES.items():
        if not isinstance(value := settings[setting], types | None):
            raise ArgumentError(f"{kernel}: {setting}= needs {allowed}; given: {value!r}")
    for setting, (types, allowed) in _ELEMENT_TYPES.items():
        value = settings[setting]
        is_list = isinstance(value, Collection) and not isinstance(value, str | Mapping)
        if not is_list or not all(isinstance(element, types) for element in value):
            raise ArgumentError(f"{kernel}: {setting}= needs a list of {allowed}; given: {value!r}")
    if unknown := sorted(set().union(*settings["earlier"]) - set(settings)):
        raise ArgumentError(f"{kernel}: earlier= has {', '.join(unknown)}; allowed are {', '.join(settings)}")


def _check_arguments(kernel: str, arguments: Iterable[Any]) -> None:
    for argument in arguments:
        is_parameter = isinstance(argument, ArrayParameter | ScalarParameter) and isinstance(argument.name, str)
        if not (isinstance(argument, str) or is_parameter):
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
