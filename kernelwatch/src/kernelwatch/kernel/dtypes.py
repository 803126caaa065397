"""The C++ types of the dtypes that kernels are made for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TypeVar

from numpy.typing import DTypeLike

from kernelwatch.errors import UnknownDtypeError
from kernelwatch.kernel.arguments import dtype_of

Key = TypeVar("Key", str, int)
Value = TypeVar("Value")

#: To add a dtype: one row. NumPy's name -> the C++ type, which {T} stands for, and CUDA's header that declares it.
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

#: Bytes of an element -> a built-in C++ type of that size, which {bits} stands for: what is moved needs no header.
BITS = {1: "signed char", 2: "short", 4: "float", 8: "double", 16: "double2"}


def filled(text: str, dtype: DTypeLike) -> str:
    """Return a text with the C++ types of a dtype for {T} and {bits}. Raises UnknownDtypeError if it has none."""
    if "{T}" in text:
        text = text.replace("{T}", _found(CPP, dtype_of(dtype).name, text)[0])
    if "{bits}" in text:
        text = text.replace("{bits}", _found(BITS, dtype_of(dtype).itemsize, text))
    return text


def options(texts: tuple[str, ...], dtype: DTypeLike) -> Iterator[str]:
    """Yield options of nvcc, filled, and before them the header of a type that they name. Raises as `filled`."""
    header = any("{T}" in each for each in texts) and _found(CPP, dtype_of(dtype).name, "{T}")[1]
    yield from ("-include", header) if header else ()
    yield from (filled(each, dtype) for each in texts)


def _found(types: Mapping[Key, Value], key: Key, text: str) -> Value:
    if key not in types:
        kind = f"elements of {key} bytes" if isinstance(key, int) else f"the dtype {key}"
        raise UnknownDtypeError(f"{text!r}: {kind} have no C++ type; those of {', '.join(map(str, types))} have")
    return types[key]
