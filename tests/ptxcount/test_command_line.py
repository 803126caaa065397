"""The command ``ptxcount`` on any kernel."""

import io
import json
import os
import shlex
import signal
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pytest

from ptxcount.command_line import main
from tests.ptxcount.commands import GIVEN, ROW_SUMS, SUMS, read_error, read_output
from tests.ptxcount.snippets import module
from tests.ptxcount.sources import ptx

COUNTERS = ("load_requests", "load_sectors", "store_requests", "store_sectors", "shared_load_wavefronts",
            "shared_store_wavefronts")  # fmt: skip
ONE = ["--entry", "k", "--grid", "1", "--block", "1", "o=float32[1]"]


def _json(capsys: pytest.CaptureFixture[str], *words: str) -> dict[str, int]:
    totals: dict[str, int] = json.loads(read_output(capsys, *words, "--json"))
    assert not any(totals.pop(name) for name in ("caveats", "findings"))
    assert all(row["accesses"] for row in totals.pop("lines"))  # type: ignore[attr-defined]
    assert totals.pop("distinct_sectors")
    assert totals.pop("fetched_sectors")
    assert all(type(value) is int for value in totals.values())
    return totals


#: One warp reverses 32 numbers, through 128 bytes of dynamic shared memory.
TURN = (
    "namespace own { __global__ void turn(FLOAT* out, FLOAT by) { extern __shared__ FLOAT s[]; "
    "s[threadIdx.x] = out[threadIdx.x]; __syncthreads(); out[threadIdx.x] = s[31 - threadIdx.x] * by; } }"
)


