"""Earlier forms of a kernel: one series through renames, new arguments, templates, grids and options."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from kernelwatch import Kernel, inputs, outputs, scalar
from kernelwatch.config.project_root import CHECKOUT
from kernelwatch.errors import ArgumentError, UnknownKernelError
from kernelwatch.kernel import earlier_forms
from tests.kernelwatch.strangers import Project
from tests.stored import documents

_TWICE = """\
__global__ void twice(float* out, const float* in, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = in[i] * 2;
}
"""
_SCALE = _TWICE.replace("twice", "scale")
_SHIFTED = _SCALE.replace("int n", "int n, int shift").replace("* 2", "* (1 << shift)")
_BLOCKS = "constexpr int WARPS = 4, BLOCK = WARPS * 32; // BLOCK = 7\n" + _SHIFTED.replace("blockDim.x", "BLOCK")
_TEMPLATE = """\
#define BLOCK (128u / 2) /* threads */
template <int N> __global__ void scale(float* out, const float* in, int n, int shift) {
    int first = (blockIdx.x * BLOCK + threadIdx.x) * N;
    for (int i = first; i < first + N; ++i) if (i < n) out[i] = in[i] * (1 << shift);
}
"""

#: Commit, oldest first -> content of the kernel's file, and sectors per load request.
COMMITS = {
    "nothing is there": ("", 0),
    "it needs an option": ("#ifndef OLD\n#error set OLD\n#endif\n" + _TWICE, 4),
    "it compiles": (_TWICE, 4),
    "it is renamed": (_SCALE, 4),
    "it takes an argument": (_SHIFTED, 4),
    "a block is a constant": (_BLOCKS, 4),
    "a thread moves four elements": (_TEMPLATE, 4 * 4),  # loads of neighbouring threads are four elements apart
}

ROW = """\
from kernelwatch import Kernel, inputs, outputs, scalar, watch

