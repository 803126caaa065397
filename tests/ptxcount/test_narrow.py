"""Compare-and-swap loops on halves, and indexed constant memory, against an H200's counters."""

from __future__ import annotations

from ptxcount.counting.access import NARROW
from tests.ptxcount.chip_counters import describe_differences
from tests.ptxcount.narrow import LAUNCHES, compare_counts, read_measured


def test_counters_of_an_h200() -> None:
    measured = read_measured()
    assert {launch.name for launch in LAUNCHES} <= measured.keys()
    wrong = describe_differences(compare_counts(measured))
    assert not wrong, "\n".join(wrong)


def test_note_on_retries() -> None:
    caveats = {launch.kernel: launch.execute().caveats() for launch in LAUNCHES}
    loop = f"{NARROW}; retries between warps are not counted"
    assert caveats["red_bf16"] == {"global atomic": loop}
    assert caveats["sh_cas"] == {"shared atomic": loop}
    assert caveats["word"] == {}
