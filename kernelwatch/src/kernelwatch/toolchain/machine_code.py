"""Machine code by itself: its hash, which two compilers can share, and its instructions by class.

The hash of a whole cubin tells compilers apart even where their code is the same: its notes name the compiler.
"""

from __future__ import annotations

import hashlib
import importlib.util
import json
import re
import shutil
import struct
import subprocess
import tempfile
from collections import Counter
from collections.abc import Hashable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any, TypeVar

from kernelwatch.toolchain import cache as store
from kernelwatch.toolchain.nvcc_call import NvccOutput

#: The PyPI requirement that brings the disassembler: of one release, whichever compiler is measured.
REQUIREMENT = "nvidia-cuda-nvdisasm==13.5.37"

#: What the names of the sections begin with that are machine code: instructions and constants.
_CODE, _CONSTANTS = ".text.", ".nv.constant"

#: How an ELF file of 64 bits begins, and the type of a section whose contents, zeros, are not in it.
_ELF, _NO_BITS = b"\x7fELF\x02", 8

#: Bytes of an instruction, from sm_70 on (CUDA Binary Utilities, "Instruction Set Reference").
_INSTRUCTION = 16

#: Seconds that the disassembler may take for a whole architecture: two busy cores need three.
_LIMIT = 120

#: Opcode up to its first full stop -> what it does to which memory. Its suffixes have the width.
_MEMORY = {
    **dict.fromkeys(("LDG",), "global load"),
    **dict.fromkeys(("STG",), "global store"),
    **dict.fromkeys(("LDS", "LDSM"), "shared load"),
    **dict.fromkeys(("STS", "STSM"), "shared store"),
    **dict.fromkeys(("LDL",), "local load"),
    **dict.fromkeys(("STL",), "local store"),
    **dict.fromkeys(("LDC", "LDCU", "ULDC"), "constant load"),
    **dict.fromkeys(("LD",), "generic load"),
    **dict.fromkeys(("ST",), "generic store"),
    **dict.fromkeys(("ATOM", "ATOMG", "ATOMS", "RED", "REDG"), "atomic"),
}

#: Class -> its opcodes, after the tables of the same reference. U before one is the uniform datapath's.
_CLASSES = {
    "move": "CS2R MOV MOVM P2R PRMT R2P R2UR S2R S2UR SEL SGXT SHFL",
    "integer": "BMSK BREV FLO IABS IADD IADD3 IDP IMAD IMNMX IMUL ISCADD ISETP LEA LOP LOP3 POPC SHF SHL SHR VABSDIFF "
    "VIADD VIADDMNMX VIMNMX VIMNMX3",
    "floating point": "DADD DFMA DMUL DSETP FADD FADD2 FCHK FFMA FFMA2 FMNMX FMUL FMUL2 FSEL FSETP FSWZADD HADD2 HFMA2 "
    "HMNMX2 HMUL2 HSET2 HSETP2 MUFU",
    "branch": "BRA BREAK BRX BRXU BSSY BSYNC CALL EXIT JMP JMX KILL RET WARPSYNC YIELD",
    "barrier": "B2R BAR DEPBAR ERRBAR MEMBAR SYNCS",
}
_CLASS = {opcode: name for name, opcodes in _CLASSES.items() for opcode in opcodes.split()}

#: Fills up the end of a section.
_PADDING = "NOP"

#: How an opcode's suffix names a width, and the width of one that names none.
_WIDTH = re.compile(r"^(?:[US](?=8$|16$))?(8|16|64|128|256)$")
_WORD = "32"

#: What the counts rest on: they are counted anew where any of it is another.
_KEY = ("instructions", REQUIREMENT, json.dumps([_MEMORY, _CLASSES]))


Name = TypeVar("Name", bound=Hashable)


@dataclass(frozen=True)
class Code:
    """The machine code of one kernel.

    Parameters
    ----------
    sha256 : str
        Over instructions and constants, hexadecimal.
    instructions : dict of str to int or None
        How many of each class it has, by name: "integer", "global load 128"; None where there is no disassembler.
    """

    sha256: str
    instructions: dict[str, int] | None


def sections(cubin: bytes) -> tuple[str, bytes]:
    """Return the hash of a cubin's instructions and constants, and the instructions.

    Raises
    ------
    ValueError
        It is no cubin.
    """
    digest, code = hashlib.sha256(), b""
    try:
        found = dict(_sections(cubin))
    except (struct.error, ValueError, IndexError, OverflowError):
        begins = f"it begins with {cubin[:4]!r}"
        raise ValueError(f"what nvcc wrote is no machine code ({begins}); set NVCC to a working nvcc") from None
    for name in sorted(found):
        if name.startswith((_CODE, _CONSTANTS)):
            data = found[name]
            digest.update(f"{name} {len(data)} ".encode() + data)
            code += data if name.startswith(_CODE) else b""
    return digest.hexdigest(), code


