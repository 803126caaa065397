"""Loops of compare-and-swap on halves of words, and constant memory by an index, against an H200's counters."""

from __future__ import annotations

from ptxcount.counting.counters import NARROW
from tests.ptxcount.chip_counters import describe_differences
from tests.ptxcount.narrow import LAUNCHES, compare_counts, read_measured


def test_counts_of_an_h200() -> None:
    """All counters are equal, for all values and for all lanes that share a word."""
    measured = read_measured()
    assert {launch.name for launch in LAUNCHES} <= measured.keys()
    wrong = describe_differences(compare_counts(measured))
    assert not wrong, "\n".join(wrong)


def test_caveat() -> None:
    """The loop is explained beside its numbers, which lack the retries that other warps cause."""
    caveats = {launch.kernel: launch.execute().caveats() for launch in LAUNCHES}
    loop = f"{NARROW}; retries among warps are not counted"
    assert caveats["red_bf16"] == {"global atomic": loop}
    assert caveats["sh_cas"] == {"shared atomic": loop}
    assert caveats["word"] == {}
