"""The comparison with other tools, without a GPU; `tests/gpu` calls the tools themselves."""

from __future__ import annotations

import os
import time

import pytest

from experiments import nsight, peers


def test_bias(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """Medians over samples, then over kernels; what fails, dies or hangs has a line, and the others go on."""
    tools = {
        "works": lambda launch: [1.0, launch.arguments["rows"] * 3.0, 9999.0],
        "raises": lambda _: int("three"),
        "dies": lambda _: os._exit(5),
        "waits": lambda _: time.sleep(60),
    }
    monkeypatch.setattr(peers, "TOOLS", tools)
    monkeypatch.setattr(peers, "SIDES", (4, 8))
    monkeypatch.setattr(peers, "LIMIT", 0.5)
    monkeypatch.setattr(nsight, "seconds", lambda launches: [[1.0, 8.0, 9.0], [10.0], [12.0]])
    found = list(peers.measure(list(tools)))
    assert [(each["tool"], each["side"], each["seconds"]) for each in found] == [
        ("works", 4, [12.0] * 3),
        ("works", 8, [24.0] * 3),
    ]
    assert [round(each["bias, %"], 6) for each in found] == [20.0, 140.0]
    assert "| works  |      4 |     20.00 |" in peers.report(found)
    said = capsys.readouterr().err
    for line in ("raises at 4²: ValueError: invalid literal", "dies at 8²: TimeoutError", "waits at 4²: TimeoutError"):
        assert line in said
