"""Machine code by itself: its hash, and its instructions by class."""

from __future__ import annotations

import importlib.util
import io
import re
import shutil
from pathlib import Path

import pytest
from elftools.elf.elffile import ELFFile

from gpu_kernels import KERNELS
from kernelwatch.project import ROOT
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


@pytest.mark.parametrize(
    ("section", "counts"),
    [
        (".text.", True),
        (".nv.constant0", True),
        (".note.nv.tkinfo", False),
        (".nv.info", False),
        (".debug_frame", False),
    ],
)
def test_what_counts(section: str, counts: bool, cubin: bytes) -> None:
    """Another byte of instructions or constants is other machine code; one of a note, which names nvcc, is not."""
    changed = bytearray(cubin)
    changed[_place(cubin, section)] ^= 1
    before, after = machine_code.sections(cubin), machine_code.sections(bytes(changed))
    assert (before[0] != after[0]) == counts
    assert (before[1] != after[1]) == (section == ".text.")


@pytest.mark.parametrize(
    ("opcode", "name"),
    [
        ("LDG.E.128.CONSTANT", "global load 128"),
        ("LDG.E.U8.CONSTANT", "global load 8"),
        ("LDG.E.ENL2.256", "global load 256"),
        ("STG.E", "global store 32"),
        ("LDS.U16", "shared load 16"),
        ("STL.S16", "local store 16"),
        ("LDL.LU", "local load 32"),
        ("ULDC.64", "constant load 64"),
        ("LDCU.128", "constant load 128"),
        ("ATOMG.E.ADD.64", "atomic 64"),
        ("IMAD.WIDE.U32", "integer"),
        ("UIADD3", "integer"),
        ("FFMA", "floating point"),
        ("HADD2.F32", "floating point"),
        ("UMOV", "move"),
        ("BRA", "branch"),
        ("BAR.SYNC.DEFER_BLOCKING", "barrier"),
        ("USEL", "move"),
        ("F2FP.F16.F32.PACK_AB", "other"),
        ("NEWINSTRUCTION.64", "other"),
    ],
)
def test_classes(opcode: str, name: str) -> None:
    """By what an instruction does; of memory, which one and how many bits."""
    assert machine_code.class_of(opcode) == name


def test_instructions(cubin: bytes, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A copy loads and stores once; two that are disassembled together are told apart; nothing is done twice."""
    monkeypatch.setenv("KERNELWATCH_CACHE", str(tmp_path))
    wide = KERNELS["offset_copy"].cubin("float64", arch=ARCH).data
    found = machine_code.codes({"narrow": cubin, "wide": wide, "again": cubin}, ARCH)
    for name, bits in (("narrow", 32), ("wide", 64), ("again", 32)):
        instructions = found[name].instructions
        assert instructions is not None
        moved = {each: count for each, count in instructions.items() if each.startswith("global")}
        assert moved == {f"global load {bits}": 1, f"global store {bits}": 1}
        padding = 16 * sum(instructions.values()) - len(machine_code.sections({"wide": wide}.get(name, cubin))[1])
        assert -256 < padding <= 0
    monkeypatch.setattr(machine_code, "_opcodes", pytest.fail)
    assert machine_code.codes({"narrow": cubin}, ARCH) == {"narrow": found["narrow"]}


def test_without_a_disassembler(
    cubin: bytes, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The hash is there, the instructions are not, and one line says why and what to do."""
    monkeypatch.setenv("KERNELWATCH_CACHE", str(tmp_path))
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: None)
    monkeypatch.setattr(shutil, "which", lambda _: None)
    machine_code.disassembler.cache_clear()
    try:
        (found,) = machine_code.codes({"x": cubin}, ARCH).values()
    finally:
        machine_code.disassembler.cache_clear()
    assert found == machine_code.Code(machine_code.sections(cubin)[0], None)
    said = f"instructions for {ARCH} are not counted: there is no nvdisasm; run: pip install {machine_code.REQUIREMENT}"
    assert capsys.readouterr().out == f"{said}\n"


def test_the_disassembler_is_the_pinned_one() -> None:
    """The requirement of asv's environments is the one that the counts name."""
    assert re.search(rf"^{machine_code.REQUIREMENT}$", (ROOT / "requirements/environment.txt").read_text(), re.M)


@pytest.mark.parametrize("written", [b"", b"garbage", b"\x7fELF", b"\x7fELF\2\1\1" + b"\xff" * 200])
def test_what_is_no_machine_code(written: bytes) -> None:
    """One line says that nvcc wrote it, and what to do."""
    with pytest.raises(
        ValueError, match=r"^what nvcc wrote is no machine code \([^\n]+\); set NVCC to a working nvcc$"
    ):
        machine_code.codes({"x": written}, ARCH)
