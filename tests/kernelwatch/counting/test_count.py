"""`kernelwatch count`: agreement with Nsight Compute, output and errors."""

import csv
import json
import re
from pathlib import Path

import pytest

from kernelwatch import Kernel, outputs
from kernelwatch.cli.count import main
from kernelwatch.counting import launch_counts
from kernelwatch.kernel import Launch, compile_source
from kernelwatch.suite import registry
from kernelwatch.toolchain import releases
from ptxcount.util import host_memory

EXACT = ["load_requests", "load_sectors", "store_requests", "store_sectors", "shared_store_wavefronts"]


def _readings(name: str) -> list[dict[str, str]]:
    text = (Path(__file__).parents[2] / "data" / name).read_text(encoding="utf-8")
    return list(csv.DictReader(line for line in text.splitlines() if not line.startswith("#")))


def _parse_case(row: dict[str, str]) -> tuple[str, dict[str, int]]:
    kernel = re.sub(r" \(.*", "_unpadded" * ("no padding" in row["kernel"]), row["kernel"])
    shape = row["shape (rows x columns)"]
    named = re.findall(r"(\w+)=(\d+)", shape) or zip(("rows", "columns"), shape.split("x"), strict=True)
    return kernel, {{"n": "size"}.get(name, name): int(value) for name, value in named}