scale = Kernel(
    "scale",
    [outputs("out", "n"), inputs("in", "n"), "n", scalar("shift", "int32")],
    file="scale.cu",
    entry="scale<4>",
    read=("BLOCK",),
    block="BLOCK",
    over=("n",),
    tile=("4*BLOCK",),
    reference=lambda shift, **arrays: arrays["in"] * (1 << shift),
    earlier=[
        {"entry": "scale", "tile": None},
        {"read": (), "block": 256},
        {"arguments": [outputs("out", "n"), inputs("in", "n"), "n"]},
        {"entry": "twice"},
        {"options": ["-DOLD"]},
    ],
)
globals().update(watch(scale, {"n": [1024], "shift": [1]}, archs=["sm_90"]))
"""


def test_earlier_forms_are_one_series(tmp_path: Path) -> None:
    project = Project(tmp_path)
    project.write("benchmarks/kernels.py", ROW)
    assert project.run("kernelwatch", "init").returncode == 0
    hashes = []
    for subject, (text, _) in COMMITS.items():
        project.write("scale.cu", text)
        hashes.append(project.commit(subject))
    run = project.run("asv", "run", "--bench", "Scale.track_load_sectors", "ALL")
    assert run.returncode == 0, run.stdout + run.stderr
    stored = {document["commit_hash"]: document for document in documents(project.path / "results").values()}
    numbers = [row[0][0] for commit in hashes for row in stored[commit]["results"].values()]
    assert numbers == ["NaN", *(sectors for _, sectors in COMMITS.values() if sectors)]
    bisect = project.run("kernelwatch", "bisect", "load_sectors", hashes[1], hashes[-1])
    assert f"FOUND  {hashes[-1]}" in bisect.stdout, bisect.stdout + bisect.stderr


#: Source -> value of the constant N, or a part of the error.
CONSTANTS: dict[str, int | str] = {
    "#define N 32": 32,
    "#define N (128ull / 2) // of a block": 64,
    "const int N = 1 << 5;": 32,
    "static constexpr unsigned int M = 3, N = 2*M + 1;": 7,
    "constexpr unsigned N{32U};": 32,
    "static constexpr std::size_t M{3}, N{2*M + 1};": 7,
    "const int N(1 << 5);": 32,
    "constexpr int N = {static_cast<int>(1'024u)};": 1024,
    "constexpr int NN = 3; // constexpr int N = 4;": "one value of N; .* give it 0 values",
    "#define N 1\n#define N 2": "one value of N; .* give it 2 values",
    "#define N 0": 0,
    "#define N -7/2": -3,
    "#define M 1\n#define M 2\nconst int N = M;": "cannot compute N = M;",
    "#define N sizeof(float)": r"cannot compute N = sizeof\(float\);",
    "#define N N": "cannot compute N = N;",
    "#define N M\n#define M N": "cannot compute N = M;",
}


@pytest.mark.parametrize("text", CONSTANTS)
def test_constant_is_read_from_the_source(text: str) -> None:
    expected = CONSTANTS[text]
    if isinstance(expected, int):
        assert earlier_forms.read_constant("N", text) == expected
    else:
        with pytest.raises(UnknownKernelError, match=expected):
            earlier_forms.read_constant("N", text)


#: Declaration in the source -> index of the matching form: 0 sets `w` to four floats, 1 to two, 2 sets `v`, 3 nothing.
VARIABLES = {
    "__constant__ float w[4];": 0,
    "__device__ float w[4];": 0,
    "__constant__ float w[2];": 1,
    "__constant__ double w[2];": 0,  # as large as four floats
    "__constant__ float v[1];": 2,
    "": 3,
}


@pytest.mark.parametrize("declared", VARIABLES)
def test_module_variables_select_a_form(declared: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(CHECKOUT, str(tmp_path))
    used = " + ".join(f"{name}[0]" for name in ("w", "v") if f" {name}[" in declared) or "0"
    (tmp_path / "k.cu").write_text(f"{declared}\n__global__ void k(float* out) {{ out[threadIdx.x] = {used}; }}")
    floats = [np.zeros(count, np.float32) for count in (4, 2)]
    earlier_constants: list[dict[str, Any]] = [{"w": floats[1]}, {"v": lambda n: n}, {}]
    forms = [{"constants": constants} for constants in earlier_constants]
    row = Kernel("k", [outputs("out", "n")], 32, over=("n",), file="k.cu", constants={"w": floats[0]}, earlier=forms)
    assert [row, *row.earlier].index(row.form_at_commit) == VARIABLES[declared]


def test_block_is_read_from_the_source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(CHECKOUT, str(tmp_path))
    (tmp_path / "k.cu").write_text("#define BLOCK 96")
    kernels = [
        Kernel("k", [outputs("out", "n")], block, over=("n",), file="k.cu", read=("BLOCK",), dynamic_shared=shared)
        for block, shared in (("BLOCK", "4*BLOCK"), (("BLOCK", 2), 0), ("n", 0), (32, "4*n"))
    ]
    assert [kernel.find_fixed_block("float32") for kernel in kernels] == [(96, 4 * 96), (96 * 2, 0), None, None], (
        "only a launch has n"
    )


def test_constant_of_zero_fits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(CHECKOUT, str(tmp_path))
    (tmp_path / "k.cu").write_text("#define HALO 0\n__global__ void k(float* out) { out[threadIdx.x] = HALO; }")
    row = Kernel("k", [outputs("out", "n")], 32, over=("n",), file="k.cu", read=("HALO",), earlier=[{"read": ()}])
    assert row.form_at_commit is row


def test_form_is_selected_once_per_source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(CHECKOUT, str(tmp_path))
    checked: list[Kernel] = []

    def fits(form: Kernel) -> bool:
        checked.append(form)
        return form is not row

    monkeypatch.setattr(earlier_forms, "fits_commit", fits)
    row = Kernel("k", [outputs("out", "n")], 32, over=("n",), file="k.cu", earlier=[{"block": 64}])
    for text, checked_count in (("//1", 2), ("//1", 2), ("//2", 2 + 2)):  # a selection checks both forms
        (tmp_path / "k.cu").write_text(text)
        assert (row.form_at_commit, len(checked)) == (row.earlier[0], checked_count)


ARGUMENTS: list[Any] = [outputs("out", "n"), inputs("in", "n"), "n"]


def test_selected_form_if_none_matches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The newest form that does not compile is selected, so that its error is reported, else the newest form."""
    monkeypatch.setenv(CHECKOUT, str(tmp_path))
    row = Kernel("k", ARGUMENTS, 32, over=("n",), file="k.cu", where="new", earlier=[{"entry": "old"}])
    for text, place in (
        ("", 0),
        ("#error no", 1),  # form 0 is not compiled: the source lacks `new`
        ("__global__ void old(float*, float*) {}", 0),  # form 1 has three parameters
    ):
        (tmp_path / "k.cu").write_text(text)
        assert row.form_at_commit is (row, *row.earlier)[place], text


@pytest.mark.parametrize("source", [{"text": lambda: 1 / 0}, {"ptx": "not PTX"}])
def test_earlier_form_replaces_a_failing_source(source: dict[str, Any]) -> None:
    text = 'extern "C" __global__ void k(float*, const float*, long long) {}'
    row = Kernel("k", ARGUMENTS, 32, over=("n",), **source, earlier=[{"ptx": "", "text": text}])
    assert row.form_at_commit is row.earlier[0]


def test_earlier_argument_needs_a_value() -> None:
    with pytest.raises(ArgumentError, match="k: earlier= has argument m, which launches lack; give it a value"):
        Kernel("k", ARGUMENTS, 32, over=("n",), file="k.cu", earlier=[{"arguments": [*ARGUMENTS, scalar("m")]}])
