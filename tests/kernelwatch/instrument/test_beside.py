"""Asv without the plugin: the measuring process begins beside a process of asv's, and ends with it, even if killed."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest

from kernelwatch import project
from kernelwatch.instrument import beside, exchange, machine

#: In the place of Python: what measures nothing, and a machine that has a GPU.
SCRIPT = """\
    #!{python}
    import sys, time
    from pathlib import Path
    from multiprocessing.connection import Listener
    sys.path.insert(0, {root!r})
    if sys.argv[2] == "kernelwatch.instrument.beside":
        from kernelwatch.instrument import beside, machine
        machine.nvml = lambda: "handle"
        sys.executable = __file__
        sys.argv[1:3] = []
        beside.main()
    else:
        print("{{}}", flush=True)
        Path({alive!r}).touch()
        sys.stdin.read()
        Path({alive!r}).unlink()
"""


def _wait(path: Path, *, exists: bool) -> bool:
    until = time.monotonic() + 10
    while path.exists() != exists and time.monotonic() < until:
        time.sleep(0.01)
    return path.exists() == exists


@pytest.mark.parametrize("kill", [False, True])
def test_it_ends_with_asv(kill: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its address is found; when the process ends, or is killed, nothing of it is left."""
    alive, script = tmp_path / "alive", tmp_path / "python"
    root = str(Path(__file__).parents[3])
    script.write_text(textwrap.dedent(SCRIPT).format(python=sys.executable, alive=str(alive), root=root))
    script.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(script))
    monkeypatch.setattr(machine, "nvml", lambda: "handle")
    monkeypatch.delenv(exchange.ADDRESS, raising=False)
    with subprocess.Popen(["sleep", "60"]) as asv:
        beside.begin(tmp_path, asv.pid)
        assert _wait(alive, exists=True), (tmp_path / "measuring.log").read_text()
        address = Path((tmp_path / "measuring").read_text())
        assert address.parent.is_dir()
        asv.kill() if kill else asv.terminate()
    assert _wait(alive, exists=False)
    assert _wait(address.parent, exists=False)
    assert beside._begun.pop().wait(10) == 0


@pytest.mark.parametrize("gpu", [False, True])
@pytest.mark.parametrize("plugin", ["", "half", "whole"])
def test_what_is_missing_is_told_once(
    plugin: str, gpu: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """By the first process that asks, with a GPU or without; not with the plugin, whose process counts, if any."""
    for name, least in ((exchange.ADDRESS, "whole"), (project.LIBRARIES, "half")):
        monkeypatch.setenv(name, "of the plugin")
        if plugin not in (least, "whole"):
            monkeypatch.delenv(name)
    if gpu:
        (tmp_path / "measuring").write_text("beside")
    for _ in range(2):
        beside.find(tmp_path)
    assert os.environ.get(exchange.ADDRESS) == ("of the plugin" if plugin == "whole" else "beside" if gpu else None)
    assert capsys.readouterr().err.count('write "plugins": [') == (not plugin)
