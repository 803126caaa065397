"""``ptxcount pin``, ``init``, warnings, and the cache of counts."""

import json
import resource
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ptxcount.command_line import main
from ptxcount.counting.counters import LaunchCounters
from ptxcount.engine import kernel_counts
from ptxcount.gate import compute, count_cache
from ptxcount.gate.launches import Launch
from tests.ptxcount.gate_repository import FELL, LAUNCH, ROSE, TWO_BLOCKS, Change, Repository, kernel, launch, lock

#: Change, options of pin, exit code, part of the output, and True if the lock file changes.
PINS: list[tuple[Change, list[str], int, str, bool]] = [
    (kernel(8), [], 1, ROSE, False),
    (kernel(8), ["--accept"], 0, ROSE.replace("error", "note"), True),
    (kernel(1), [], 0, FELL, True),
    (launch(LAUNCH + TWO_BLOCKS), [], 0, "new: scale<float> (launch 2)", True),
    (launch(TWO_BLOCKS), [], 0, "gone: scale.cu: phys::scale<float> <<<(4, ", True),
    (lock('"nvcc": "13.0.88"', '"nvcc": "12.4.99"'), [], 0, "nvcc: 12.4.99 before, 13.0", True),
    (lock("{", ""), [], 0, "run ptxcount pin to replace the file", True),  # no JSON
    (launch(LAUNCH.replace("8192", "100")), [], 1, "scale.cu:6: error: PC006 ", False),  # reads out of bounds
    (lambda repo: None, [], 0, "", False),
]


@pytest.mark.parametrize(("change", "words", "code", "message", "written"), PINS)
def test_pin_writes_unless_counts_rise_or_launches_fail(
    change: Change, words: list[str], code: int, message: str, written: bool, repository: Repository
) -> None:
    change(repository)
    lock_file = repository.folder / "ptxcount.lock"
    old_text = lock_file.read_text()
    exit_code, lines = repository.run("pin", *words)
    assert exit_code == code
    assert message in "\n".join(lines) if message else not lines
    assert (lines[-1:] == ["ptxcount.lock was not written: 1 of 1 launches failed"]) is ("PC006" in message)
    assert (lock_file.read_text() != old_text) == written
    assert code or repository.run("check") == (0, [])


@pytest.mark.parametrize(("change", "words"), [row[:2] for row in PINS if row[-1]])
def test_full_disk_leaves_the_lock_file(change: Change, words: list[str], repository: Repository) -> None:
    lock_file = repository.folder / "ptxcount.lock"
    repository.run("check")  # compiles, which needs larger files; an invalid lock file would end it before
    change(repository)
    old_text = lock_file.read_text()
    repository.run("check")
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (64, limits[1]))
    try:
        code, lines = repository.run("pin", *words)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert code == 2
    assert lines[-1] == "ptxcount.toml:1: error: PC009 OSError: [Errno 27] File too large"
    assert (lock_file.read_text(), [*repository.folder.glob("*.unfinished")]) == (old_text, [])


def test_source_outside_of_the_folder_has_declaration_and_limits(repository: Repository) -> None:
    """The folder with the launch has only a header of the source. The load takes 8 sectors per request."""
    folder = repository.folder / "in"
    folder.mkdir()
    (folder / "empty.h").write_text("")
    (folder / "ptxcount.toml").write_text(LAUNCH.replace('"scale.cu"', '"../scale.cu"'))
    limited = ("* STRIDE];", "* STRIDE];  // ptxcount: sectors <= 7")
    edits = [("namespace", '#include "in/empty.h"\nnamespace'), limited]
    repository.write_kernel(2, *edits)
    assert repository.run("pin", "in")[0] == 0
    code, (finding,) = repository.run("check", "in")
    assert (code, "scale.cu:7: error: PC002 sectors per request are 8; at most 7" in finding) == (1, True)
    (pinned_lines,) = json.loads((folder / "ptxcount.lock").read_text())["launches"].values()
    (line,) = [line for line, counts in pinned_lines.items() if "stack frame bytes" in counts]
    assert line == "scale.cu: __global__ void scale(T* out, const T* in, int n) {"
    edits += [("T* out, const T* in", "T* in, const T* out"), ("out[i]", "in[i]"), ("2 * in[", "2 * out[")]
    repository.write_kernel(2, *edits)
    code, lines = repository.run("check", "in")  # the PTX is the same, but the cached counts must not be used
    assert (code, "the kernel's order is in, out, n" in lines[0]) == (2, True)


def test_failing_launch_keeps_its_counts(repository: Repository) -> None:
    def read_launches() -> Any:
        return json.loads((repository.folder / "ptxcount.lock").read_text())["launches"]

    named = LAUNCH.replace("]]\n", ']]\nname = "first"\n')
    repository.write_launches(named + TWO_BLOCKS)
    assert repository.run("pin")[0] == 0
    old_launches = read_launches()
    repository.write_launches(named.replace("8192", "100") + TWO_BLOCKS)  # the first launch now reads out of bounds
    repository.write_kernel(1)  # another stride: the other launch has new counts
    code, lines = repository.run("pin")
    assert code == 2
    assert lines[0].startswith("scale.cu:6: error: PC006 ")
    assert lines[-1] == "ptxcount.lock was written without new counts of failed launches: 1 of 2 launches failed"
    launches = read_launches()
    assert {key for key in launches if launches[key] == old_launches[key]} == {"first"}
    assert launches.keys() == old_launches.keys()


