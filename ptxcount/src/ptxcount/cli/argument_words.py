"""A kernel's arguments from texts such as ``input=float32[64,64]``."""

import json
import math
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ..machine.argument_layout import Argument, ArrayDescriptor, KernelArgument, total_bytes
from ..util import host_memory
from ..util.errors import LaunchError
from ..util.regular_files import require_regular

_ARRAY = re.compile(
    r"(?P<dtype>\w+)\[(?P<shape>\d{1,20}(?:,\d{1,20})*)\](?:=(?P<fill>\w+)(?:\((?P<numbers>[^()]*)\))?)?"
)
_SCALAR = re.compile(r"(?P<dtype>[a-z]+\d*):(?P<value>[-+.\w]+)")
_NAMED = re.compile(r"(?P<name>[\w:]+)=(?P<value>.*)", re.S)
_DESCRIPTOR = re.compile(r"(?P<kind>texture|surface|tensor)(?:\((?P<words>[^()]*)\))?:(?P<rest>.*)", re.S)
_BYTES = re.compile(r"bytes:((?:[0-9a-fA-F]{2})+)")
#: Dtypes by names such as float32 and f4. ``float`` and ``int`` are missing: NumPy's have other sizes than CUDA's.
_DTYPES = {name: dtype for dtype in map(np.dtype, "?bhiqBHIQefdFD") for name in (dtype.name, dtype.str[1:])}
_BOOLS = {"0": False, "1": True, "false": False, "true": True}
#: Fills of an array -> the allowed numbers of parameters.
_FILL_COUNTS = {"zeros": (0,), "ones": (0,), "arange": (0,), "random": (1, 3), "permutation": (1,)}
#: Maximum characters of an argument in an error.
_SHOWN = 60
#: Maximum dimensions of an array in NumPy 1.
_MAX_DIMENSIONS = 32


def make_arguments(words: Sequence[str], folder: Path | None = None) -> list[KernelArgument]:
    """Make a kernel's arguments from their texts, in order. Raise as `make_argument` does."""
    arguments: list[KernelArgument] = []
    for word in words:
        arguments.append(make_argument(word, sum(map(total_bytes, arguments)), folder))
    return arguments


def name_arguments(words: Sequence[str]) -> list[str]:
    """Name the arguments for messages: ``x=int32:7`` is "x (argument 0)", and ``int32:7`` is "argument 0"."""
    matches = enumerate(map(_NAMED.fullmatch, words))
    return [f"{named['name']} (argument {n})" if named else f"argument {n}" for n, named in matches]


def make_variables(words: Sequence[str], folder: Path | None = None) -> dict[str, KernelArgument]:
    """Make the values of module variables from texts such as ``taps=float32[9]``; return them by name.

    Raises `LaunchError` for a text without a name; otherwise raises as `make_argument`.
    """
    for word in words:
        if not _NAMED.fullmatch(word):
            raise LaunchError(f"variable {_shorten(word)} has no name; give one, as in taps=float32[9]=ones")
    return dict(zip((word.partition("=")[0] for word in words), make_arguments(words, folder), strict=True))


def make_argument(word: str, used_bytes: int = 0, folder: Path | None = None) -> KernelArgument:
    """Make a kernel argument from its text, such as ``x=float32[64,64]``; the README of ptxcount lists the forms.

    Paths of files are relative to ``folder``. ``bytes:00ff10`` is a value of any type. Arrays, textures, surfaces and
    tensor maps need a name. In filled arrays, integers beyond the range of a dtype wrap around. Raises `LaunchError`
    for an invalid text or file. Raises `MemoryError` if the array and the ``used_bytes`` of earlier arrays exceed the
    memory of this machine.
    """
    named = _NAMED.fullmatch(word)
    name, value = named.groups() if named else ("", word)
    try:
        return _parse_value(name, value, used_bytes, folder)
    except json.JSONDecodeError as error:
        problem = f'it is not valid JSON: {error}; write, for example, {{"n": "int32:7"}}'
    except (ValueError, OverflowError, TypeError) as error:
        problem = str(error)
    except RecursionError:
        problem = "structs and lists are nested too deeply; use fewer levels"
    raise LaunchError(f"argument {_shorten(word)}: {problem}")


