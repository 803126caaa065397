"""Recordings of launches, made up: arguments, PTX, and the comparison with Nsight Compute's counts."""

from pathlib import Path

import numpy as np
import pytest

from experiments.recorder import comparison, profiler
from experiments.recorder.recording import Library, read_recording
from tests.ptxcount.snippets import module

#: Adds 1 to 64 words from the address in the first parameter, a struct of an address and a number.
PTX = module(
    "ld.param.u64 %rd1, [p0]; mov.u32 %r0, %tid.x; mad.wide.u32 %rd1, %r0, 4, %rd1;"
    "ld.global.u32 %r1, [%rd1]; add.u32 %r1, %r1, 1; st.global.u32 [%rd1], %r1;",
    1,
).replace(".param .u64 p0", ".param .align 8 .b8 p0[16]")
ADDRESS = 0x7F0000000000


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Record one launch, as `recorder.c` writes it: the struct points 128 bytes behind the array's beginning."""
    before = np.arange(96, dtype=np.uint32)
    after = before + (before >= 32)
    before.tofile(tmp_path / "array-0-0.before")
    after.astype(np.uint32).tofile(tmp_path / "array-0-0.after")
    (tmp_path / "module-0-0.ptx").write_text(PTX)
    parameter = np.array([ADDRESS + 128, 7], np.uint64).tobytes().hex()
    (tmp_path / "launches").write_text(
        f"module 0 a0 ptx\nlaunch 0 a0 snippet 1 1 1 64 1 1 0\nparameter 16 {parameter}\n"
        f"array 0 {ADDRESS:x} 384 kept\nend 0 0\n"
    )
    return tmp_path


def _write_profile(folder: Path, loads: int) -> None:
    values = {metric: 0 for names in profiler.METRICS.values() for metric in names}
    values |= {
        f"l1tex__t_{amount}_pipe_lsu_mem_global_op_st.sum": value for amount, value in (("requests", 2), ("sectors", 8))
    }
    values |= {
        f"l1tex__t_{amount}_pipe_lsu_mem_global_op_ld.sum": value
        for amount, value in (("requests", loads), ("sectors", 8))
    }
    lines = ['"ID","Kernel Name","Metric Name","Metric Unit","Metric Value"']
    lines += [f'"0","snippet","{metric}","","{value}"' for metric, value in values.items()]
    (folder / "nsight.csv").write_text("\n".join(lines) + "\n")


def test_launch_is_counted_with_its_arrays(folder: Path) -> None:
    (launch,) = read_recording(folder)
    assert launch.is_complete
    assert Library(folder).find_ptx(launch) == folder / "module-0-0.ptx"
    outcome = comparison.count_launch(launch, folder / "module-0-0.ptx")
    assert (outcome.problem, outcome.different) == ("", [])
    assert (outcome.counts["load_requests"], outcome.counts["store_sectors"]) == (2, 8)


@pytest.mark.parametrize(("loads", "difference"), [(2, ""), (3, "load_requests 2, the chip 3")])
def test_differences_are_listed(folder: Path, loads: int, difference: str) -> None:
    _write_profile(folder, loads)
    text = comparison.compare_recording(folder)
    assert "1 launches, 1 profiled; 1 of these with PTX and arrays" in text
    assert ("the chip" in text, difference in text) == (bool(difference), True)


def test_other_output_is_listed(folder: Path) -> None:
    np.zeros(96, np.uint32).tofile(folder / "array-0-0.after")
    (launch,) = read_recording(folder)
    assert comparison.count_launch(launch, folder / "module-0-0.ptx").different == [0]


def test_code_of_a_library_is_found_by_its_entry(folder: Path) -> None:
    """A library's handle is not that of its module. A file with such an entry has the PTX, a newer one if no other."""
    (folder / "module-0-0.ptx").rename(folder / "kernels.ptx")
    (folder / "launches").write_text("module 0 a0 other\nlaunch 0 b0 snippet 1 1 1 64 1 1 0\nend 0 0\n")
    (launch,) = read_recording(folder)
    assert Library(folder).find_ptx(launch) == folder / "kernels.ptx"
    assert not launch.is_complete
