"""Atomics at an address that ptxas knows to be uniform within a warp: one lane adds for all, with POPC."""

from pathlib import Path

from ptxcount.engine.executable import prepare_executable
from ptxcount.ptx.parser import parse
from tests.ptxcount.machine_code import HEADER, disassemble

#: Predicates %p1 and %p2 differ within a warp; %p3 and %p4 do not. An instruction with %r9 keeps the branches.
_BEGIN = """
.reg .pred %p<5>; .reg .b32 %r<24>; .reg .b64 %d<8>;
ld.param.u64 %d0, [o]; ld.param.u64 %d1, [g]; ld.param.u32 %r9, [n]; mov.u32 %r0, %tid.x; mov.u32 %r1, %ctaid.x;
mul.wide.u32 %d2, %r0, 4; add.s64 %d3, %d1, %d2; mul.wide.u32 %d4, %r1, 4; add.s64 %d5, %d1, %d4;
ld.global.u32 %r2, [%d3]; ld.global.u32 %r3, [%d3+4096]; ld.global.u32 %r4, [%d5]; ld.global.u32 %r5, [%d5+4096];
setp.lt.u32 %p1, %r2, %r9; setp.gt.s32 %p2, %r3, 5; setp.lt.u32 %p3, %r4, %r9; setp.gt.s32 %p4, %r5, 5;
mov.u32 %r10, %r1;
"""
_END = """
mul.wide.u32 %d6, %r10, 4; add.s64 %d7, %d0, %d6; red.global.add.u32 [%d7], 1;
EXIT: ret;
"""
_WORK = "ld.global.u32 %r{0}, [%d3+{0}00]; xor.b32 %r{0}, %r{0}, %r9; st.global.u32 [%d3+{0}04], %r{0};"
_A, _B, _C = _WORK.format(12), _WORK.format(16), _WORK.format(20)
#: Code that may change the index %r10 of the atomic.
_CODES = [
    *(
        code.replace("IF", condition)
        for condition in ("@%p1", "@%p3")
        for code in (
            f"IF bra SKIP; {_A} mov.u32 %r10, 7; SKIP:",
            f"IF bra SKIP; {_A} SKIP: {_B} mov.u32 %r10, 7;",
            f"IF bra SKIP; {_A} mov.u32 %r10, 7; @%p4 bra EXIT; SKIP:",
            f"IF bra OTHER; {_A} @%p4 bra JOIN; OTHER: mov.u32 %r10, 7; {_B} @%p3 bra EXIT; JOIN:",
            f"IF bra OTHER; {_A} @%p4 bra JOIN; OTHER: {_B} @%p3 bra EXIT; mov.u32 %r10, 7; {_C} JOIN:",
            f"IF bra OTHER; {_A} OTHER: mov.u32 %r10, 7; {_B} @%p4 bra JOIN; mov.u32 %r10, 9; {_C} JOIN:",
        )
    ),
    f"{_A} @%p3 bra JOIN; mov.u32 %r10, 7; {_B} @%p4 bra JOIN; mov.u32 %r10, 9; {_C} @%p2 bra EXIT; JOIN:",
    f"{_A} @%p1 bra JOIN; mov.u32 %r10, 7; {_B} @%p2 bra JOIN; mov.u32 %r10, 9; {_C} @%p3 bra EXIT; JOIN:",
]


def test_indices_are_uniform_as_in_ptxas(nvdisasm: Path, tmp_path: Path) -> None:
    parameters = ".param .u64 o, .param .u64 g, .param .u32 n"
    entries = (
        f".visible .entry k{number}({parameters})\n{{{_BEGIN}{code}{_END}}}\n" for number, code in enumerate(_CODES)
    )
    text, wrong = HEADER + "".join(entries), []
    program, machine_code = parse(text), disassemble(text, nvdisasm, tmp_path)
    for number, code in enumerate(_CODES):
        lines = "\n".join(machine_code[f"k{number}"])
        instructions = prepare_executable(program, f"k{number}").entry.instructions
        (is_uniform,) = ("%d7" in atomic.uniform for atomic in instructions if atomic.opcode == "red")
        assert lines.count("RED") == 1
        if is_uniform != ("POPC" in lines):
            wrong.append(f"{code} is {'uniform' if is_uniform else 'divergent'}")
    assert wrong == [], "\n".join(wrong)