def _sections(elf: bytes) -> Iterator[tuple[str, bytes]]:
    """Yield the names and contents of an ELF file's sections (System V ABI, "Object Files", of 64 bits)."""
    if not elf.startswith(_ELF):
        raise ValueError
    (start,), (size, count, of_names) = struct.unpack_from("<Q", elf, 0x28), struct.unpack_from("<3H", elf, 0x3A)
    headers = [struct.unpack_from("<2I4Q", elf, start + size * place) for place in range(count)]
    names = headers[of_names][4]
    for name, kind, _, _, offset, length in headers:
        text = elf[names + name : elf.index(0, names + name)]
        yield text.decode(), bytes(length) if kind == _NO_BITS else elf[offset : offset + length]


def codes(cubins: Mapping[Name, bytes], arch: str) -> dict[Name, Code]:
    """Return the machine code of cubins for one architecture, by their names.

    All that the cache does not have is disassembled at once: the disassembler takes longer to start than for a kernel.
    Why nothing can be disassembled is printed, once.
    """
    found = {name: sections(cubin) for name, cubin in cubins.items()}
    code = dict(found.values())
    counted: dict[str, str] = {}

    def classes(sha256: str) -> Any:
        if not counted:
            counted.update(_counted(code, arch))
        return NvccOutput(counted[sha256].encode(), "")

    try:
        known = {
            sha256: json.loads(store.lookup(store.key(*_KEY, sha256), partial(classes, sha256)).data) for sha256 in code
        }
    except (OSError, subprocess.SubprocessError, ValueError) as error:
        print(f"instructions for {arch} are not counted: {error}; run: pip install {REQUIREMENT}")
        known = {}
    return {name: Code(sha256, known.get(sha256)) for name, (sha256, _) in found.items()}


def _counted(code: Mapping[str, bytes], arch: str) -> dict[str, str]:
    """Count the instructions of several kernels by class, as JSON, by the hashes of the kernels."""
    opcodes = _opcodes(b"".join(code.values()), arch)
    found = {}
    for sha256, text in code.items():
        own = (next(opcodes) for _ in range(len(text) // _INSTRUCTION))
        found[sha256] = json.dumps(dict(sorted(Counter(class_of(each) for each in own if each != _PADDING).items())))
    return found


def _opcodes(code: bytes, arch: str) -> Iterator[str]:
    """Yield the opcode of each instruction, in their order.

    Raises
    ------
    OSError, SubprocessError, ValueError
        There is no disassembler, or it fails.
    """
    with tempfile.NamedTemporaryFile(suffix=".bin") as file:
        file.write(code)
        file.flush()
        command = [str(disassembler()), "--emit-json", "--binary", arch.upper().replace("_", ""), file.name]
        done = subprocess.run(command, capture_output=True, timeout=_LIMIT, check=True)
    (_, (whole,)) = json.loads(done.stdout)
    found = [each["opcode"] for each in whole["sass-instructions"]]
    if len(found) * _INSTRUCTION != len(code):
        raise ValueError(f"nvdisasm names {len(found)} instructions in {len(code)} bytes")
    return iter(found)


@cache
def disassembler() -> Path:
    """Return the path of nvdisasm: of this environment's PyPI wheel, else of PATH.

    Raises
    ------
    FileNotFoundError
        There is none.
    """
    spec = importlib.util.find_spec("nvidia")
    folders = spec.submodule_search_locations or () if spec else ()
    wheels = [path for folder in folders for path in Path(folder).glob("cu*/bin/nvdisasm")]
    found = max(map(str, wheels), default=shutil.which("nvdisasm"))
    if found is None:
        raise FileNotFoundError("there is no nvdisasm")
    return Path(found)


def class_of(opcode: str) -> str:
    """Return the class of an opcode: "integer", "global load 128" with its width in bits, "other"."""
    base, *suffixes = opcode.split(".")
    if base in _MEMORY:
        widths = (match[1] for suffix in suffixes if (match := _WIDTH.match(suffix)))
        return f"{_MEMORY[base]} {next(widths, _WORD)}"
    return _CLASS.get(base) or _CLASS.get(base.removeprefix("U")) or "other"
