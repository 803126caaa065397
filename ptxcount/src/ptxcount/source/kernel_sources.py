"""Sources of kernels: files and texts of CUDA C++ or PTX, and cubins with embedded PTX."""

import io
import re
from pathlib import Path
from typing import Any

from ..util.errors import LaunchError
from ..util.regular_files import require_regular
from .cuda_compiler import ARCH

_VERSION = re.compile(r"^[\s\ufeff]*\.version\b", re.MULTILINE)
_TARGET = re.compile(r"^\s*\.target\s+(\w+)", re.MULTILINE)
#: The beginning of PTX after comments: a directive. No CUDA C++ begins with a full stop.
_DIRECTIVE = re.compile(r"\ufeff?(?:\s|//[^\n]*\n|/\*(?:[^*]|\*(?!/))*\*/)*\.[a-z]")
#: The first bytes of an ELF file, and of a fatbin.
_ELF, _FATBIN = b"\x7fELF", b"\x50\xed\x55\xba"
#: The section of a cubin with PTX, by ``-lineinfo`` and by cuTile; and cuTile's listing of its own code after the PTX.
_SECTION, _INTERMEDIATE = ".nv_debug_ptx_txt", ".nv_intermediate_source_section"


def find_target(ptx: str) -> str | None:
    """Find the target architecture of PTX, such as "sm_90a"; None if there is none."""
    target = _TARGET.search(ptx)
    return target and target[1]


def find_chip(ptx: str, arch: str | None) -> str:
    """Return the architecture to run PTX on: ``arch``, or by default the target of the PTX, else `ARCH`.

    If the target is ``arch`` with a suffix, as in sm_90a, the result has the suffix.
    """
    target = find_target(ptx) or ARCH
    return target if arch in (None, target.rstrip("af")) else arch


def is_ptx(source: Path | str) -> bool:
    """Tell if a source is PTX: a file named ``*.ptx``, or content that begins with a directive.

    A text with a line ``.version`` is PTX, too. So is a cubin, because its embedded PTX is executed.
    """
    if not isinstance(source, Path):
        return bool(_DIRECTIVE.match(source) or _VERSION.search(source))
    if source.suffix == ".ptx" or not source.is_file():
        return source.suffix == ".ptx"
    content = source.read_bytes()
    return content.startswith(_ELF) or _DIRECTIVE.match(content.decode("utf-8", "replace")) is not None


def read_source(source: Path | str) -> str:
    """Read the text of a file, or return a text, without a byte order mark; for a cubin, return the embedded PTX.

    Raises `LaunchError` if there is no such regular file, it cannot be read, or it is a cubin without PTX or a fatbin.
    """
    if isinstance(source, str):
        return source.removeprefix("\ufeff")
    require_regular(source)
    try:
        content = source.read_bytes()
    except FileNotFoundError:
        raise LaunchError(f"{source} does not exist; give the path of a source") from None
    except OSError as error:
        raise LaunchError(f"{source}: {error.strerror}") from None
    if content.startswith(_ELF):
        return read_embedded_ptx(content, str(source))
    if content.startswith(_FATBIN):
        remedy = "pass its CUDA C++ or PTX (cuobjdump -ptx prints the PTX in a fatbin)"
        raise LaunchError(f"{source} is a fatbin, not a source; {remedy}")
    return content.decode("utf-8", "replace").removeprefix("\ufeff")


def open_object(content: bytes) -> Any:
    """Open an ELF object file with pyelftools. Raise ELFError for other content, ImportError without pyelftools."""
    from elftools.elf.elffile import ELFFile  # noqa: PLC0415 -- only cubins need it

    return ELFFile(io.BytesIO(content))


def read_section(content: bytes, name: str) -> bytes:
    """Return the bytes of a section of an object file; empty without the section, or for other content.

    Raises `ImportError` without pyelftools.
    """
    from elftools.common.exceptions import ELFError  # noqa: PLC0415 -- as above

    try:
        section = open_object(content).get_section_by_name(name)
        return section.data() if section else b""
    except (ELFError, ValueError, OSError):
        return b""


def read_embedded_ptx(cubin: bytes, name: str) -> str:
    """Return the PTX embedded in a cubin; raise `LaunchError` if there is none, or without pyelftools."""
    try:
        content = read_section(cubin, _SECTION)
    except ImportError:
        needed = "reading the PTX in it needs pyelftools; run: pip install pyelftools"
        raise LaunchError(f"{name} is an object file, and {needed}") from None
    text: str = content.replace(b"\0", b"\n").decode("utf-8", "replace").partition(_INTERMEDIATE)[0]
    if not text.strip():
        remedy = "or pass CUDA C++ or PTX (cuobjdump -ptx prints the PTX in a program)"
        problem = f"{name} is an object file without embedded PTX"
        raise LaunchError(f"{problem}; build it with nvcc -lineinfo -cubin, {remedy}")
    return text