@pytest.mark.parametrize("row", _readings("nsight-compute-h200.csv"), ids=lambda row: "-".join(list(row.values())[:3]))
def test_counters_match_nsight_compute(row: dict[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    """Counters equal Nsight Compute's. Nsight Compute may report up to 8 % more wavefronts of shared loads."""
    kernel, arguments = _parse_case(row)
    assert main([kernel, *(f"{name}={value}" for name, value in arguments.items()), row["dtype"], "--json"]) == 0
    totals = json.loads(capsys.readouterr().out)
    assert not any(totals[name] for name in ("caveats", "findings"))
    assert {name: totals[name] for name in EXACT} == {name: int(row[name]) for name in EXACT}
    reading = int(row["shared_load_wavefronts"])
    assert totals["shared_load_wavefronts"] <= reading <= 1.08 * totals["shared_load_wavefronts"]


@pytest.mark.parametrize("row", _readings("nsight-compute-lines-h200.csv"), ids=lambda r: r["launch"] + r["access"])
def test_lines_match_nsight_compute(row: dict[str, str]) -> None:
    """Lines equal Nsight Compute's accesses of L1 tag sets."""
    launch = Launch.parse(row["launch"])
    totals = launch_counts.count_launch(launch.kernel, launch.dtype, **launch.arguments).counters.totals()
    assert totals[f"{row['access']}_lines"] == int(row["set_accesses"])


def test_listing_marks_bank_conflicts_and_prints_tables(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["transpose_read_write_coalesced_unpadded", "rows=64", "columns=64"]) == 0
    lines = capsys.readouterr().out.splitlines()
    marked = [line for line in lines if line.startswith(">>")]
    assert len(marked) == 2
    assert "tile[threadIdx.x][threadIdx.y] = input[row * columns + column];" in marked[0]
    assert "shared store: 32.00 wavefronts per request, 1.00 without bank conflicts" in marked[1]
    # 64 * 64 elements are loaded by 128 warps, each 128 contiguous bytes: four sectors of one line.
    for unit, row in (("sectors", "load 128 512 4.00 4.00"), ("lines", "load 128 128 1.00 1.00")):
        heading = next(place for place, line in enumerate(lines) if line.split()[:3] == ["global", "requests", unit])
        assert lines[heading + 1].split() == row.split()


def test_example_in_help_can_be_counted(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["--help"])
    (example,) = re.findall("kernelwatch count (.* .*)", capsys.readouterr().out)
    assert main(example.split()) == 0


REFUSED = [
    ("", "kernelwatch count: '' is not a launch; write KERNEL NAME=NUMBER ... DTYPE FLAGS"),
    ("no_such_kernel rows=1", "kernelwatch count: there is no kernel 'no_such_kernel'; allowed are offset_copy"),
    ("offset_copy size=10", "kernelwatch count: offset_copy takes size, offset; given: size"),
    ("offset_copy size=ten offset=0", "kernelwatch count: size=ten: 'ten' is not a number; give one such as 64\n"),
    ("offset_copy dtype=float64", "kernelwatch count: dtype=float64: write the dtype without a name: float64\n"),
    ("offset_copy size=1.5 offset=0", "size must be an integer of at least 1; given: 1.5"),
    ("offset_copy size=10 offset=0 object", "dtype object holds Python objects"),
    ("offset_copy size=10 offset=0 float32 -O3'", "cannot be split"),
    ("offset_copy size=10 offset=0 float32 -no-such-flag", "kernelwatch count: nvcc failed"),
    ("offset_copy size=10 offset=0 -Xptxas -O3,--no-such-flag", "kernelwatch count: nvcc failed"),
    ("offset_copy size=10 offset=0 -Xptxas", "kernelwatch count: flags '-Xptxas': -Xptxas needs a value, as in"),
    ("histogram size=64 bins=8 float64", "kernelwatch count: histogram has fixed types, so float64 changes nothing; "),
    (
        "row_sum rows=10 columns=64 complex64",
        'kernelwatch count: the source has no kernel row_sum<cuda::std::complex<float>>: name followed by "::" must be '
        "a class or namespace name; it does not include cuda/std/complex\n",
    ),
    ("offset_copy size=5 offset=1 offset=2", "offset is given twice"),
    ("offset_copy size=5 offset=1 float32 int8", "is not a launch"),
    ("offset_copy size=500000000000 offset=1", "kernelwatch count: the arrays do not fit in this machine's memory"),
    ("offset_copy size=--5 offset=0", "kernelwatch count: size=--5: '--5' is not a number; give one such as 64\n"),
    (f"offset_copy size={'9' * 5000} offset=0", "kernelwatch count: offset_copy: size must"),
    (f"offset_copy size={'9' * 30} offset=0", "kernelwatch count: offset_copy: size must fit"),
    ("offset_copy size=\u0665 offset=\u00b2", "kernelwatch count: "),
    (f"offset_copy size=5 offset=0 {'(' * 5000}", "kernelwatch count: dtype '(("),
    (f"offset_copy size=5 offset=0 {'f4,' * 5000}", "kernelwatch count: dtype 'void160000' is not"),
    ("offset_copy size=5 offset=0 float32 --version", "kernelwatch count: nvcc did not write its output"),
    ("\ud800 rows=5", "kernelwatch count: there is no kernel '\\ud800'"),
]


@pytest.mark.parametrize(("command", "text"), REFUSED)
def test_refused_launches_print_one_line(command: str, text: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(command.split()) == 2
    captured = capsys.readouterr()
    assert text in captured.err
    assert captured.err.count("\n") == 1 or "nvcc failed" in text, "only nvcc's messages have several lines"
    assert not captured.out


#: A kernel that nvcc warns of. A test may declare its output shorter than what it writes.
WARNED = """__global__ void warned(float* out, int n) {
    int unused;
    if (threadIdx.x < n) out[threadIdx.x] = 0;
}"""


@pytest.mark.parametrize(("length", "code"), [("n", 0), ("n-1", 2)])
def test_messages_name_the_source(
    length: str, code: int, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    kernel = Kernel("warned", [outputs("out", length), "n"], 32, over=("n",), text=WARNED)
    monkeypatch.setattr(registry, "find_kernel", lambda _: kernel)
    compile_source._compile_module.cache_clear()  # a compilation warns once
    assert main(["warned", "n=9"]) == code
    captured = capsys.readouterr()
    first, *lines = captured.err.splitlines()
    assert first.startswith("kernelwatch count: nvcc on warned.cu (-lineinfo, sm_90): warned.cu(2): warning #177-D:")
    # The write beyond the output, if it is too short, follows the warning's four lines.
    assert [line.startswith("kernelwatch count: warned.cu:3 (PTX line ") for line in lines[3:]] == [True] * (code // 2)
    assert ("\nwarned.cu:\n      1  __global__ void warned" in captured.out) == (code == 0)


def test_unknown_cuda_release_is_refused(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(releases.VARIABLE, "banana")
    assert main(["add_coalesced", "size=1000"]) == 2
    assert "CUDA_TOOLKIT=banana is not a release of CUDA" in capsys.readouterr().err


def test_arrays_beyond_memory_are_refused(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """One byte too many is refused, before any allocation."""
    words, needed = ["row_sum", "rows=10", "columns=100"], 4 * (3 * 10 + 1000)  # the output takes memory three times
    monkeypatch.setattr(host_memory, "total_memory_bytes", lambda: needed)
    assert main(words) == 0
    monkeypatch.setattr(host_memory, "total_memory_bytes", lambda: needed - 1)
    assert main(words) == 2
    assert (
        f"memory: {needed} bytes of memory are needed; this machine or its container allows {needed - 1}; use smaller"
        in capsys.readouterr().err
    )
