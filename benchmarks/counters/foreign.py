"""Anyone's kernel: its arguments from words such as ``input=float32[64,64]``, its PTX from a source file."""

from __future__ import annotations

import math
import re
import shlex
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from benchmarks.instruments import host_memory
from benchmarks.instruments.ptx.errors import LaunchError
from benchmarks.instruments.ptx.execute import Argument
from benchmarks.instruments.ptx.parser import parse
from gpu_kernels import nvcc
from gpu_kernels.errors import CompileError

_ARRAY = re.compile(r"(?P<name>\w+)=(?P<dtype>\w+)\[(?P<shape>\d+(?:,\d+)*)\](?:=(?P<fill>zeros|ones|arange))?")
_SCALAR = re.compile(r"(?:(?P<name>\w+)=)?(?P<dtype>[a-z]+\d*):(?P<value>[-+.\w]+)")


def dimensions(text: str) -> tuple[int, int, int]:
    """``X``, ``X,Y`` or ``X,Y,Z`` as three numbers.

    Raises
    ------
    ValueError
        It is neither.
    """
    numbers = [int(word) for word in text.split(",")]
    if len(numbers) > 3:
        raise ValueError(f"{text!r}: one to three numbers are wanted")
    x, y, z = (*numbers, 1, 1)[:3]
    return x, y, z


def _dtype(name: str, word: str) -> np.dtype[Any]:
    try:
        return np.dtype(name)
    except TypeError:
        raise LaunchError(f"argument {word!r}: {name!r} is not a NumPy dtype") from None


def arguments(words: Sequence[str]) -> list[Argument]:
    """A kernel's arguments, in its order, from their descriptions. Raises as `argument`."""
    made: list[Argument] = []
    for word in words:
        made.append(argument(word, beside=sum(each.nbytes for each in made)))
    return made


def argument(word: str, beside: int = 0) -> Argument:
    """A kernel argument from its description.

    Parameters
    ----------
    word : str
        ``name=dtype[shape]`` for an array that holds 0, 1, 2, ... (``=zeros`` or ``=ones`` after it for others), or
        ``dtype:value`` for a scalar, which may have a name in front as well.
    beside : int
        Bytes of the arguments that there are already.

    Raises
    ------
    LaunchError
        It is neither.
    MemoryError
        Together they are larger than this machine's memory.
    """
    array, scalar = _ARRAY.fullmatch(word), _SCALAR.fullmatch(word)
    if array:
        dtype, shape = _dtype(array["dtype"], word), tuple(int(n) for n in array["shape"].split(","))
        host_memory.require(beside + math.prod(shape) * dtype.itemsize)
        return _filled(array["fill"] or "arange", shape, dtype)
    if scalar:
        dtype = _dtype(scalar["dtype"], word)
        try:
            value: np.generic = np.array([scalar["value"]]).astype(dtype)[0]
        except (ValueError, OverflowError):
            raise LaunchError(f"argument {word!r}: {scalar['value']!r} is not a {dtype.name}") from None
        return value
    raise LaunchError(f"argument {word!r}: neither an array, name=float32[64,64], nor a scalar, int32:7")


def _filled(fill: str, shape: tuple[int, ...], dtype: np.dtype[Any]) -> npt.NDArray[Any]:
    if fill == "arange":
        return host_memory.counting(math.prod(shape), dtype).reshape(shape)
    return np.full(shape, int(fill == "ones"), dtype)


@dataclass(frozen=True)
class Compiled:
    """PTX, and the name that the wanted kernel has in it."""

    ptx: str
    entry: str


def compile_source(source: Path, entry: str, flags: str, arch: str) -> Compiled:
    """Compile a CUDA file to PTX with source lines, and find a kernel in it.

    Parameters
    ----------
    source : Path
        The file.
    entry : str
        The kernel's name, as written in the file or as mangled.
    flags : str
        Further options of nvcc, as typed on its command line.

    Raises
    ------
    CompileError
        nvcc refused; with its text.
    LaunchError
        There is no such kernel, or more than one.
    """
    if not source.is_file():
        raise LaunchError(f"{source}: no such file")
    with tempfile.TemporaryDirectory() as folder:
        target = Path(folder, "kernel.ptx")
        command = [str(nvcc.find_nvcc()), "--ptx", "-lineinfo", "-arch", arch, *shlex.split(flags)]
        command += [str(source), "-o", str(target)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise CompileError(f"nvcc failed: {shlex.join(command)}\n{(done.stdout + done.stderr).strip()}")
        text = target.read_text(encoding="utf-8")
    names = list(parse(text).entries)
    mangled = re.compile(rf"_Z\w*{len(entry)}{re.escape(entry)}\D?.*", re.DOTALL)
    found = [name for name in names if name == entry] or [name for name in names if mangled.fullmatch(name)]
    if len(found) != 1:
        raise LaunchError(f"{source}: {len(found)} kernels named {entry!r}; it has {', '.join(names) or 'none'}")
    return Compiled(text, found[0])
