"""``ptxcount pin`` and ``check`` on a repository of their own: a good change, bad ones, an improvement."""

from __future__ import annotations

import json
import os
import resource
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ptxcount
from ptxcount.command_line import main
from ptxcount.counters import LaunchCounters
from ptxcount.gate.machine_code import memory_of
from tests.ptxcount.sources import compiled

KERNEL = """\
namespace phys {
template <typename T>
__global__ void scale(T* out, const T* in, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = 2 * in[i * STRIDE];
}
}
"""
LAUNCH = """\
[[launch]]
file = "scale.cu"
kernel = "scale<float>"
grid = 4
block = [256]
arguments = ["out=float32[1024]", "in=float32[8192]=random(1)", "n=int32:1024"]
"""


class Repository:
    """A folder with a kernel and a launch of it, and the commands there."""

    def __init__(self, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.folder, self._capsys = folder, capsys
        (folder / "ptxcount.toml").write_text(LAUNCH)

    def kernel(self, stride: int, edit: Callable[[str], str] = lambda text: text) -> None:
        """Write the kernel, which reads elements so far apart."""
        (self.folder / "scale.cu").write_text(edit(f"#define STRIDE {stride}\n{KERNEL}"))

    def launch(self, text: str) -> None:
        """Write the launches."""
        (self.folder / "ptxcount.toml").write_text(text)

    def lock(self, before: str, after: str) -> None:
        """Replace a text in the lock file."""
        file = self.folder / "ptxcount.lock"
        file.write_text(file.read_text().replace(before, after))

    def run(self, command: str, *words: str) -> tuple[int, list[str]]:
        """The exit code of a command, and what it says."""
        before = Path.cwd()
        os.chdir(self.folder)
        try:
            code = main([command, *words])
        finally:
            os.chdir(before)
        return code, self._capsys.readouterr().out.splitlines()


@pytest.fixture
def repository(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Repository:
    """One whose kernel reads every second element, pinned."""
    made = Repository(tmp_path, capsys)
    made.kernel(2)
    assert made.run("pin") == (0, ["ptxcount.lock: new: scale<float>"])
    assert made.run("check") == (0, [])
    return made


def test_pin_on_a_full_disk(repository: Repository) -> None:
    """The lock file stays as it was, and nothing lies beside it."""
    before = (repository.folder / "ptxcount.lock").read_text()
    repository.kernel(4)
    assert repository.run("check")[0] == 1
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (64, limits[1]))
    try:
        code, said = repository.run("pin", "--accept")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert (code, said) == (2, ["ptxcount.toml:1: PC009 OSError: [Errno 27] File too large"])
    assert (repository.folder / "ptxcount.lock").read_text() == before
    assert not list(repository.folder.glob("*.unfinished"))


ROSE = "scale.cu:6: PC003 global load sectors rose from 256 to 1024; scale<float>"
OTHER = LAUNCH.replace("= 4", "= 2")
RACE = "__shared__ int s; s = i; if (i < n) out[i] = s + 2 * in[i * STRIDE];"
#: What changes one after the other, the words behind check, the exit code, and how the lines begin that are said.
CHECKS: list[tuple[list[Callable[[Repository], object]], str, int, list[str]]] = [
    ([lambda one: one.kernel(2, lambda text: "// one\n\n" + text.replace("    if (i", " // two\n\tif  (i"))],
     "--exact", 0, []),
    ([lambda one: one.kernel(8)], "", 1, [ROSE]),
    ([lambda one: one.kernel(8)], "--format github", 1, ["::error file=scale.cu,line=6,title=rise::PC003 global load"]),
    ([lambda one: one.kernel(1)], "", 0, ["scale.cu:6: PC004 global load sectors fell from 256 to 128"]),
    ([lambda one: one.kernel(1)], "--exact --format github", 3, ["::notice file=scale.cu,line=6,title=fall::PC"]),
    ([lambda one: one.kernel(1), lambda one: one.run("check", "--update")], "--exact", 0, []),
    ([lambda one: one.kernel(1), lambda one: one.run("check", "--update"), lambda one: one.kernel(2)], "", 1,
     ["scale.cu:6: PC003 global load sectors rose from 128 to 256"]),
    ([lambda one: one.kernel(2, lambda text: text.replace("2 * in", "3 * in"))], "", 0, []),  # it costs the same
    ([lambda one: one.kernel(8, lambda text: text.replace("2 * in", "3 * in"))], "", 1,
     ["scale.cu:6: PC003 global load sectors rose from 256 to 1024 in lines that changed; scale"]),
    ([lambda one: one.lock('"nvcc": "', '"nvcc": "1')], "", 0, []),
    ([lambda one: one.lock('"nvcc": "', '"nvcc": "1'), lambda one: one.kernel(8)], "", 1,
     [ROSE, "ptxcount.lock:1: PC010 counts were made with nvcc 113.0.88, and this is 13.0.88"]),
    ([lambda one: one.kernel(2, lambda text: text.replace("if (i < n) out[i] = 2 * in[i * STRIDE];", RACE)),
      lambda one: one.launch(LAUNCH + OTHER), lambda one: one.run("pin", "--accept")], "", 0,
     ["scale.cu:6: PC006"]),  # two launches of one kernel
]  # fmt: skip


@pytest.mark.parametrize(("changes", "words", "code", "said"), CHECKS)
def test_check(
    changes: list[Callable[[Repository], object]], words: str, code: int, said: list[str], repository: Repository
) -> None:
    """Lines that move, what rises or falls, what another compiler made, a race: a finding each, and nothing else."""
    for change in changes:
        change(repository)
    found, lines = repository.run("check", *words.split())
    assert (found, [line[: len(begins)] for line, begins in zip(lines, said, strict=True)]) == (code, said)


#: What changes, the words behind pin, the exit code, what is said, and whether the lock file changes.
PINS: list[tuple[Callable[[Repository], object], list[str], int, str, bool]] = [
    (lambda one: one.kernel(8), [], 1, ROSE, False),
    (lambda one: one.kernel(8), ["--accept"], 0, ROSE, True),
    (lambda one: one.kernel(1), [], 0, "PC004 global load sectors fell from 256 to 128: ", True),
    (lambda one: one.launch(LAUNCH + OTHER), [], 0, "new: scale<float> <<<2, 256>>>", True),
    (lambda one: one.launch(OTHER), [], 0, "gone: scale.cu: phys::scale<float> <<<(4, ", True),
    (lambda one: one.lock('"nvcc": "13.0.88"', '"nvcc": "12.4.99"'), [], 0, "nvcc: 12.4.99 before, 13.0", True),
    (lambda one: one.lock("{", ""), [], 0, "ptxcount pin writes it anew", True),
    (lambda one: None, [], 0, "", False),
]


@pytest.mark.parametrize(("change", "words", "code", "said", "written"), PINS)
def test_pin(
    change: Callable[[Repository], object],
    words: list[str],
    code: int,
    said: str,
    written: bool,
    repository: Repository,
) -> None:
    """It says what changes, and writes no count that rose unless that is accepted."""
    change(repository)
    lock = repository.folder / "ptxcount.lock"
    before = lock.read_text()
    found, lines = repository.run("pin", *words)
    assert (found, said in "\n".join(lines), bool(lines)) == (code, True, bool(said)), lines
    assert (lock.read_text() != before) == written
    assert code or repository.run("check", "--exact") == (0, [])


#: Limits of the launch, or behind the line, and what is said.
LIMITS = [
    ("load_sectors_per_request = 8", ""),
    ("load_sectors_per_request = 7.9", "PC001 load_sectors_per_request is 8, 7.9 are allowed"),
    ('load_sectors_per_request = "1.5 x ideal"', "PC001 load_sectors_per_request is 8, 6 are allowed"),
    ('store_sectors = "1 x ideal"', ""),
    ("bank_conflicts = 0", ""),
    ("thread_instructions = 9", "PC001 thread_instructions is "),
    ("sectors <= 8", ""),
    ("sectors <= 4", "PC002 sectors are 8, 4 are allowed"),
    ("sectors <= 1.5 x ideal", "PC002 sectors are 8, 6 are allowed"),
    ("sectors <= 2 x ideal", ""),
    ("requests <= 31", "PC002 requests are 32, 31 are allowed"),
    ("requests <= 32", ""),
    ("lines <= 2", ""),
    ("lines <= 1", "PC002 lines are 2, 1 are allowed"),
    ("wavefronts <= 4", "PC007 wavefronts <= 4 binds nothing"),
    ("stack_frame_bytes = 0", ""),
]


@pytest.mark.parametrize(("limit", "said"), LIMITS)
def test_limit(limit: str, said: str, repository: Repository) -> None:
    """Absolute, or relative to the ideal."""
    if "<=" in limit:
        repository.kernel(2, lambda text: text.replace("STRIDE];", f"STRIDE];  // ptxcount: {limit}"))
    else:
        (repository.folder / "ptxcount.toml").write_text(f"{LAUNCH}limits = {{ {limit} }}\n")
    code, lines = repository.run("check")
    assert code == bool(said)
    line = 1 if "instructions" in limit else 6
    assert not said or lines[0].startswith(f"scale.cu:{line}: {said}")


def test_limit_of_shared_memory(repository: Repository) -> None:
    """Of all kinds, or of one; the line is that which has most."""
    turned = "__shared__ T s[256]; s[threadIdx.x] = n; __syncthreads();\n i += s[threadIdx.x * 2 % 256];"
    repository.kernel(2, lambda text: text.replace("    if (i", f"{turned}\n    if (i"))
    for name, each in (("bank_conflicts", 0.5), ("shared_load_bank_conflicts", 1)):
        limits = f"limits = {{ {name} = 31, {name}_per_request = 0.4 }}"
        (repository.folder / "ptxcount.toml").write_text(f"{LAUNCH}{limits}\n")
        said = [line.partition(";")[0] for line in repository.run("check")[1] if "PC001" in line]
        ends = [f"{name} is 32, 31 are allowed", f"{name}_per_request is {each}, 0.4 are allowed"]
        assert said == [f"scale.cu:7: PC001 {end}" for end in ends]


@pytest.mark.parametrize(("launch", "code", "said"), [
    (LAUNCH.replace("8192", "100"), 1, "scale.cu:6: PC006 access out of bounds by block"),
    (LAUNCH.replace('"scale.cu"', '"gone.cu"'), 2, "gone.cu:1: PC009 LaunchError: "),
    (LAUNCH.replace("block = [256]", "blocks = 4"), 2, "ptxcount.toml, launch 1: "),
    (LAUNCH + "limits = { load_sectors = nan }\n", 2, "limit load_sectors = nan: a finite number"),
    (LAUNCH + "limits = { load_sectors = inf }\n", 2, "limit load_sectors = inf: a finite number"),
    (LAUNCH + "limits = { sector = 1 }\n", 2, "limit 'sector': threads, load_requests"),
    (LAUNCH.replace("grid = 4", "grid = 8"), 2, "scale.cu:1: PC005 no counts are pinned: run ptxcount pin"),
    (LAUNCH.replace("grid = 4", "grid = 8"), 2, "ptxcount.lock:1: PC008 pinned, and in ptxcount.toml no more: "),
    (LAUNCH.replace("int32:1024", "int32:0"), 2, "scale.cu:1: PC009 it accesses no memory, so nothing is held"),
    (LAUNCH.replace("scale<float", "scale<unsigned").replace("float32", "uint32"), 2, "PC005 no counts are pinned"),
    (LAUNCH + "cluster = [2]\n", 2, "PC005 no counts are pinned"),
    (LAUNCH + 'name = "\\u001b[31m"\n', 2, "the name '\\x1b[31m' holds what cannot be printed"),
    (LAUNCH + 'name = "x"\n' + LAUNCH + 'name = "x"\n', 2, "two launches have the name 'x'"),
    (LAUNCH + "cluster = 3\n", 2, "PC009 LaunchError: "),
    ("", 2, "no ptxcount.toml and no [tool.ptxcount]"),
])  # fmt: skip
def test_what_cannot_be_held(launch: str, code: int, said: str, repository: Repository) -> None:
    """A wrong kernel does not hold; of what cannot be counted nothing is known."""
    file = repository.folder / "ptxcount.toml"
    file.write_text(launch) if launch else file.unlink()
    found, lines = repository.run("check")
    assert (found, said in "\n".join(lines)) == (code, True), lines


GONE = ["ptxcount.lock: gone: scale.cu: phys::scale<float> <<<(4, 1, 1), (256, 1, 1)>>> (out=float32[1024], i…"]


def test_init(repository: Repository) -> None:
    """What it prints of several files are launches that count; also from pyproject.toml."""
    (repository.folder / "include").mkdir()
    (repository.folder / "include" / "sum.h").write_text("#define SUM +=\n")
    source = '#include "sum.h"\n__global__ void sum(float* out) { out[threadIdx.x] SUM 1; }\n'
    (repository.folder / "sum.cu").write_text(source)
    code, lines = repository.run("init", "scale.cu", "sum.cu", "-I", "include", "--flags", "-DMORE")
    assert code == 0
    text = "\n".join(lines).replace("int32:65536", "int32:1024")
    (repository.folder / "ptxcount.toml").unlink()
    (repository.folder / "pyproject.toml").write_text(text.replace("[[launch]]", "[[tool.ptxcount.launch]]"))
    assert repository.run("pin")[1] == [f"ptxcount.lock: new: {n}" for n in ("phys::scale<float>", "sum")] + GONE
    held = json.loads((repository.folder / "ptxcount.lock").read_text())["launches"]
    assert [key[:55] for key in held] == [
        "scale.cu: phys::scale<float> <<<(256, 1, 1), (256, 1, 1",
        "sum.cu: sum <<<(256, 1, 1), (256, 1, 1)>>> (out=float32",
    ]


@pytest.mark.parametrize(("line", "code", "said"), [
    ("{code}  // ptxcount: ignore[rise] the data is small", 0, ""),
    ("// ptxcount: ignore[PC003] the data is small\n{code}", 0, ""),
    ("{code}  // ptxcount: ignore[rise]", 1, "PC007 a waiver needs a reason"),
    ("{code}  // ptxcount: ignore[rise, bank-conflict] of use", 1, "PC007 ignore[bank-conflict] waives nothing"),
    (
        "{code}  // ptxcount: ignore[rises] of use",
        2,
        "PC009 LaunchError: scale.cu:6: ignore[rises]: one of limit, ",
    ),
    ("{code}  // ptxcount: sector < 4", 2, "PC009 LaunchError: scale.cu:6: 'sector < 4': sectors <= 4 or"),
    ("// ptxcount: sectors <= 8\n{code}", 1, "scale.cu:7: PC002 sectors are 32, 8 are allowed"),
])  # fmt: skip
def test_waiver(line: str, code: int, said: str, repository: Repository) -> None:
    """It stands at the line or before it, names what it waives, and why; of no use it is told of."""
    repository.kernel(
        8, lambda text: text.replace("    if (i", line.format(code="    if (i").split("if (i")[0] + "if (i")
    )
    text = (repository.folder / "scale.cu").read_text().splitlines()
    where = next(n for n, each in enumerate(text) if "STRIDE]" in each)
    text[where] += line.partition("{code}")[2]
    (repository.folder / "scale.cu").write_text("\n".join(text) + "\n")
    found, lines = repository.run("check")
    assert (found, said in "\n".join(lines)) == (code, True), lines


def test_cache(repository: Repository, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is counted twice; what changes is: source, includes, launch, ptxcount, the compiler; not a limit."""
    from ptxcount.gate import cache, counting

    counted: list[object] = []
    count = ptxcount.count

    def counting_count(*args: Any, **more: Any) -> LaunchCounters:
        counted.append(args)
        return count(*args, **more)

    monkeypatch.setattr(counting, "count", counting_count)

    def changes(change: Callable[[], object]) -> bool:
        counted.clear()
        change()
        repository.run("check")
        return bool(counted)

    header, toml, stored = (repository.folder / name for name in ("stride.h", "ptxcount.toml", "in.npy"))
    assert not changes(lambda: None)
    first = repository.folder / "first" / "stride.h"
    first.parent.mkdir()
    header.write_text("")
    assert changes(lambda: repository.launch(LAUNCH + 'flags = "-Ifirst -I ."\n'))
    assert changes(lambda: repository.kernel(2, lambda text: f"#include <stride.h>\n{text}"))
    assert not changes(lambda: (first.parent / "another.h").write_text(""))
    assert changes(lambda: first.write_text(""))
    assert changes(first.unlink)
    first.write_text("")
    header.unlink()
    repository.launch(LAUNCH + 'flags = "-Ifirst"\n')
    assert changes(lambda: repository.kernel(2, lambda text: f'#include "stride.h"\n{text}'))
    assert changes(lambda: header.write_text(""))  # beside the source it comes before all folders
    assert changes(first.unlink)
    assert not changes(lambda: None)
    assert changes(lambda: header.write_text("// changed\n"))
    assert changes(lambda: toml.write_text(toml.read_text().replace("random(1)", "random(2)")))
    assert not changes(lambda: toml.write_text(toml.read_text() + "limits = { bank_conflicts = 0 }\n"))
    assert changes(lambda: monkeypatch.setattr(cache, "counter", lambda: "another"))
    monkeypatch.setenv("NVCC_APPEND_FLAGS", "-DOTHER")
    assert changes(cache._compiler.cache_clear)
    np.save(stored, np.ones(8192, np.float32))
    assert changes(lambda: toml.write_text(toml.read_text().replace("float32[8192]=random(2)", "@in.npy")))
    assert changes(lambda: np.save(stored, np.zeros(8192, np.float32)))
    assert not changes(lambda: None)
    assert changes(lambda: [each.write_text("{") for each in (repository.folder / cache.FOLDER).glob("*.json")])
    monkeypatch.setenv("CPATH", str(first.parent))
    cache._compiler.cache_clear()
    repository.launch(LAUNCH)
    later = "#if __has_include(<later.h>)\n#include <later.h>\n#endif\n"
    assert changes(lambda: repository.kernel(2, lambda text: later + text))
    assert changes(lambda: (first.parent / "later.h").write_text(""))


def test_advice_on_what_changed(repository: Repository) -> None:
    """Of accesses that count otherwise than in a revision's lock file, wherever the text changed."""

    def git(*words: str) -> None:
        who = ["-c", "user.name=somebody", "-c", "user.email=somebody"]
        subprocess.run(["git", *who, *words], cwd=repository.folder, check=True, capture_output=True)

    def changed(*words: str) -> list[str]:
        return [line[:17] for line in repository.run("check", "--changed", "HEAD", *words)[1] if " PC1" in line]

    def begins(text: str) -> str:
        return text.replace("blockIdx.x * blockDim.x + threadIdx.x", "threadIdx.x * 4 + blockIdx.x")

    git("init", "-q")
    git("add", "scale.cu", "ptxcount.toml")
    git("commit", "-qm", "no lock file")
    assert changed() == ["scale.cu:6: PC101"]
    git("add", "ptxcount.lock")
    git("commit", "-qm", "one")
    assert [line[:17] for line in repository.run("check", "--advise")[1]] == ["scale.cu:6: PC101"]
    assert changed() == []
    repository.kernel(2, lambda text: text.replace("2 * in", "3 * in"))
    assert changed() == []
    repository.kernel(2, begins)  # another line than that of the access
    assert changed("--advise")[0][:14] == "scale.cu:6: PC"
    code, (said,) = repository.run("check", "--changed", "gone")
    assert (code, "PC009 LaunchError: --changed gone: fatal: " in said) == (2, True)


def _with_local_memory(text: str) -> str:
    local = "float a[8]; for (int j = 0; j < 8; j++) a[(i + j) % 8] = j; out[i] = a[n % 8] + 2 * in[i * STRIDE];"
    return text.replace("if (i < n) out[i] = 2 * in[i * STRIDE];", local)


def test_local_memory(repository: Repository) -> None:
    """An array that falls to local memory has a stack frame, and accesses of its own."""
    repository.kernel(2, _with_local_memory)
    code, lines = repository.run("check")
    assert (code, "scale.cu:4: PC003 stack frame bytes rose from 0 to 32; scale<float>" in lines) == (1, True), lines
    assert any("PC003 local store requests rose from 0 to 256" in line for line in lines)


def test_spills() -> None:
    """Ptxas has nvcc's options, such as a limit of registers."""
    names = [f"a{n}" for n in range(48)]
    loads = "".join(f"float {name} = x[{n} * 32]; " for n, name in enumerate(names))
    stores = "".join(f"x[{n} * 32 + 1] = {name}; " for n, name in enumerate(reversed(names)))
    ptx = compiled(f'extern "C" __global__ void k(float* x) {{ {loads}__syncthreads(); {stores}}}')
    frames = {
        flags: {f"{each['space']} {each['kind']}": each["bytes"] for each in memory_of(ptx, "k", flags, "sm_90")}
        for flags in ("", "--maxrregcount=24")
    }
    assert frames[""] == {"stack frame": 0, "spill store": 0, "spill load": 0}
    assert frames["--maxrregcount=24"]["spill store"] > 0
    assert memory_of(ptx, "k", "", "compute_90") == memory_of("no PTX", "k", "", "sm_90") == []


def test_old_lock(repository: Repository) -> None:
    """A lock file that named no nvcc holds global and shared memory, and not what it knew nothing of."""
    file = repository.folder / "ptxcount.lock"
    held = json.loads(file.read_text())["launches"]
    for lines in held.values():
        lines.pop("scale.cu: __global__ void scale(T* out, const T* in, int n) {")
    file.write_text(json.dumps(held))
    repository.kernel(2, _with_local_memory)
    assert repository.run("check", "--exact") == (0, [])
    repository.launch(LAUNCH + 'name = "doubled"\n')
    assert repository.run("check", "--exact") == (0, [])
    repository.kernel(8, _with_local_memory)
    rose = "scale.cu:6: PC003 global load sectors rose from 256 to 1024 in lines that changed; doubled"
    assert repository.run("check") == (1, [rose])


def test_commands_in_messages(repository: Repository) -> None:
    """They work as they are from where the gate was called."""
    (repository.folder / "ptxcount.lock").unlink()
    above = repository.folder.parent
    name = repository.folder.relative_to(above)
    here, repository.folder = repository.folder, above
    assert f"run ptxcount pin {name}, and" in repository.run("check", str(name))[1][0]
    assert repository.run("pin", str(name))[0] == 0
    repository.folder = here
    repository.kernel(1)
    repository.folder = above
    assert f"ptxcount check --update {name} pins it" in repository.run("check", str(name))[1][0]


def test_without_a_lock(repository: Repository) -> None:
    """Nothing is pinned, so nothing is known; a broadcast makes up for no other access in a limit."""
    (repository.folder / "ptxcount.lock").unlink()
    many = " + ".join(f"in[{n}]" for n in range(16))
    repository.kernel(8, lambda text: text.replace("2 * in[", f"{many} +\n2 * in["))
    repository.launch(f'{LAUNCH}limits = {{ load_sectors_per_request = "1.1 x ideal" }}\n')
    code, lines = repository.run("check")
    assert (code, [line[:17] for line in lines]) == (2, ["scale.cu:7: PC001", "ptxcount.toml:1: "])
    assert lines[0].endswith(" are allowed; at this line it is 32; scale<float>")
    assert "PC005 no counts are pinned: run ptxcount pin, and commit ptxcount.lock" in lines[1]


def test_control_characters(repository: Repository) -> None:
    """None reaches a terminal, or a file of another tool."""
    repository.kernel(2, lambda text: text.replace("int i =", "in\x1b[31mt i ="))
    for form in ("text", "github", "json", "sarif", "junit"):
        code, lines = repository.run("check", "--format", form)
        assert (code, any(not each.isprintable() for each in "".join(lines))) == (2, False)
