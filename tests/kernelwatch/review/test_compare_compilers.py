"""Reviews of two compilers at one commit. Results of different compilers are kept apart."""

import re
from pathlib import Path

import pytest

from kernelwatch.cli.compare import compare as main
from kernelwatch.review.sides import ReviewSide, ReviewSides
from kernelwatch.store.record import CUBINS_FILE
from kernelwatch.store.results import History
from kernelwatch.toolchain.releases import DEFAULT, VARIABLE
from tests.stored import BASE, COUNT, HEAD, TIME, Suite, review_as_json, samples, write, write_lines

OLD, NEW, OTHER = "13.0.2", "13.5.0", "13.1.0"
NVCC = {OLD: "13.0.88", NEW: "13.5.37", OTHER: "13.1.80"}


def _suite(*numbers: float) -> Suite:
    """Return results of BASE, then HEAD: a count, and a time of `1e-3 * count` seconds."""
    return {
        commit: {TIME: {"one": samples(1e-3 * number)}, COUNT: {"one": number}}
        for commit, number in zip((BASE, HEAD), numbers, strict=False)
    }


def _root(folder: Path) -> Path:
    """Write two commits with the default compiler, the first also with NEW, and run records; return the folder."""
    write(folder, _suite(4.0, 5.0))
    write(folder, _suite(8.0), compiler=NEW)
    runs = [
        {"commits": [commit], "nvcc": f"Cuda compilation tools, release 13, V{NVCC[release]}", "gpu": "a GPU"}
        for release, commit in ((OLD, BASE), (NEW, BASE), (OLD, HEAD))
    ]
    write_lines(folder / "results/gpu/runs.jsonl", *runs)
    return folder


def test_two_compilers_are_compared(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, document = review_as_json(_root(tmp_path), capsys, "--compilers", OLD, NEW)
    assert code == 1
    assert document["base"] == {"given": OLD, "commit": BASE, "compiler": OLD}
    assert document["head"] == {"given": NEW, "commit": BASE, "compiler": NEW}
    assert {row["configuration"]: (row["verdict"], row["ratio"]) for row in document["rows"]} == {
        f"{TIME}(one)": ("SLOWER", pytest.approx(2.0)),
        f"{COUNT}(one)": ("SLOWER", 2.0),
    }
    assert not document["notes"], "a note warns of different compilers or of equal commits"
    assert main(["--compilers", NEW, OLD], tmp_path) == 0
    first = capsys.readouterr().out.splitlines()[0]
    assert first == f"FASTER  nvcc of CUDA {NEW} -> nvcc of CUDA {OLD} at {BASE[:8]}, gpu"


@pytest.mark.parametrize(("compilers", "releases"), [((None, NEW), f"{DEFAULT} {NEW}"), ((NEW, OLD), f"{NEW} {OLD}")])
def test_command_measures_with_both_compilers(compilers: tuple[str | None, str], releases: str) -> None:
    base, head = (ReviewSide("", BASE, compiler) for compiler in compilers)
    command = ReviewSides(machine="gpu", environment="", base=base, head=head).measure_command
    run = f"CUDA_TOOLKIT=$release asv run --record-samples {BASE[:8]}^!"
    assert command == f"for release in {releases}; do {run}; done"


def test_two_commits_are_compared_by_one_compiler(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The compiler is the default one, or the one that CUDA_TOOLKIT names.

    The default one measured 4 and then 5. Both commits have 8 by the other.
    """
    code, document = review_as_json(_root(tmp_path), capsys)
    assert (code, [row["ratio"] for row in document["rows"]]) == (1, [pytest.approx(1.25)] * 2)
    assert document["base"]["compiler"] == document["head"]["compiler"] == OLD
    write(tmp_path, _suite(8.0, 8.0), compiler=NEW)
    monkeypatch.setenv(VARIABLE, NEW)
    code, document = review_as_json(tmp_path, capsys)
    assert (code, document["head"]["compiler"]) == (0, NEW)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ((OLD, "foo"), "'foo' is not a release of CUDA; give two, such as 13.0.2"),
        ((OLD, "12.0"), "no machine has results of both 13.0.2 and 12.0, only of 13.0.2, 13.5.0; "),
        ((OLD, OTHER), "; measure each missing release: CUDA_TOOLKIT=RELEASE asv run --bench track_ HEAD^!"),
        ((OLD, NEW, "--commit", HEAD), f"no machine has results of both 13.0.2 and 13.5.0 at {HEAD[:8]}, only of"),
        ((OLD, NEW, "--commit", "d" * 40), "is not a commit"),
        ((OLD, NEW, "--machine", "x"), "has no results of x, only of gpu"),
    ],
)
def test_compilers_without_results_are_refused(
    words: tuple[str, ...], message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["--compilers", *words], _root(tmp_path)) == 2
    assert message in capsys.readouterr().err


def test_results_of_the_only_compiler_are_read(tmp_path: Path) -> None:
    assert History("gpu", write(tmp_path, _suite(8.0), compiler=NEW)).list_commits() == [BASE]


@pytest.mark.parametrize(
    ("code", "count"),
    [("aa", "0 of 1 cubins"), ("bb", "1 of 1 cubins"), ("", "")],
    ids=["equal hashes", "different hashes", "no code hash"],
)
def test_code_hashes_decide(code: str, count: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Cubins of two compilers are equal if their code hashes are. Without these, the review says nothing."""
    name, benchmark = "offset_copy float32 -Xptxas -O3", "track_compiled.Compiled.track_registers"
    axes = {"kernel": ["offset_copy"], "dtype": ["float32"], "flags": ["-Xptxas -O3"], "arch": ["sm_90"]}
    for compiler in ("", NEW):
        write(tmp_path, {BASE: {benchmark: {"one": 4.0}}}, compiler=compiler, axes={benchmark: axes})
    where = {"commit": BASE, "arch": "sm_90"}
    lines = [
        {**where, "nvcc": nvcc, "cubins": {name: nvcc}, "code": {name: code_hash} if code_hash else {}}
        for nvcc, code_hash in ((NVCC[OLD], "aa"), (NVCC[NEW], code))
    ]
    write_lines(tmp_path / "results/gpu" / CUBINS_FILE, *lines)
    assert main(["--compilers", OLD, NEW], tmp_path) == 0
    match = re.search(r"machine code differs in (.* cubins)", capsys.readouterr().out)
    assert (match[1] if match else "") == count


def test_newest_commit_of_both_compilers_is_compared(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for machine, suite in (("newer", _suite(4.0, 4.0)), ("older", _suite(4.0))):
        for compiler in ("", NEW):
            write(tmp_path, suite, machine=machine, compiler=compiler)
    code, document = review_as_json(tmp_path, capsys, "--compilers", OLD, NEW)
    assert (code, document["machine"], document["head"]["commit"]) == (0, "newer", HEAD)
