"""Shared by all tests: conditions for skipping, and the folder of compiled kernels.

Tests of ptxcount need only ptxcount and pytest, so further imports wait for a fixture.
"""

import gc
import importlib.util
import os
import signal
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.site import browser

# A background job of a script ignores SIGINT, and the tests' child processes would inherit that.
signal.signal(signal.SIGINT, signal.default_int_handler)

# Tests start hundreds of processes, and starting OpenBLAS's threads takes a third of NumPy's import.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

ROOT = Path(__file__).resolve().parents[1]


def _no_gpu() -> str | None:
    from kernelwatch.errors import KernelwatchError
    from kernelwatch.kernel import load_function

    try:
        load_function.load_driver()
    except KernelwatchError as error:
        return str(error)
    return None


def _no_pycuda() -> str | None:
    from kernelwatch.toolchain import nvcc_call

    return nvcc_call.find_pycuda_problem()


def _no_dask() -> str | None:
    return None if importlib.util.find_spec("distributed") else "distributed is not installed: requirements/fleet.txt"


def _git_says(*options: str) -> list[str]:
    words = ["git", "-C", str(ROOT), "rev-parse", *options]
    return subprocess.run(words, capture_output=True, text=True).stdout.splitlines()


def _no_history() -> str | None:
    if _git_says("--show-toplevel", "--is-shallow-repository") == [str(ROOT), "false"]:
        return None
    return "the commits of stored results are missing; a full clone has them"


#: Marker -> reason why its tests cannot run here, or None.
_NEEDS: dict[str, Callable[[], str | None]] = {
    "gpu": _no_gpu,
    "pycuda": _no_pycuda,
    "fleet": _no_dask,
    "browser": browser.explain_absence,
    "history": _no_history,
}


#: Files with the longest tests, longest first: started late, they would leave other processes idle.
_LONGEST = (
    "tests/kernelwatch/test_strangers.py",
    "tests/site/test_pages.py",
    "tests/kernelwatch/review/test_bisect_searches.py",
    "tests/gpu_kernels/test_catalog_executed.py",
    "tests/kernelwatch/runner/test_run.py",
    "tests/gpu_kernels/test_transpose_vectorized.py",
    "tests/ptxcount/test_gate_compilations.py",
    "tests/ptxcount/test_fuzz.py",
    "tests/ptxcount/test_gate.py",
    "tests/kernelwatch/instrument/test_measurement.py",
    "tests/kernelwatch/test_finder.py",
    "tests/kernelwatch/review/test_compare_real.py",
    "tests/kernelwatch/instrument/test_comparison.py",
    "tests/faults/test_orphans.py",
)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int:
    """Return one process more than processors, since tests wait a quarter of their time.

    If PyCUDA works, return 0: the tests share this process, because of the GPU's memory and profiler. One worker
    would not do, because xdist waits for ever for a killed worker.
    """
    return 0 if _no_pycuda() is None else len(os.sched_getaffinity(0)) + 1


def pytest_configure() -> None:
    """Hide results that git does not track from the tests, such as those of local runs."""
    os.environ.pop("KERNELWATCH_RESULTS", None)
    package_spec = importlib.util.find_spec("kernelwatch")
    if package_spec is None or package_spec.origin is None:  # the folder of this checkout is no installed package
        return
    from kernelwatch.store import reading

    words = ["git", "-C", str(ROOT), "ls-files", "--others", "-z", "--", "results"]
    names = subprocess.run(words, capture_output=True, text=True).stdout.split("\0")
    untracked, listed = {ROOT / name for name in names}, reading.list_paths
    reading.list_paths = lambda *words, **named: [path for path in listed(*words, **named) if path not in untracked]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Start long tests first; skip tests whose marker needs something missing."""
    places = {file: place for place, file in enumerate(_LONGEST)}
    items.sort(key=lambda item: places.get(item.nodeid.partition("::")[0], len(places)))
    for marker, why_not in _NEEDS.items():
        marked = [item for item in items if item.get_closest_marker(marker)]
        reason = why_not() if marked else None
        if reason is not None:
            for item in marked:
                item.add_marker(pytest.mark.skip(reason=f"{marker}: {reason}"))


def pytest_collection_finish() -> None:
    """Freeze collected tests, so that garbage collections skip thousands of objects."""
    gc.collect()
    gc.freeze()


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print the number of skipped tests of each marker, then of each other reason."""
    skipped: list[pytest.TestReport | pytest.CollectReport] = terminalreporter.stats.get("skipped", [])
    texts = [report.longrepr[2].removeprefix("Skipped: ") for report in skipped if isinstance(report.longrepr, tuple)]
    for marker in _NEEDS:
        reasons = [text for text in texts if text.startswith(f"{marker}: ")]
        if reasons:
            why = reasons[0].removeprefix(f"{marker}: ")
            terminalreporter.write_line(f"{len(reasons)} tests marked {marker} skipped: {why}")
    for why in sorted({text for text in texts if text.partition(": ")[0] not in _NEEDS}):
        terminalreporter.write_line(f"{texts.count(why)} more tests skipped: {why}")


@pytest.fixture(scope="session")
def checkout() -> None:
    """Skip the test outside a git clone, as in an unpacked archive. A shallow clone suffices."""
    if _git_says("--show-toplevel") != [str(ROOT)]:
        pytest.skip("this folder is no checkout of git")


@pytest.fixture
def empty_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Use an empty cache on disk and in this process; yield its folder of kernels."""
    from kernelwatch.kernel import compile_source

    folder = tmp_path / "cache"
    monkeypatch.setenv("KERNELWATCH_CACHE", str(folder))
    compile_source._compile_module.cache_clear()
    yield folder / "kernels"
    compile_source._compile_module.cache_clear()