@pytest.mark.parametrize(("name", "flags"), [
    ("turn", ["--flags", "-DFLOAT=float -O3"]), ("own::turn", ["--flags=-DFLOAT=float"]),
    ("_ZN3own4turnEPff", ["--flags", "-DFLOAT=float"]),
])  # fmt: skip
def test_entry_is_any_name(name: str, flags: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source = tmp_path / "own.cu"
    source.write_text(TURN)
    words = [str(source), "--entry", name, "--grid", "1", "--block", "32,1", *flags]
    totals = _json(capsys, *words, "--dynamic-shared", "128", "out=float32[32]", "float32:2")
    assert [totals[counter] for counter in COUNTERS] == [1, 4, 1, 4, 1, 1]


def test_missing_dynamic_shared_memory_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source = tmp_path / "own.cu"
    source.write_text(TURN.replace("FLOAT", "float"))
    error = read_error(capsys, str(source), "--grid", "1", "--block", "32", "out=float32[32]", "float32:2")
    assert "4 bytes at shared address 0; the block has 0 bytes of shared memory" in error
    assert error.rstrip().endswith("; give dynamic shared memory: --dynamic-shared or dynamic_shared=")


@pytest.fixture
def ptx_file(tmp_path: Path) -> Path:
    file = tmp_path / "sums.ptx"
    file.write_text(ptx("row_sums"))
    return file


def test_ptx_needs_no_nvcc(ptx_file: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Each of 32 threads loads a row of 16 bytes, in 4 steps of 16 sectors."""
    monkeypatch.setenv("NVCC", "/nowhere/nvcc")
    totals = _json(capsys, str(ptx_file), *ROW_SUMS.split())
    assert [totals[name] for name in COUNTERS] == [4, 4 * 16, 1, 4, 0, 0]


def test_parameters_of_8_bytes_are_listed_as_pointers(ptx_file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert "p0=float32[262144]' 'p1=float32[262144]' p2=int32:65536 p3=int32:65536\n" in read_output(capsys, ptx_file)


@pytest.mark.parametrize("option", ["--flags -O3", "--arch sm_80"])
def test_options_of_nvcc_are_refused_for_ptx(option: str, ptx_file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    error = read_error(capsys, str(ptx_file), *ROW_SUMS.split(), *option.split())
    assert error.startswith(f"LaunchError: {ptx_file} is PTX or a cubin; remove --flags, --arch and -I")


TOO_SHORT = "{sums} --entry row_sums --grid 1 --block 32 s=float32[32] m=float32[31,4] int32:32 int32:4"
REFUSED = [
    ("nowhere.ptx --entry k --grid 1 --block 1", "LaunchError: nowhere.ptx does not exist"),
    ("", "LaunchError: FILE is missing; give a file, or a subcommand: init, pin, check, compare\n"),
    ("checks", "LaunchError: checks does not exist; give a file, or a subcommand: init, pin, check, compare\n"),
    ("nowhere.cu --entry k int32:1", "LaunchError: --grid and --block are missing; to list the kernels, omit"),
    ("{sums} --entry sums --grid 1 --block 1 {given}", "LaunchError: there is no kernel 'sums'; name one of row_sums"),
    ("{one} x", "argument 'x': neither an array nor a scalar; write, for example, name=float32[64,64] or int32:7"),
    ("{sums} --entry row_sums --grid {digits} --block 1", "LaunchError: argument --grid: '9999"),
    ("{sums} --entry row_sums --grid {digits} --block 1", "give one to three numbers, as in 64,64"),
    ("{sums} --entry row_sums --grid 1 --block 9999999999 {given}", "block.x is 9999999999; allowed are 1 to 1024"),
    ("{sums} --entry row_sums --grid 1 --block 9 --source no {given}", "--source no does not exist; give a file or a"),
    ("{sums} --entry row_sums --grid 1 --block 0 {given}", "LaunchError: block.x is 0; allowed are 1 to 1024"),
    ("{good} --step-limit 0", "LaunchError: step limit is 0; it must be positive"),
    ("{good} --step-limit {digits}", "LaunchError: argument --step-limit: invalid int value: '9999"),
    ("{good} --dynamic-shared -1", "LaunchError: dynamic shared memory is -1 bytes; it must be 0 or more"),
    ("{good} --step-limit 9", "StepLimitExceededError: {sums}:"),
    ("{good} --time-limit 1e-9", "TimeLimitExceededError: {sums}:"),
    ("{good} --time-limit 0", "LaunchError: time limit is 0.0; it must be positive"),
    ("{good} --nonsense", "unrecognized arguments: --nonsense"),
    ("{good} --flags", "--flags: expected one argument"),
    ("{good} --flags \"x", "CompileError: flags '\"x' cannot be split into words: No closing quotation"),
    ("{good} --flags --version", "CompileError: nvcc wrote no PTX: "),
    ("{one} o=float32[500000000000]", "MemoryError: the arrays do not fit in this"),
    (TOO_SHORT, "OutOfBoundsError: {sums}:8 (PTX line"),
    (TOO_SHORT, "which is byte 496 of m (argument 1) of 496 bytes"),
]  # fmt: skip


@pytest.mark.parametrize(("command", "text"), REFUSED)
def test_error_is_one_line(command: str, text: str, capsys: pytest.CaptureFixture[str]) -> None:
    launch, good = f"{SUMS} --entry row_sums --grid 1 --block 1", f"{SUMS} {ROW_SUMS}"
    filled = {"sums": SUMS, "given": GIVEN, "one": launch, "good": good, "digits": "9" * 5000}
    error = read_error(capsys, *command.format(**filled).split())
    assert text.format(**filled) in error


#: Words after a file with the kernels `a` and `b`, exit code, and a part of the output.
WITHOUT_GRID = [
    ("--entry b", 0, "ptxcount {file} --entry b --grid"),
    ("--entry c", 1, "LaunchError: there is no kernel 'c'; name one of "),
    ("--json", 2, "OutputError: --json needs a launch; give --grid and --block"),
    ("--html page.html", 2, "OutputError: --html needs a launch; give --grid and --block"),
    ("--json --grid 1 x=float32[32]", 2, "OutputError: --json needs a launch; give --block"),
]  # fmt: skip


@pytest.mark.parametrize(("words", "code", "text"), WITHOUT_GRID)
def test_omitted_grid_gives_a_command_or_an_error(
    words: str, code: int, text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "two.cu"
    file.write_text("".join(f"__global__ void {name}(float* x) {{ x[threadIdx.x] = 1; }}" for name in "ab"))
    assert main([str(file), *words.split()]) == code
    captured = capsys.readouterr()
    assert text.format(file=file) in captured.out + captured.err
    assert "a(float* x)" not in captured.out


def test_unwritable_page_is_refused_before_the_launch(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The launch would exceed its step limit."""
    for page, problem in (
        (tmp_path / "none" / "page.html", "is in a folder that does not exist"),
        (tmp_path, "is a folder"),
    ):
        assert main([SUMS, *ROW_SUMS.split(), "--step-limit", "9", "--html", str(page)]) == 2
        expected = f"OutputError: --html {page} {problem}; give a file in an existing folder\n"
        assert capsys.readouterr().err == expected


@pytest.mark.parametrize(("encoding", "shown"), [("ascii", "/* \\ufffd \\xb5 */"), ("utf-8", "/* \ufffd µ */")])
def test_sources_have_any_encoding(encoding: str, shown: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = tmp_path / "own.cu"
    source.write_bytes(b'extern "C" __global__ void k(float* o) { o[0] = 1; /* \xe9 \xc2\xb5 */ }\n')
    written = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(written, encoding))
    assert main([str(source), *ONE]) == 0
    assert shown in written.getvalue().decode(encoding)


BEGUN = """\
#include "scale.h"
template <typename T, int N> __global__ void rows(T* out, const T* in, int rows, int columns, unsigned char mode) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < rows) for (int c = 0; c < columns; c++) out[i * columns + c] = in[i * columns + c] * N + mode + SCALE;
}
"""


def test_suggested_command_runs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder, source = tmp_path / "of includes", tmp_path / "rows.cu"
    folder.mkdir()
    (folder / "scale.h").write_text("#define SCALE 2\n")
    source.write_text(BEGUN)
    out = read_output(capsys, source, "-I", folder, "--arch", "sm_80")
    (command,) = [line for line in out.splitlines() if line.startswith("  ptxcount ")]
    words = shlex.split(command)[1:]
    assert "sm_80" in words
    rows, columns = 248, 248  # as guessed
    assert _json(capsys, *words)["load_requests"] == -(-rows // 32) * columns  # a warp for 32 rows


@pytest.mark.parametrize(
    ("arch", "is_noted"), [("sm_90", False), ("sm_90a", False), ("sm_80", True), ("sm_100f", True)]
)
def test_other_arch_has_a_note(arch: str, is_noted: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "k.ptx"
    file.write_text(module("", 0, target=f"8.8 {arch}"))
    assert main([str(file), "--grid", "1", "--block", "32"]) == 0
    note = f"Counts for {arch} follow the rules of sm_90, the only ones compared with a GPU's counters."
    assert capsys.readouterr().out.splitlines()[1] == (note if is_noted else "")


FULL, CLOSED = "ptxcount: No space left on device\n", "ptxcount: standard output is closed\n"
#: Exit code of a shell for a command that SIGPIPE ended.
PIPE = 128 + signal.SIGPIPE
#: Words of the command, redirection of standard output in a shell, exit code, and standard error.
OUTPUTS = [
    (f"sums.ptx {ROW_SUMS}", "> /dev/full", 1, FULL), (f"sums.ptx {ROW_SUMS} --json", ">&-", 1, CLOSED),
    (f"sums.ptx {ROW_SUMS}", "| true", PIPE, ""), ("--help", "> /dev/full", 1, FULL),
    ("check", "> /dev/full", 2, FULL), ("check", ">&-", 2, CLOSED), ("check", "| true", PIPE, ""),
    ("check --help", "| true", PIPE, ""),
]  # fmt: skip


@pytest.mark.parametrize(("words", "where", "code", "error"), OUTPUTS)
def test_unwritable_output_ends_the_command(words: str, where: str, code: int, error: str, tmp_path: Path) -> None:
    script = f"{sys.executable} -m ptxcount {words} {where}; exit ${{PIPESTATUS[0]}}"
    (tmp_path / "sums.ptx").write_text(ptx("row_sums"))
    buffered = {**os.environ, "PYTHONUNBUFFERED": ""}
    done = subprocess.run(["bash", "-c", script], cwd=tmp_path, capture_output=True, text=True, env=buffered)
    assert (done.returncode, done.stderr, done.stdout) == (code, error, "")


#: First lines of the source, options of nvcc, files that ``#line`` names, and those of them whose line is shown: those
#: that the source or nvcc's options include.
NAMED: list[tuple[str, str, list[str], set[str]]] = [
    ("", "-I {folder}/included", ["own/text.h", "included/text.h", "elsewhere/text.h", "own/link.h"], set()),
    ('#include "text.h"\n#include "a b$.h"\n#include "link.h"', "-I {folder}/included",
     ["own/text.h", "included/text.h", "own/a b$.h", "elsewhere/text.h"],
     {"own/text.h", "own/a b$.h", "elsewhere/text.h"}),  # the last by own/link.h, a symbolic link
    ("#include <text.h>", "-I {folder}/included", ["own/text.h", "included/text.h"], {"included/text.h"}),
    ("", "-include {folder}/elsewhere/text.h", ["own/text.h", "elsewhere/text.h"], {"elsewhere/text.h"}),
]  # fmt: skip


@pytest.mark.parametrize(("begin", "flags", "named", "shown"), NAMED)
def test_only_files_that_nvcc_read_are_shown(
    begin: str, flags: str, named: list[str], shown: set[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    files = ("own/text.h", "own/a b$.h", "included/text.h", "elsewhere/text.h")
    for file in files:
        (tmp_path / file).parent.mkdir(exist_ok=True)
        (tmp_path / file).write_text(f"// first\n// the second line of {file}\n")
    (tmp_path / "own" / "link.h").symlink_to(tmp_path / "elsewhere" / "text.h")
    source = tmp_path / "own" / "kernel.cu"
    stores = "".join(f'#line 2 "{tmp_path / file}"\no[{n}] = 1;\n' for n, file in enumerate(named))
    source.write_text(f'{begin}\nextern "C" __global__ void k(volatile float* o) {{\n{stores}}}\n')
    out = read_output(capsys, source, "--flags", flags.format(folder=tmp_path), *ONE[:-1], "o=float32[4]")
    assert all(f"{Path(file).name}:" in out for file in named)
    numbers = [line.split()[0] for line in out.splitlines() if line.startswith((">>", "  "))]
    assert numbers.count("2") == len(named)  # each file has a row for its line 2
    assert {file for file in files if f"the second line of {file}" in out} == shown


def test_version_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match=r"^0$"):
        main(["--version"])
    assert capsys.readouterr().out == f"ptxcount {version('ptxcount')}\n"


def test_help_explains_names_and_policies(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["--help"])
    printed = " ".join(capsys.readouterr().out.split())
    for text in (
        "A name before = labels an argument in the report. It may not be the name of another parameter.",
        "random(seed,low,high) numbers from low up to, but not including, high", "Exit codes: 0 ",
        "random(seed) floats in [0, 1); integers below the length of x", "error: end the kernel;",
        "architecture to compile for, such as sm_100 (default: sm_90)",
    ):  # fmt: skip
        assert text in printed
