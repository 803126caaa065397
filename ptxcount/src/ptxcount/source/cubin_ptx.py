"""PTX embedded in cubins, section ``.nv_debug_ptx_txt``, by ``-lineinfo`` and by cuTile."""

from __future__ import annotations

import io

from ..util.errors import LaunchError

#: The first bytes of an ELF file.
ELF = b"\x7fELF"
_SECTION = ".nv_debug_ptx_txt"
#: cuTile's listing of its own code after the PTX.
_INTERMEDIATE = ".nv_intermediate_source_section"


def read_embedded_ptx(cubin: bytes, name: str) -> str:
    """Return the PTX embedded in a cubin; raise `LaunchError` if there is none, or without pyelftools."""
    problem = f"{name} is a cubin or another object file, no source"
    try:
        from elftools.common.exceptions import ELFError  # noqa: PLC0415 -- only cubins need it
        from elftools.elf.elffile import ELFFile  # noqa: PLC0415
    except ImportError:
        raise LaunchError(f"{problem}; to extract its PTX, run: pip install pyelftools") from None
    try:
        section = ELFFile(io.BytesIO(cubin)).get_section_by_name(_SECTION)
        content = section.data() if section else b""
    except (ELFError, ValueError, OSError):
        content = b""
    text: str = content.replace(b"\0", b"\n").decode("utf-8", "replace").partition(_INTERMEDIATE)[0]
    if not text.strip():
        raise LaunchError(
            f"{problem}, without PTX; compile it with -lineinfo, or pass its CUDA C++ or PTX "
            "(cuobjdump -ptx prints embedded PTX)"
        )
    return text
