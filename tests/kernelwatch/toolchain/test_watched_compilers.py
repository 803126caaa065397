"""The compilers that are watched: their pins, their names, their wheels, and asv's matrix."""

from __future__ import annotations

import hashlib
import os
import re
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from asv import environment
from asv.config import Config
from asv.util import UserError

from kernelwatch import home
from kernelwatch.project import ROOT
from kernelwatch.review.bisect import search
from kernelwatch.runner import compiler
from kernelwatch.toolchain import cache, nvcc
from kernelwatch.toolchain import releases as compilers

V130, V135 = "13.0.88", "13.5.37"


@pytest.fixture(autouse=True)
def anew(monkeypatch: pytest.MonkeyPatch) -> None:
    """No test finds another's compiler."""
    for name in (compilers.VARIABLE, home.CACHE, "NVCC"):
        monkeypatch.setenv(name, "")
    compilers.found.cache_clear()


def _is_found(monkeypatch: pytest.MonkeyPatch, version: str) -> None:
    compilers.found.cache_clear()
    monkeypatch.setattr(nvcc, "find_nvcc", lambda: Path("nvcc"))
    monkeypatch.setattr(nvcc, "version", lambda _: f"Cuda compilation tools, release 1, V{version}\n")


def test_every_watched_release_is_pinned() -> None:
    """By version and hash, for both processors that NVIDIA has wheels for; and no nvcc twice."""
    assert len(set(compilers.releases().values())) == len(compilers.releases())
    assert compilers.releases()[compilers.DEFAULT] == V130
    for path in compilers.PINS.iterdir():
        wheels = re.findall(
            r"^nvidia-\S+==\S+ \\\n    --hash=sha256:\w{64} \\\n    --hash=sha256:\w{64}\n", path.read_text(), re.M
        )
        assert len(wheels) == 5, path
        assert "".join(wheels) == path.read_text(), path


@pytest.mark.parametrize(
    ("version", "name"),
    [(None, None), (V130, None), (V135, "13.5.0"), ("13.1.80", "13.1.0"), ("12.8.93", "12.8.93")],
)
def test_names(version: str | None, name: str | None) -> None:
    """The default's results have asv's plain name, a watched release its own, and any other nvcc its version."""
    assert compilers.name(version) == name
    assert compilers.version_of(name) == (version or V130)


@pytest.mark.parametrize(
    ("file", "compiler"),
    [
        ("c0ffee00-virtualenv-py3.json", None),
        ("c0ffee00-virtualenv-py3-CUDA_TOOLKIT13.5.0.json", "13.5.0"),
        ("c0ffee00-virtualenv-py3-CUDA_TOOLKITx.json", None),
    ],
)
def test_files(file: str, compiler: str | None) -> None:
    """A file of results says whose they are, as asv names it."""
    assert compilers.of_file(file) == compiler
    variables = {("nobuild", compilers.VARIABLE): compiler} if compiler else {}
    if "x.json" not in file:
        assert f"c0ffee00-{environment.get_env_name('virtualenv', '3', {}, variables)}.json" == file


