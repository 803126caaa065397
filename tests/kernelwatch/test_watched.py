"""Kernels that `benchmarks/kernels.py` watches: their benchmarks, and errors of the file."""

import re
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from kernelwatch import Kernel, outputs
from kernelwatch.benchmarks import watched
from kernelwatch.cli import init
from kernelwatch.config import settings
from kernelwatch.errors import ArgumentError
from kernelwatch.suite import registry
from kernelwatch.suite.sweep import Sweep
from tests import commits
from tests.kernelwatch.test_beginning import repository

__all__ = ["repository"]

WATCHED = """
from kernelwatch import Kernel, outputs, watch
def own(name):
    return Kernel(name, [outputs("out", "n")], 32, over=("n",), text="x")
found = watch(own("my_own"), {"n": [4]}, timed={"n": [8]}, title="Mine")
for name, (_, sweep) in found["SUITE"].benchmarks.items():
    print(name, sweep.isolated, *sweep.axes.get("n", ()), sweep.title)
print(*found)
again = own("again")
watch(again, {"n": [4]})
watch(again, {"n": [8]}, name="Another")  # the same kernel: no error
for _ in range(2):
    watch(own("own"), {"n": [4]})  # the same line: no error
watch(own("own"), {"n": [4]}, name="Other")
"""


def test_watched_kernel_has_benchmarks(repository: Path) -> None:
    (repository / "a.py").write_text(WATCHED)
    done = subprocess.run([sys.executable, "a.py"], cwd=repository, capture_output=True, text=True)
    *benchmarks, classes = done.stdout.splitlines()
    assert benchmarks[:5] == [
        "time_kernel.MyOwn.time_back_to_back False 8 Mine, DRAM",
        "track_control.MyOwn.track_copy_ratio False 8 Mine, DRAM",
        "time_kernel.IsolatedMyOwn.time_isolated True 8 Mine, DRAM",
        "track_control.IsolatedMyOwn.track_copy_ratio True 8 Mine, DRAM",
        "track_counted.MyOwn.track_load_sectors False 4 Mine",
    ]
    assert benchmarks[-1].startswith("track_compiled.Compiled.track_")
    assert classes == "MyOwn SUITE Compiled MyOwnTimes IsolatedMyOwnTimes MyOwnRatios IsolatedMyOwnRatios"
    assert re.search(r"two kernels are called own, at .*a\.py:13 and at .*a\.py:14; rename", done.stderr)


@pytest.mark.parametrize(
    ("axes", "options", "message"),
    [
        ({"n": [4], "m": [1]}, {}, "own takes n, but param_names has m, n; give"),
        ({"dtype": ["float32"]}, {}, "own takes n, but param_names has no argument"),
        ({"n": [4]}, {"name": "Compiled"}, "class Compiled: another benchmark is called Compiled; rename"),
        ({"n": [4]}, {"name": "Taken"}, "class Taken: another benchmark is called Taken; rename"),
        ({"n": [4]}, {"name": "Late"}, "class Late: another benchmark is called IsolatedLate; rename"),
        ({"n": [4]}, {"timed": {"m": [8]}}, "class Own: timed has the axis m; allowed are n, dtype, flags"),
        ({"n": [4]}, {"timed": {"n": 8}}, "class Own: timed needs a list of values for each axis; given: {'n': 8}"),
        ({"n": [4]}, {"timed": [8]}, r"class Own: timed needs a list of values for each axis; given: \[8\]"),
        ({"n": []}, {}, r"class Own: params needs a list of values .* param_names \(n\); given: \(\[\],\)"),
        ({3: [4]}, {}, r"class Own: param_names needs a list of names; given: \(3,\)"),
        ({"n": [4]}, {"archs": "sm_90"}, "class Own: archs needs a list of architectures; given: 'sm_90'"),
        ({"n": [4]}, {"archs": []}, r"class Own: archs needs a list of architectures; given: \[\]"),
    ],
)
def test_watch_refuses_wrong_axes_and_names(
    axes: dict[str, Any], options: dict[str, Any], message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    taken = {name: Sweep(name, "another's", {}, kernel="other") for name in ("Taken", "IsolatedLate")}
    monkeypatch.setattr(watched, "_TIMED", taken)
    monkeypatch.setattr(watched, "_FIRST_PLACES", {})
    with pytest.raises(ArgumentError, match=message):
        watched.watch(Kernel("own", [outputs("out", "n")], 32, over=("n",), text="x"), axes, **options)


@pytest.mark.parametrize("attributes", [{}, {"kernel": "own"}], ids=str)
def test_watched_class_needs_a_kernel(attributes: dict[str, str]) -> None:
    with pytest.raises(
        ArgumentError, match=f"class Own: kernel needs a Kernel; given: '{attributes.get('kernel', '')}'$"
    ):
        type("Own", (watched.Watched,), attributes)


def test_watch_refuses_other_modules_of_the_suite(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(settings, "suite_name", lambda: "suite.kernels:SUITE")
    monkeypatch.setattr(settings, "suite_folder", lambda: "suite")
    caller: Any = SimpleNamespace(
        f_code=SimpleNamespace(co_filename="own.py"), f_lineno=1, f_globals={"__name__": "suite.own"}
    )
    kernel = Kernel("own", [outputs("out", "n")], 32, over=("n",), text="x")
    message = "own is watched in suite.own, but the suite is suite.kernels; import the kernel there, and watch it there"
    with pytest.raises(ArgumentError, match=message):
        watched._check_place(kernel, caller)


@pytest.mark.parametrize("setting", ["kernelwatch.kernel", "kernelwatch.kernel:", "kernelwatch.kernel:Kernel"])
def test_setting_must_name_a_suite(setting: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(settings, "suite_name", lambda: setting)
    assert str(registry._load_suite.__wrapped__()).startswith(f"'{setting}' is not a suite; name your suite in ")


COUNT, ASV, RUN = "kernelwatch count x n=1 float32", "asv run HEAD^!", "kernelwatch run"


@pytest.mark.parametrize(
    ("line", "message", "commands"),
    [
        ("def (", "FILE:3: SyntaxError: invalid syntax", (COUNT, ASV, RUN)),
        ("import nothing_there", "FILE:3: ModuleNotFoundError: No module named 'nothing_there'", (COUNT,)),
        (
            "Kernel('a', [], 32, over=('n',), text='x')",
            "FILE:3: ArgumentError: a: there is no output; use outputs",
            (COUNT,),
        ),
        ("__import__('json').loads('')", "FILE:3: JSONDecodeError: Expecting value", (COUNT,)),
        ("SUITE = None", "'benchmarks.kernels:SUITE' is not a suite; name your suite in ", (COUNT, ASV)),
        (
            "import kernelwatch as kw; k = Kernel('a', [kw.outputs('o', 'n')], 1, over=['n'], text='x'); "
            "kw.watch(k, {'n': 4})",
            "FILE:3: ArgumentError: class A: params needs a list of values for each of param_names (n); given: (4,)",
            (COUNT,),
        ),
    ],
)
def test_broken_suite_is_one_line(line: str, message: str, commands: tuple[str, ...], repository: Path) -> None:
    init.main([])
    file = repository / "benchmarks" / "kernels.py"
    file.write_text(f"from kernelwatch import Kernel\n\n{line}\n")
    commits.commit(commits.set_identity(repository))
    for command in commands:
        words = [sys.executable, "-m", *command.split()]
        done = subprocess.run(words, cwd=repository, capture_output=True, text=True)
        assert done.returncode
        (error,) = (done.stdout + done.stderr).splitlines()
        assert message.replace("FILE", str(file)) in error
