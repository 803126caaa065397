"""`kernelwatch init`: what it finds, what it writes, and that it changes nothing."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from kernelwatch import beginning

SOURCE = """
// __global__ void commented(float* p) {}
template <typename T, int N>
__global__ void __launch_bounds__(256) scale(T* __restrict__ out, const T* in, unsigned int n, float by) { }
extern "C" __global__ void sum(double* total, const unsigned short* values, long long size) {
}
"""


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Two kernels in a file that is not committed yet."""
    subprocess.run(["git", "init", "--quiet", "--initial-branch=trunk"], cwd=tmp_path, check=True)
    (tmp_path / "a.cu").write_text(SOURCE)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_what_is_written(repository: Path) -> None:
    """The branch, and of each kernel its template's arguments, its arrays with dtypes, its scalars by name."""
    assert beginning.main([]) == 0
    assert json.loads((repository / "asv.conf.json").read_text())["branches"] == ["trunk"]
    text = (repository / "benchmarks" / "kernels.py").read_text()
    compile(text, "kernels.py", "exec")
    for part in (
        'entry="scale<{T}, 1>"',
        '[in_and_out("out", "n"), inputs("in", "n"), "n", "by"]',
        '[in_and_out("total", "size", "float64"), inputs("values", "size", "uint16"), "size"]',
        'watch(sum, {"size": [4096]})',
    ):
        assert part in text
    assert "commented" not in text


def test_nothing_is_overwritten(repository: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Not by the second time either."""
    (repository / "asv.conf.json").write_text("mine")
    assert beginning.main([]) == beginning.main([]) == 0
    assert (repository / "asv.conf.json").read_text() == "mine"
    assert "benchmarks/kernels.py is there: not changed" in capsys.readouterr().out


def test_no_repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """Says what to do."""
    monkeypatch.chdir(tmp_path)
    assert beginning.main([]) == 1
    assert "git init" in capsys.readouterr().err
