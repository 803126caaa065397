"""Sources of kernels: files and texts of CUDA C++ or PTX, and cubins with embedded PTX."""

import re
from pathlib import Path

from ..util.errors import LaunchError
from ..util.regular_files import require_regular
from .cubin_ptx import ELF, read_embedded_ptx
from .cuda_compiler import ARCH

_VERSION = re.compile(r"^[\s\ufeff]*\.version\b", re.MULTILINE)
_TARGET = re.compile(r"^\s*\.target\s+(\w+)", re.MULTILINE)
#: The beginning of PTX after comments: a directive. No CUDA C++ begins with a full stop.
_DIRECTIVE = re.compile(r"\ufeff?(?:\s|//[^\n]*\n|/\*(?:[^*]|\*(?!/))*\*/)*\.[a-z]")
#: The first bytes of a fatbin.
_FATBIN = b"\x50\xed\x55\xba"


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
    return content.startswith(ELF) or _DIRECTIVE.match(content.decode("utf-8", "replace")) is not None


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
    if content.startswith(ELF):
        return read_embedded_ptx(content, str(source))
    if content.startswith(_FATBIN):
        remedy = "pass its CUDA C++ or PTX (cuobjdump -ptx prints the PTX in a fatbin)"
        raise LaunchError(f"{source} is a fatbin, not a source; {remedy}")
    return content.decode("utf-8", "replace").removeprefix("\ufeff")
