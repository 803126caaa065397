"""Compare-and-swap loops on halves, and indexed constant memory, against an H200's counters."""

from ptxcount.counting.access import CAS_LOOP_CAVEAT, RETRY_CAVEAT
from tests.ptxcount.chip_counters import describe_differences
from tests.ptxcount.narrow import LAUNCHES, LOOP_PLACES, LOOP_TYPES, compare_counts, read_measured


def test_counters_as_on_an_h200() -> None:
    """Test half of the loops and wide swaps: the white squares of a chessboard of variants and places.

    `tests/gpu/test_transfers.py` has all.
    """
    measured = read_measured()
    assert {launch.name for launch in LAUNCHES} == measured.keys()
    loops = [launch.name for launch in LAUNCHES if launch.kernel in LOOP_TYPES]
    for number, name in enumerate(loops):
        variant, place = divmod(number, len(LOOP_PLACES))
        if (variant + place) % 2 != 0:
            del measured[name]
    wrong = describe_differences(compare_counts(measured))
    assert not wrong, "\n".join(wrong)


def test_loops_have_caveats_of_retries() -> None:
    launches = {launch.kernel: launch for launch in LAUNCHES}
    both = f"{CAS_LOOP_CAVEAT}; {RETRY_CAVEAT}"
    expected: dict[str, dict[str, str]] = {
        "red_bf16": {"global atomic": both}, "sh_cas": {"shared atomic": both},
        "loop_f64": {"shared atomic": RETRY_CAVEAT}, "loop_u64": {"shared atomic": RETRY_CAVEAT},
        "swap_u64": {}, "cas_u64": {}, "word": {},
    }  # fmt: skip
    for kernel, caveats in expected.items():
        assert launches[kernel].execute().caveats() == caveats