@pytest.mark.parametrize("matrix", [{}, {"req": {"numpy": ["2"]}}, {"numpy": ["2"]}])
def test_a_run_has_one_compiler(matrix: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """Of asv's matrix one environment is left, named after the nvcc that compiles; it is built once for all."""
    monkeypatch.chdir(ROOT)
    monkeypatch.setattr(cache, "lookup", lambda *_: None)
    folders, watched = (
        set(),
        {"env_nobuild": {compilers.VARIABLE: ["13.5.0", "13.1.0"]}} if "numpy" not in matrix else {},
    )
    for version, name in ((V130, None), (V135, "13.5.0"), ("12.8.93", "12.8.93")):
        _is_found(monkeypatch, version)
        conf = Config.load(str(ROOT / "asv.conf.json"))
        conf.matrix = {**matrix, **watched}
        compiler.choose(conf)
        (found,) = environment.get_environments(conf, [])
        assert found.env_vars == ({compilers.VARIABLE: name} if name else {})
        more = "-numpy2" if matrix else ""
        assert found.name == f"virtualenv-py3{more}" + (f"-{compilers.VARIABLE}{name}" if name else "")
        folders.add(found.dir_name)
    assert len(folders) == 1


@pytest.mark.parametrize(
    "use",
    [
        lambda _: compilers.use(),
        lambda _: compiler.choose(None),
        lambda root: search.search("registers", "HEAD", "HEAD", None, root, print),
    ],
    ids=["by itself", "a run", "a search"],
)
def test_what_is_not_watched(use: Callable[[Path], object], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A release that nobody pinned is refused, with those that are known, wherever kernels are compiled."""
    monkeypatch.setenv(compilers.VARIABLE, "11.0")
    with pytest.raises(UserError, match=r"CUDA_TOOLKIT=11\.0 is not watched; known are 13\.0\.0, 13\.0\.2, "):
        use(tmp_path)


def test_what_is_found_is_not_fetched(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither the default where it is installed, nor one that NVCC names."""
    for release, version in (("13.0.2", V130), ("13.5.0", V135)):
        _is_found(monkeypatch, version)
        monkeypatch.setenv(compilers.VARIABLE, release)
        monkeypatch.setattr(compilers, "fetched", pytest.fail)
        compilers.use()
        assert not os.environ["NVCC"]


def _wheel(folder: Path, cicc: str) -> str:
    """Write a wheel that holds an nvcc and a cicc; return its hash."""
    path = folder / "nvidia_cuda_nvcc-1.2-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as wheel:
        wheel.writestr("nvidia/cu13/bin/nvcc", "#!/bin/sh\n")
        wheel.writestr(f"nvidia/cu13/{cicc}", "")
        wheel.writestr("nvidia/cu13/nvvm/libdevice/libdevice.10.bc", "")
        wheel.writestr(
            "nvidia_cuda_nvcc-1.2.dist-info/METADATA", "Metadata-Version: 2.1\nName: nvidia-cuda-nvcc\nVersion: 1.2\n"
        )
        wheel.writestr(
            "nvidia_cuda_nvcc-1.2.dist-info/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        )
        wheel.writestr("nvidia_cuda_nvcc-1.2.dist-info/RECORD", "")
    return hashlib.sha256(path.read_bytes()).hexdigest()


@pytest.mark.parametrize(
    ("cicc", "is_right"), [("bin/cicc", True), ("nvvm/bin/cicc", True), ("bin/cicc", False)], ids=["13.0.0", "13.1", ""]
)
def test_wheels_are_fetched_once_and_by_hash(
    cicc: str, is_right: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Into a folder of their own; of a wheel with another hash nothing is left, and the message says so."""
    digest = _wheel(tmp_path, cicc)
    (tmp_path / "1.2.0.txt").write_text(
        f"nvidia-cuda-nvcc==1.2 \\\n    --hash=sha256:{digest if is_right else 64 * '0'}\n"
    )
    monkeypatch.setattr(compilers, "PINS", tmp_path)
    monkeypatch.setenv(home.CACHE, str(tmp_path / "kept"))
    for name, value in (("PIP_NO_INDEX", "1"), ("PIP_FIND_LINKS", str(tmp_path)), ("PIP_CONFIG_FILE", os.devnull)):
        monkeypatch.setenv(name, value)
    if is_right:
        found = compilers.fetched("1.2.0")
        assert found == tmp_path / "kept/cuda-toolkit/1.2.0/nvidia/cu13/bin/nvcc"
        assert (found.parents[1] / "nvvm/bin/cicc").exists()
        monkeypatch.setattr(compilers, "_install", pytest.fail)
        assert compilers.fetched("1.2.0") == found
    else:
        with pytest.raises(UserError, match=r"nvcc of CUDA 1\.2\.0 cannot be installed .*(hash|HASH)"):
            compilers.fetched("1.2.0")
        assert not (tmp_path / "kept" / "cuda-toolkit" / "1.2.0").exists()
