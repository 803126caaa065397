"""Sources of kernels: files and texts, of CUDA C++ or PTX."""

from __future__ import annotations

import re
from pathlib import Path

from ..util.errors import LaunchError
from ..util.regular_files import require_regular

_VERSION = re.compile(r"^[\s\ufeff]*\.version\b", re.MULTILINE)
#: The first words of PTX behind comments: a directive. No CUDA C++ begins with a full stop.
_DIRECTIVE = re.compile(r"\ufeff?(?:\s|//[^\n]*\n|/\*(?:[^*]|\*(?!/))*\*/)*\.[a-z]")
#: The first bytes of compiled files.
_BINARIES = {b"\x7fELF": "a cubin or another object file", b"\x50\xed\x55\xba": "a fatbin"}


def is_ptx(source_or_ptx: Path | str) -> bool:
    """Tell whether a source is PTX: a name that ends in .ptx, a first directive, or a line with ``.version``."""
    if not isinstance(source_or_ptx, Path):
        return bool(_DIRECTIVE.match(source_or_ptx) or _VERSION.search(source_or_ptx))
    if source_or_ptx.suffix == ".ptx" or not source_or_ptx.is_file():
        return source_or_ptx.suffix == ".ptx"
    return _DIRECTIVE.match(source_or_ptx.read_text(encoding="utf-8", errors="replace")) is not None


def read_source(source: Path | str) -> str:
    """Read the text of a file, or return a text, without a byte order mark.

    Raises
    ------
    LaunchError
        There is no such regular file, or it holds machine code.
    """
    if isinstance(source, str):
        return source.removeprefix("\ufeff")
    require_regular(source)
    try:
        content = source.read_bytes()
    except FileNotFoundError:
        raise LaunchError(f"{source}: no such file") from None
    except OSError as error:
        raise LaunchError(f"{source}: {error.strerror}") from None
    if kind := _BINARIES.get(content[:4]):
        raise LaunchError(
            f"{source} is {kind}, no source; give its CUDA C++ or PTX (cuobjdump -ptx prints embedded PTX)"
        )
    return content.decode("utf-8", "replace").removeprefix("\ufeff")
