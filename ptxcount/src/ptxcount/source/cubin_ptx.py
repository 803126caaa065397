"""PTX embedded in cubins, section ``.nv_debug_ptx_txt``, by ``-lineinfo`` and by cuTile."""

import io
from typing import Any

from ..util.errors import LaunchError

#: The first bytes of an ELF file.
ELF = b"\x7fELF"
_SECTION = ".nv_debug_ptx_txt"
#: cuTile's listing of its own code after the PTX.
_INTERMEDIATE = ".nv_intermediate_source_section"


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
