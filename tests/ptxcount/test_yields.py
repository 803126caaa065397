"""Loops into which ptxas puts a ``YIELD``, against its machine code; `test_nsight_compute.py` has a GPU's counts."""

from pathlib import Path

import pytest

from ptxcount.engine.executable import prepare_executable
from ptxcount.ptx.parser import parse
from tests.ptxcount import sources
from tests.ptxcount.machine_code import disassemble


@pytest.mark.parametrize(("file", "count"), [("exits", 19), ("yielding", 33), ("divergence", 0)])
def test_loops_yield_as_in_machine_code(file: str, count: int, nvdisasm: Path, tmp_path: Path) -> None:
    text = sources.ptx(file, arch="sm_90")
    program, code = parse(text), disassemble(text, nvdisasm, tmp_path)
    predicted = {name for name in program.entries if prepare_executable(program, name).order.yields}
    expected = {name for name, lines in code.items() if any(" YIELD" in line for line in lines)}
    assert predicted == expected
    assert len(expected) == count