def _parse_value(name: str, value: str, used_bytes: int, folder: Path | None) -> KernelArgument:
    """Make an argument from the text after ``name=``; raise `ValueError` for an array without a name."""
    if value.startswith(("{", "[")):
        return _make_members("member", json.loads(value), used_bytes, folder)
    descriptor, array = _DESCRIPTOR.fullmatch(value), _ARRAY.fullmatch(value)
    if not name and (descriptor or array or value.startswith("@")):
        raise ValueError(f"an array needs a name; write name={value[:_SHOWN]}")
    if descriptor:
        content = make_argument(f"{name}={descriptor['rest']}", used_bytes, folder)
        return _make_descriptor(descriptor["kind"], (descriptor["words"] or "").split(","), content)
    if value.startswith("@"):
        return _load_array(Path(folder or "", value[1:]), used_bytes)
    if array:
        numbers = [_parse_parameter(number) for number in (array["numbers"] or "").split(",") if number.strip()]
        shape = [int(length) for length in array["shape"].split(",")]
        return _fill_array(array["fill"], numbers, shape, _find_dtype(array["dtype"]), used_bytes)
    if match := _BYTES.fullmatch(value):
        return np.void(bytes.fromhex(match[1]))
    if match := _SCALAR.fullmatch(value):
        return _parse_number(match["value"], _find_dtype(match["dtype"]))
    example = "int32:7"
    if re.fullmatch(r"-?\d{1,10}", value):
        example = f"int32:{value}; sizes of a 2-D grid or block have commas, --block 32,32"
    raise ValueError(f"neither an array nor a scalar; write, for example, name=float32[64,64] or {example}")


