"""Python's collection of reference cycles: paused while a kernel is prepared."""

import gc
from collections.abc import Callable

import pytest

from ptxcount.engine import executable
from ptxcount.ptx.parser import parse
from ptxcount.ptx.program import Entry, Program
from ptxcount.util.errors import LaunchError
from tests.ptxcount.snippets import module


@pytest.mark.parametrize("switch", [gc.enable, gc.disable])
def test_collection_is_paused_and_restored(switch: Callable[[], None], monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []

    def lower_calls(program: Program, entry: Entry) -> Entry:
        seen.append(gc.isenabled())
        return entry

    monkeypatch.setattr(executable, "lower_calls", lower_calls)
    was_enabled = gc.isenabled()
    switch()
    expected = gc.isenabled()
    try:
        executable.prepare_executable(parse(module("", 0)), "snippet")
        after_success = gc.isenabled()
        with pytest.raises(LaunchError):
            executable.prepare_executable(parse(module("", 0)), "missing")
        after_error = gc.isenabled()
    finally:
        (gc.enable if was_enabled else gc.disable)()
    assert (seen, after_success, after_error) == ([False], expected, expected)
