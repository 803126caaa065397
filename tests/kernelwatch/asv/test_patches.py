"""The table of asv's functions that the plugin replaces, and what another release of asv switches off."""

from __future__ import annotations

import subprocess
import sys
from types import SimpleNamespace
from typing import Any

import pytest
from asv.console import log

from kernelwatch.asv import patches
from kernelwatch.asv.patches import Feature, Patch
from kernelwatch.project import ROOT

#: Says what is switched off after a line has made asv another, and what the rest of the table did.
_CHANGED = """
import asv.machine, asv.runner, asv.util
from asv.results import Results
from asv.console import log
log.enable()
own = Results.add_result, asv.machine.Machine.load, asv.runner.ForkServer.create_setup_cache
{change}
from kernelwatch.asv import plugin
plugin.setup()
now = Results.add_result, asv.machine.Machine.load, asv.runner.ForkServer.create_setup_cache
print("patched:", *(one != other for one, other in zip(own, now)))
"""


def test_the_pinned_release_is_as_expected() -> None:
    """Nothing is off: every function is there, and takes what ours relies on. Each feature says what it is."""
    fresh = (
        "from kernelwatch.asv import background, patches, plugin; "
        "every = [*plugin.features(), *background.features()]; "
        "assert len({f.what for f in every}) == len(every); "
        "print([patches.problem(p) for f in every for p in f.patches if patches.problem(p)])"
    )
    done = subprocess.run([sys.executable, "-c", fresh], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
    pinned = (ROOT / "requirements" / "asv.txt").read_text(encoding="utf-8")
    assert f"asv=={patches.ASV}\n" in pinned


@pytest.mark.parametrize(
    ("change", "off", "patched"),
    [
        ("", "", "True True True"),
        (
            "server = asv.runner.ForkServer; server.create_setup_cache = lambda self: None; "
            "own = *own[:2], server.create_setup_cache",
            "the measuring process, locks, records and reuse of stored numbers "
            "(asv.runner:ForkServer.create_setup_cache does not take benchmark_id)",
            "False True False",
        ),
        (
            "import asv.environment; del asv.environment.iter_matrix",
            "one compiler a run, and the Python that runs asv for its environments (there is no asv.environment:iter_",
            "True True True",
        ),
        (
            "asv.util.write_json = lambda path, data, api_version=None, compact=False: 7",
            "files of asv's that a kill leaves whole (asv.util:write_json has another source)",
            "True True True",
        ),
    ],
    ids=["as pinned", "another signature", "gone", "another source"],
)
def test_another_asv(change: str, off: str, patched: str, tmp_path: Any) -> None:
    """One line says what is switched off, and why; all that does not need the function works."""
    script = tmp_path / "changed.py"  # whose source can be read
    script.write_text(_CHANGED.format(change=change))
    done = subprocess.run([sys.executable, str(script)], cwd=ROOT, capture_output=True, text=True, check=True)
    said = [line for line in (done.stdout + done.stderr).splitlines() if "switched off" in line]
    assert [off in line for line in said] == [True] * bool(off), done.stdout + done.stderr
    assert f"patched: {patched}" in done.stdout


def test_kinds_of_functions(monkeypatch: pytest.MonkeyPatch) -> None:
    """Class methods, static ones and plain ones stay what they are; two patches of one wrap each other in order."""

    class Own:
        @classmethod
        def of_class(cls, one: int) -> Any:
            return cls, one

        @staticmethod
        def of_none(one: int) -> int:
            return one

        def plain(self, one: int) -> int:
            return one

    def adding(number: int) -> Any:
        return lambda found: lambda *args: (found(*args), number)

    monkeypatch.setitem(sys.modules, "asvs", SimpleNamespace(Asvs=Own))
    made = [
        Patch("asvs:Asvs.of_class", adding(1), "cls one"),
        Patch("asvs:Asvs.of_none", adding(1), "one"),
        Patch("asvs:Asvs.plain", adding(1), "self one"),
        Patch("asvs:Asvs.plain", adding(2), "one"),
    ]
    every, lacking = Feature("all", tuple(made)), Feature("half", (made[1], Patch("asvs:Asvs.gone", adding(3), "one")))
    asvs: Any = Own

    def given() -> tuple[Any, ...]:
        return asvs.of_class(5), asvs.of_none(5), asvs().plain(5)

    monkeypatch.setattr(log, "warning", lambda text: None)
    patched = ((Own, 5), 1), (5, 1), ((5, 1), 2)
    with patches.meanwhile([every, lacking]):
        assert given() == patched
    assert given() == ((Own, 5), 5, 5), "behind the block all is as it was"
    assert patches.install([every, lacking]) == ["half"]
    assert given() == patched, "none of a feature's is made where one does not fit"
