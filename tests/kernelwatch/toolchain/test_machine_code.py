"""The hash of machine code by itself."""

from __future__ import annotations

import io

import pytest
from elftools.elf.elffile import ELFFile

from gpu_kernels import KERNELS
from kernelwatch.toolchain import machine_code

ARCH = "sm_90"


@pytest.fixture(scope="module")
def cubin() -> bytes:
    """A copy, compiled for real."""
    return KERNELS["offset_copy"].cubin("float32", arch=ARCH).data


def _place(cubin: bytes, section: str) -> int:
    """Where a section's first byte lies in the file."""
    found = next(each for each in ELFFile(io.BytesIO(cubin)).iter_sections() if each.name.startswith(section))
    return int(found["sh_offset"])


@pytest.mark.parametrize("section", [".text.", ".nv.constant0", ".note.nv.tkinfo", ".nv.info", ".debug_frame"])
def test_what_counts(section: str, cubin: bytes) -> None:
    """Another byte of instructions or constants is other machine code; one of a note, which names nvcc, is not."""
    changed = bytearray(cubin)
    changed[_place(cubin, section)] ^= 1
    assert (machine_code.sha256(cubin) != machine_code.sha256(bytes(changed))) == section.startswith(
        (".text", ".nv.con")
    )


@pytest.mark.parametrize("written", [b"", b"garbage", b"\x7fELF", b"\x7fELF\2\1\1" + b"\xff" * 200])
def test_what_is_no_machine_code(written: bytes) -> None:
    """One line says that nvcc wrote it, and what to do."""
    said = r"^what nvcc wrote is no machine code \([^\n]+\); set NVCC to a working nvcc$"
    with pytest.raises(ValueError, match=said):
        machine_code.sha256(written)