def test_pin_writes_counts_above_a_limit(repository: Repository) -> None:
    repository.write_launches(f"{LAUNCH}limits = {{ load_sectors_per_request = 7 }}\n")
    repository.write_kernel(2, ("STRIDE];", "STRIDE];  // ptxcount: requests <= 31"))
    code, (of_launch, of_line, end) = repository.run("pin")
    assert code == 0
    assert of_launch.startswith("scale.cu:6: error: PC001 load_sectors_per_re")
    assert of_line.startswith("scale.cu:6: error: PC002 r")
    assert end == "ptxcount.lock was written, but ptxcount check will fail: 2 counts above a limit"
    assert repository.run("check") == (1, [of_launch, of_line])


def test_launches_of_init_can_be_pinned(repository: Repository) -> None:
    (repository.folder / "include").mkdir()
    (repository.folder / "include" / "sum.h").write_text("#define SUM +=\n")
    source = '#include "sum.h"\n__global__ void sum(float* out) { out[blockIdx.x * blockDim.x + threadIdx.x] SUM 1; }\n'
    (repository.folder / "sum.cu").write_text(source)
    repository.write_launches("")
    code, lines = repository.run("init", "scale.cu", "sum.cu", "-I", "include", "--flags", "-DMORE")
    assert code == 0
    # with the guessed n, the kernel of stride 2 would read out of bounds
    repository.write_launches("\n".join(lines).replace("int32:65528", "int32:1024"))
    assert repository.run("pin")[1] == [
        *(f"ptxcount.lock: new: {name}" for name in ("phys::scale<float>", "sum")),
        "ptxcount.lock: gone: scale.cu: phys::scale<float> <<<(4, 1, 1), (256, 1, 1)>>> (out=float32[1024], i…",
    ]
    launches = json.loads((repository.folder / "ptxcount.lock").read_text())["launches"]
    assert [key.partition(" (out=")[0] for key in launches] == [
        f"{name} <<<(256, 1, 1), (256, 1, 1)>>>" for name in ("scale.cu: phys::scale<float>", "sum.cu: sum")
    ]


def _damage_cache(text: str) -> None:
    for file in count_cache.cache_folder().glob("*.json"):
        file.write_text(text)


def test_check_counts_again_only_after_a_change(repository: Repository, monkeypatch: pytest.MonkeyPatch) -> None:
    counted: list[object] = []
    count = kernel_counts.count_compiled

    def counting_count(*args: Any, **options: Any) -> LaunchCounters:
        counted.append(args)
        return count(*args, **options)

    monkeypatch.setattr(compute, "count_compiled", counting_count)

    def is_counted_after(change: Callable[[], object]) -> bool:
        counted.clear()
        change()
        repository.run("check")
        return bool(counted)

    first, stored = repository.folder / "first" / "more.h", repository.folder / "in.npy"
    first.parent.mkdir()
    include = "#if __has_include(<more.h>)\n#include <more.h>\n#else\n#define MORE 0\n#endif\nnamespace"
    flags = 'flags = "-Ifirst -I ."\n'  # these flags bypass the shared compilations of conftest
    repository.run("check")
    assert not is_counted_after(lambda: None)
    assert is_counted_after(lambda: repository.write_launches(LAUNCH + flags))
    assert is_counted_after(lambda: repository.write_kernel(2, ("namespace", include), ("int i =", "int i = MORE +")))
    assert is_counted_after(lambda: first.write_text("#define MORE 2\n"))
    assert not is_counted_after(lambda: first.write_text("#define MORE 2  // it is the same\n"))
    variable = "__device__ float held[8192];\nnamespace"
    assert is_counted_after(lambda: repository.write_kernel(2, ("namespace phys", variable), ("2 *", "held[0] *")))
    assert not is_counted_after(lambda: None)  # nvcc names anonymous namespaces differently each time
    assert is_counted_after(lambda: repository.write_launches(LAUNCH.replace("random(1)", "random(2)")))
    assert not is_counted_after(
        lambda: repository.write_launches(LAUNCH.replace("random(1)", "random(2)") + "limits = {}\n")
    )
    assert is_counted_after(lambda: monkeypatch.setattr(count_cache, "hash_own_code", lambda: "another"))
    assert is_counted_after(lambda: monkeypatch.setattr(count_cache, "nvcc_release", lambda: "another"))
    assert is_counted_after(lambda: monkeypatch.setenv("NVCC_APPEND_FLAGS", "-DOTHER"))
    np.save(stored, np.ones(8192, np.float32))
    assert is_counted_after(lambda: repository.write_launches(LAUNCH.replace("float32[8192]=random(1)", "@in.npy")))
    assert is_counted_after(lambda: np.save(stored, np.zeros(8192, np.float32)))
    assert not is_counted_after(lambda: None)
    assert is_counted_after(lambda: repository.write_launches(LAUNCH + 'variables = ["held=@in.npy"]\n'))
    assert is_counted_after(lambda: np.save(stored, np.ones(8192, np.float32)))
    for damaged in ("[" * 100_000, "{", "{}", "[]", '{"totals": 1}', '{"lines": [[]]}'):
        assert is_counted_after(partial(_damage_cache, damaged))


