"""Releases of CUDA: their names, wheels, and asv's matrix."""

import os
import re
import subprocess
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from asv import environment
from asv.config import Config
from asv.util import UserError

from kernelwatch.config import cache_dir
from kernelwatch.config.project_root import ROOT
from kernelwatch.errors import KernelwatchError
from kernelwatch.runner import compiler
from kernelwatch.toolchain import cache, nvcc, releases

V130, V135 = "13.0.88", "13.5.37"


@pytest.fixture(autouse=True)
def anew(monkeypatch: pytest.MonkeyPatch) -> None:
    """Forget the compilers of other tests, and unset the variables that choose one."""
    for name in (releases.VARIABLE, cache_dir.CACHE, "NVCC"):
        monkeypatch.setenv(name, "")
    releases.installed_release.cache_clear()


def _is_found(monkeypatch: pytest.MonkeyPatch, version: str | None) -> None:
    releases.installed_release.cache_clear()
    monkeypatch.setattr(nvcc, "find_nvcc", lambda: Path("nvcc"))
    monkeypatch.setattr(nvcc, "version_text", lambda _: f"Cuda compilation tools, release 1, V{version}\n")


def test_primary_compiler_is_default_or_most_used() -> None:
    assert [releases.primary_compiler(names) for names in ([], [None, "a", "a"], ["a", "b", "b"])] == [None, None, "b"]


@pytest.mark.parametrize("matrix", [{}, {"req": {"numpy": ["2"]}}, {"numpy": ["2"]}])
def test_run_has_one_compiler(matrix: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """Environments are named by a known release, else by nvcc's version, but not by the default compiler."""
    monkeypatch.chdir(ROOT)
    monkeypatch.setattr(cache, "lookup", lambda *_: None)
    folders = set()
    watched = {} if "numpy" in matrix else {"env_nobuild": {releases.VARIABLE: ["13.5.0", "13.1.0"]}}
    for version, name in ((V130, None), (None, None), (V135, "13.5.0"), ("12.8.93", "12.8.93")):
        _is_found(monkeypatch, version)
        conf = Config.load(str(ROOT / "asv.conf.json"))
        conf.matrix = {**matrix, **watched}
        compiler.choose_compiler(conf)
        (asv_environment,) = environment.get_environments(conf, [])
        assert asv_environment.env_vars == ({releases.VARIABLE: name} if name else {})
        suffix = "-numpy2" if matrix else ""
        assert asv_environment.name == f"virtualenv-py3{suffix}" + (f"-{releases.VARIABLE}{name}" if name else "")
        folders.add(asv_environment.dir_name)
    assert len(folders) == 1, "compilers need no environment of their own"


@pytest.mark.parametrize(
    ("use", "error"),
    [(releases.use_requested_release, KernelwatchError), (lambda: compiler.choose_compiler(None), UserError)],
    ids=["by itself", "a run"],
)
@pytest.mark.parametrize("release_text", ["13", "new", "13.5.0; x", "../13.5.0"])
def test_invalid_release_is_refused(
    use: Callable[[], object], error: type[Exception], release_text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(releases.VARIABLE, release_text)
    monkeypatch.setattr(releases, "_install_wheels", pytest.fail)
    message = re.escape(f"CUDA_TOOLKIT={release_text} is not a release of CUDA; write one such as 13.0.2, or set NVCC")
    with pytest.raises(error, match=message):
        use()


def test_installed_release_is_not_fetched(monkeypatch: pytest.MonkeyPatch) -> None:
    for release, version in (("13.0.2", V130), ("13.5.0", V135)):
        _is_found(monkeypatch, version)
        monkeypatch.setenv(releases.VARIABLE, release)
        monkeypatch.setattr(releases, "install_nvcc", pytest.fail)
        releases.use_requested_release()
        assert not os.environ["NVCC"]


def _wheel(folder: Path, cicc: str) -> None:
    with zipfile.ZipFile(folder / "cuda_toolkit-1.2.0-py3-none-any.whl", "w") as wheel:
        for name in ("bin/nvcc", cicc, "nvvm/libdevice/libdevice.10.bc"):
            wheel.writestr(f"nvidia/cu13/{name}", "")
        for name, text in {
            "METADATA": "Metadata-Version: 2.1\nName: cuda-toolkit\nVersion: 1.2.0\n",
            "WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
            "RECORD": "",
        }.items():
            wheel.writestr(f"cuda_toolkit-1.2.0.dist-info/{name}", text)


@pytest.mark.parametrize("cicc", ["bin/cicc", "nvvm/bin/cicc", ""], ids=["13.0.0", "13.1", "not there"])
def test_wheels_are_installed_once(cicc: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The front end cicc of 13.0.0 lies where nvcc does not find it, so it is linked."""
    if cicc:
        _wheel(tmp_path, cicc)
    for name, value in (("PIP_NO_INDEX", "1"), ("PIP_FIND_LINKS", str(tmp_path)), ("PIP_CONFIG_FILE", os.devnull)):
        monkeypatch.setenv(name, value)
    monkeypatch.setenv(cache_dir.CACHE, str(tmp_path / "kept"))
    if cicc:
        installed = releases.install_nvcc("1.2.0")
        assert installed == tmp_path / "kept/cuda-toolkit/1.2.0/nvidia/cu13/bin/nvcc"
        assert (installed.parents[1] / "nvvm/bin/cicc").exists()
        monkeypatch.setattr(releases, "_install_wheels", pytest.fail)
        assert releases.install_nvcc("1.2.0") == installed
    else:
        with pytest.raises(KernelwatchError, match=r"nvcc of CUDA 1\.2\.0 cannot be installed: .*No matching"):
            releases.install_nvcc("1.2.0")
        assert not (tmp_path / "kept" / "cuda-toolkit" / "1.2.0").exists()


def test_killed_pip_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A killed pip prints nothing."""
    monkeypatch.setenv(cache_dir.CACHE, str(tmp_path))
    killed = subprocess.CompletedProcess(["pip"], -9, stderr="")
    monkeypatch.setattr(subprocess, "run", lambda *_, **__: killed)
    with pytest.raises(KernelwatchError, match="cannot be installed: pip ended with -9"):
        releases.install_nvcc("1.2.0")
    assert not (tmp_path / "cuda-toolkit" / "1.2.0").exists()


def test_unwritable_cache_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(cache_dir.CACHE, os.devnull)
    with pytest.raises(KernelwatchError, match=f"{cache_dir.CACHE} to a writable folder"):
        releases.install_nvcc("1.2.0")
