"""The C++ types of the dtypes for which kernels are compiled."""

from collections.abc import Iterator, Mapping
from typing import TypeVar

from numpy.typing import DTypeLike

from kernelwatch.errors import UnknownDtypeError
from kernelwatch.kernel.arguments import to_dtype

Key = TypeVar("Key", str, int)
Value = TypeVar("Value")

#: NumPy's name -> the C++ type that replaces {T}, and its CUDA header. To add a dtype, add a row.
CPP = {
    "int8": ("signed char", ""),
    "int16": ("short", ""),
    "int32": ("int", ""),
    "int64": ("long long", ""),
    "uint8": ("unsigned char", ""),
    "uint16": ("unsigned short", ""),
    "uint32": ("unsigned int", ""),
    "uint64": ("unsigned long long", ""),
    "float16": ("__half", "cuda_fp16.h"),
    "bfloat16": ("__nv_bfloat16", "cuda_bf16.h"),
    "float32": ("float", ""),
    "float64": ("double", ""),
    "complex64": ("cuda::std::complex<float>", "cuda/std/complex"),
    "complex128": ("cuda::std::complex<double>", "cuda/std/complex"),
}

#: Bytes of an element -> the built-in C++ type of that size that replaces {bits}; it needs no header.
BITS = {1: "signed char", 2: "short", 4: "float", 8: "double", 16: "double2"}


def fill_types(text: str, dtype: DTypeLike) -> str:
    """Replace {T} by a dtype's C++ type, and {bits} by the built-in type of the same size.

    Raises UnknownDtypeError if there is no such type.
    """
    if "{T}" in text:
        text = text.replace("{T}", _look_up_type(CPP, to_dtype(dtype).name, text)[0])
    if "{bits}" in text:
        text = text.replace("{bits}", _look_up_type(BITS, to_dtype(dtype).itemsize, text))
    return text


def fill_options(texts: tuple[str, ...], dtype: DTypeLike) -> Iterator[str]:
    """Yield options of nvcc with a dtype's C++ types for {T} and {bits}; before them, the include of {T}'s header."""
    if any("{T}" in text for text in texts):
        _type, header = _look_up_type(CPP, to_dtype(dtype).name, "{T}")
        if header:
            yield from ("-include", header)
    yield from (fill_types(text, dtype) for text in texts)


def _look_up_type(types: Mapping[Key, Value], key: Key, text: str) -> Value:
    if key not in types:
        element = f"an element of {key} bytes" if isinstance(key, int) else f"the dtype {key}"
        raise UnknownDtypeError(f"{text!r}: {element} has no C++ type; allowed are {', '.join(map(str, types))}")
    return types[key]