@pytest.mark.parametrize("word", ["x=@values", "t=texture:@values", 's={"x": "@values"}', 's=["int32:1", "@values"]'])
def test_changed_file_of_an_argument_is_counted_again(word: str, tmp_path: Path) -> None:
    launch = Launch(folder=tmp_path, file="k.cu", grid=[1], block=[1], arguments=[word])
    file, counted = tmp_path / "values", []

    def count() -> dict[str, Any]:
        counted.append(file.read_text())
        return {"kernel": "k", "totals": {}, "lines": [], "machine": [], "warnings": []}

    for content in ("1", "1", "2"):
        file.write_text(content)
        count_cache.load_or_count(launch, "", [], count)
    assert counted == ["1", "2"]  # the second count is in the cache


def test_exchanged_names_of_parameters_are_an_error(repository: Repository) -> None:
    """Both kernels have the same PTX. Named arguments must be in the order of the parameters."""
    assert repository.run("check") == (0, [])
    repository.write_kernel(2, ("T* out, const T* in", "T* in, const T* out"), ("out[i]", "in[i]"), ("* in[", "* out["))
    code, (line,) = repository.run("check")
    assert (code, "the kernel's order is in, out, n" in line) == (2, True)


def test_cache_needs_no_numpy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    assert len(count_cache.hash_own_code.__wrapped__()) == 64


RACE = ("if (i < n) out[i] = ", "__shared__ int s; s = i; if (i < n) out[i] = s + ")
THREE_BLOCKS = LAUNCH.replace("= 4", "= 3")


def test_warning_does_not_fail_and_names_launches(repository: Repository) -> None:
    repository.write_kernel(2, RACE)
    repository.write_launches(LAUNCH + TWO_BLOCKS + THREE_BLOCKS)
    repository.run("pin", "--accept")
    code, (line,) = repository.run("check")
    assert code == 0
    assert line.startswith("scale.cu:6: warning: PC006 r")
    assert line.endswith(" [launch scale<float> (launch 1), and 2 more launches]")
    report = json.loads("\n".join(repository.run("check", "--format", "json")[1]))
    assert report["version"] == 3  # the first with more_launches
    (finding,) = report["findings"]
    assert finding["more_launches"] == ["scale<float> (launch 2)", "scale<float> (launch 3)"]
    repository.write_kernel(8, RACE)
    code, lines = repository.run("check")
    assert (code, {line.split()[1] for line in lines}) == (1, {"error:", "warning:"})
    repository.write_kernel(1, RACE)
    assert {line.split()[1] for line in repository.run("check")[1]} == {"note:", "warning:"}


def test_pin_prints_warnings(repository: Repository) -> None:
    repository.write_kernel(2, RACE)
    code, (*_, warning) = repository.run("pin", "--accept")
    assert (code, repository.run("check")) == (0, (0, [warning]))
    assert warning.startswith("scale.cu:6: warning: PC006")
    repository.write_kernel(2, RACE, ("STRIDE];", "STRIDE];  // ptxcount: ignore[wrong-kernel] of use"))
    assert repository.run("pin") == (0, [])


SUM = "__global__ void sum(float* out) { out[threadIdx.x] = 1; }\n"
SUM_LAUNCH = '[[launch]]\nfile = "sum.cu"\ngrid = 1\nblock = 1\n'


@pytest.mark.parametrize(("launches", "files"), [
    (LAUNCH.replace("<float>", "< float >"), ["sum.cu"]), ("# no launches yet\n", ["scale.cu", "sum.cu"]),
    (SUM_LAUNCH, ["scale.cu"]),
])  # fmt: skip
def test_init_leaves_out_known_kernels(launches: str, files: list[str], repository: Repository) -> None:
    (repository.folder / "sum.cu").write_text(SUM)
    repository.write_launches(launches)
    code, lines = repository.run("init", "./scale.cu", "sum.cu")
    assert code == 0
    assert [line for line in lines if line.startswith("file")] == [f'file = "{file}"' for file in files]


def test_init_reads_the_launches_of_this_folder(
    repository: Repository, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (repository.folder / "sum.cu").write_text(SUM)
    repository.write_launches(SUM_LAUNCH)
    command = ["init", str(repository.folder / "sum.cu")]
    assert (main(command), capsys.readouterr().err) == (0, "")
    monkeypatch.chdir(repository.folder)
    assert (main(command), capsys.readouterr().err) == (0, "left out 1 kernel that ptxcount.toml already has\n")
