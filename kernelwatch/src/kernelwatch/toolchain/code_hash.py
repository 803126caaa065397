"""The hash of a cubin's machine code, to compare two compilers: the rest of a cubin contains its compiler's name."""

import hashlib
import struct
from collections.abc import Iterator

#: Prefixes of the sections of machine code: instructions and constants.
_CODE = (".text.", ".nv.constant")

#: First bytes of a 64-bit ELF file, and the type of sections of zeros, which have no contents in the file.
_ELF, _NO_BITS = b"\x7fELF\x02", 8


def hash_machine_code(cubin: bytes) -> str:
    """Return the hexadecimal SHA-256 of a cubin's instructions and constants.

    Raises ValueError if `cubin` is not a 64-bit ELF image.
    """
    digest = hashlib.sha256()
    try:
        sections = dict(_iter_sections(cubin))
    except (struct.error, ValueError, IndexError, OverflowError):
        beginning = f"it begins with {cubin[:4]!r}"
        raise ValueError(f"nvcc's output is not machine code ({beginning}); set NVCC to a working nvcc") from None
    for name, data in sorted(sections.items()):
        if name.startswith(_CODE):
            digest.update(f"{name} {len(data)} ".encode() + data)
    return digest.hexdigest()


def _iter_sections(elf: bytes) -> Iterator[tuple[str, bytes]]:
    """Yield the names and contents of the sections of a 64-bit ELF file (System V ABI, "Object Files")."""
    if not elf.startswith(_ELF):
        raise ValueError
    (start,), (size, count, names_index) = struct.unpack_from("<Q", elf, 0x28), struct.unpack_from("<3H", elf, 0x3A)
    headers = [struct.unpack_from("<2I4Q", elf, start + size * index) for index in range(count)]
    names = headers[names_index][4]
    for name, kind, _, _, offset, length in headers:
        text = elf[names + name : elf.index(0, names + name)]
        yield text.decode(), bytes(length) if kind == _NO_BITS else elf[offset : offset + length]