def _parse_parameter(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise ValueError(f"{_shorten(text)} is not a number; write, for example, random(7)") from None


def _shorten(word: str) -> str:
    return repr(word if len(word) <= _SHOWN else f"{word[:_SHOWN]}...")


def _find_dtype(name: str) -> np.dtype[Any]:
    if name == "bytes":
        raise ValueError("the bytes are no pairs of hexadecimal digits; write, for example, bytes:00ff")
    if name not in _DTYPES:
        raise ValueError(f"{name!r} is not a known dtype; write a NumPy dtype with its size, such as float32")
    return _DTYPES[name]


def _fill_array(
    fill: str | None, numbers: list[float], shape: list[int], dtype: np.dtype[Any], used_bytes: int
) -> Argument:
    """Make an array with a fill, by default ``arange``; ``numbers`` are the parameters of the fill."""
    fill = fill or "arange"
    if len(numbers) not in _FILL_COUNTS.get(fill, ()):
        given = f"{fill}({','.join(f'{number:g}' for number in numbers)})" if numbers else fill
        fills = "zeros, ones, arange, random(seed), random(seed,low,high), permutation(seed)"
        raise ValueError(f"the fill is {given}; allowed are {fills}")
    if len(shape) > _MAX_DIMENSIONS:
        raise ValueError(f"the array has {len(shape)} dimensions; at most {_MAX_DIMENSIONS} are allowed")
    count = math.prod(shape)
    host_memory.require(used_bytes + count * dtype.itemsize)
    if fill == "arange":
        return host_memory.make_range(count, dtype).reshape(shape)
    if fill in ("zeros", "ones"):
        return np.full(shape, int(fill == "ones"), dtype)
    if not (numbers[0] >= 0 and numbers[0].is_integer()):
        raise ValueError(f"the seed of {fill} is {numbers[0]:g}; it must be a whole number from 0 on")
    random = np.random.default_rng(int(numbers[0]))
    if fill == "permutation":
        period = host_memory.HALF_NUMBERS if dtype == np.float16 else count
        return (random.permutation(count) % period).astype(dtype).reshape(shape)
    is_integer = dtype.kind in "iub"
    low, high = numbers[1:] or (0, {"i": count, "u": count, "b": 2}.get(dtype.kind, 1))
    if high < low:
        raise ValueError(f"{fill} has low {low:g} above high {high:g}; exchange them")
    try:
        if is_integer:
            return random.integers(int(low), max(int(high), int(low) + 1), shape).astype(dtype)
        with np.errstate(over="raise"):
            floats = np.asarray(random.uniform(low, high, shape)).astype(dtype)
    except (ValueError, ArithmeticError):
        raise ValueError(f"{fill} has low {low:g} and high {high:g}, too far for {dtype}; use nearer limits") from None
    with np.errstate(over="ignore"):  # limits may be out of the dtype's range
        below_high = np.nextafter(np.asarray(high, floats.real.dtype), np.asarray(low, floats.real.dtype))
        floats[floats.real >= high] = below_high
    return floats


def _load_array(file: Path, used_bytes: int) -> Argument:
    require_regular(file)
    try:
        loaded = np.load(file, mmap_mode="r", allow_pickle=False)
    except FileNotFoundError:
        raise LaunchError(f"{file} does not exist; give the path of a .npy file") from None
    except (OSError, ValueError, EOFError) as error:
        # NumPy takes text for pickled objects, and suggests to allow these.
        problem = getattr(error, "strerror", None) or "it has no array of numbers"
        raise LaunchError(f"{file}: {problem}; give a .npy file") from None
    if not isinstance(loaded, np.ndarray):  # a .npz archive
        raise LaunchError(f"{file}: it is an archive of arrays; give a .npy file, with one array")
    host_memory.require(used_bytes + loaded.nbytes)
    return np.array(loaded, order="C")


def _parse_number(text: str, dtype: np.dtype[Any]) -> np.generic:
    if dtype.kind == "b":
        if text.lower() not in _BOOLS:
            raise ValueError(f"{_shorten(text)} is not a bool; allowed are {', '.join(_BOOLS)}")
        return np.bool_(_BOOLS[text.lower()])
    try:
        if dtype.kind in "iu":
            lowest, highest = np.iinfo(dtype).min, np.iinfo(dtype).max
            if not lowest <= int(text) <= highest:
                raise OverflowError(f"{text} is out of range; allowed are {lowest} to {highest}")
        with np.errstate(all="ignore"):
            value: np.generic = np.array([text]).astype(dtype)[0]
    except ValueError:
        kind = "a decimal integer" if dtype.kind in "iu" else "a number"
        raise ValueError(f"{_shorten(text)} is not {kind} that {dtype} can hold") from None
    if dtype.kind in "fc" and np.isinf(value) and "inf" not in text.lower():
        limits = np.finfo(dtype)
        raise OverflowError(f"{text} is out of range; allowed are {limits.min:g} to {limits.max:g}")
    return value


def _make_members(name: str, value: object, used_bytes: int, folder: Path | None) -> KernelArgument:
    """Make a struct from a mapping, a list from a list, or an argument from a text such as ``int32:7``.

    ``name`` stands before the text in errors.
    """
    if isinstance(value, str):
        return make_argument(f"{name}={value}", used_bytes, folder)
    if not isinstance(value, Mapping | list) or not value:
        allowed = "a text such as 'int32:7', or a list or struct that is not empty"
        raise ValueError(f"{json.dumps(value)} is no value; give {allowed}")
    members: list[KernelArgument] = []
    for label, member in value.items() if isinstance(value, Mapping) else enumerate(value):
        member_name = label if isinstance(label, str) and label.isidentifier() else "member"
        members.append(_make_members(member_name, member, used_bytes + total_bytes(members), folder))
    return dict(zip(value, members, strict=True)) if isinstance(value, Mapping) else members


def _make_descriptor(kind: str, words: Sequence[str], array: object) -> ArrayDescriptor:
    """Make a texture, a surface or a tensor map: ``texture(wrap,2):f4[64]`` has the words ["wrap", "2"]."""
    from ..isa.hopper.tensor_maps import TensorMap  # noqa: PLC0415 - few kernels take any
    from ..isa.textures import ADDRESSES, FILTERS, LAYOUTS, Surface, Texture  # noqa: PLC0415

    if not isinstance(array, np.ndarray):
        raise ValueError(f"a {kind} needs an array, as in {kind}:float32[64,64]")
    classes: dict[str, type[ArrayDescriptor]] = {"texture": Texture, "surface": Surface, "tensor": TensorMap}
    fields = classes[kind].__dataclass_fields__
    # A word -> the option of the class and its value, as in "wrap" -> ("address", "wrap").
    options_by_word: dict[str, tuple[str, Any]] = {}
    for option, texts in (("filter", FILTERS), ("address", ADDRESSES), ("layout", LAYOUTS)):
        options_by_word |= {text: (option, text) for text in texts if option in fields}
    options_by_word |= {flag: (flag, True) for flag in ("normalized", "fractions") if flag in fields}
    options: dict[str, Any] = {}
    numbers: list[int] = []
    for word in filter(None, map(str.strip, words)):
        if word.isdigit():
            numbers.append(int(word))
        elif "swizzle" in fields and word.removeprefix("swizzle=").isdigit():
            options["swizzle"] = int(word.removeprefix("swizzle="))
        elif word in options_by_word:
            options |= [options_by_word[word]]
        else:
            numbers_text = "the number of channels" if options_by_word else "the lengths of the box"
            allowed = ", ".join(options_by_word or ["swizzle=BYTES"])  # a tensor map has no other words
            raise ValueError(f"{word!r} is no option of a {kind}; allowed are {allowed}, and {numbers_text}")
    if kind == "tensor":
        options["box"] = tuple(numbers)
    elif numbers:
        options["channels"], *others = numbers
        if others:
            raise ValueError(f"{others[0]} is a second number; give only the number of channels")
    try:
        return classes[kind](array, **options)
    except LaunchError as error:
        raise ValueError(str(error)) from None
