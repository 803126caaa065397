"""`kernelwatch run` and `kernelwatch measure`: their calls of asv, and their exit codes."""

from functools import partial
from pathlib import Path

import pytest

from kernelwatch.cli import run as command
from kernelwatch.cli import site, summary
from kernelwatch.instrument import machine


@pytest.fixture
def asv_calls(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """Return a list of asv's arguments, with a HASHFILE's content in place of its name. asv exits with 3."""
    calls: list[list[str]] = []

    def run(*words: str) -> int:
        kind, _, path = words[-1].partition(":")
        calls.append([*words[:-1], Path(path).read_text() if kind == "HASHFILE" else words[-1]])
        return 3

    monkeypatch.setattr(command, "_run_asv", run)
    return calls


@pytest.mark.usefixtures("asv_calls")
def test_measure_needs_two_commits(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        command.measure(["main", "--bench", "Blur"])
    assert "before the options of asv run; given: main --bench Blur\n" in capsys.readouterr().err


def test_measure_interleaves_two_commits(asv_calls: list[list[str]]) -> None:
    assert command.measure(["main", "HEAD", "--bench", "Blur", "-v"]) == 3
    assert asv_calls == [["run", "--interleave-rounds", "--record-samples", "--bench", "Blur", "-v", "main\nHEAD\n"]]


def _summarize(code: int, machine_name: str) -> tuple[str, int]:
    return f"{code} on {machine_name}", code


@pytest.mark.parametrize(
    ("measured", "published", "summarised", "expected"),
    [(0, 0, 0, 0), (2, 0, 0, 2), (2, 3, 0, 3), (2, 0, 1, 1)],
    ids=["all is well", "a benchmark failed", "not published", "no results"],
)
def test_run_exits_with_the_last_failure(
    measured: int, published: int, summarised: int, expected: int,
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    """Asv (2: a benchmark failed), the pages and the summary run in this order. A dry run has only asv."""
    monkeypatch.setattr(command, "_run_asv", lambda *words: measured)
    monkeypatch.setattr(site, "main", lambda words: published)
    monkeypatch.setattr(summary, "summarize", partial(_summarize, summarised))
    monkeypatch.setattr(machine, "default_name", lambda _: "here")
    assert command.run(["HEAD^!"]) == expected
    assert command.run(["HEAD^!", "--machine", "foo"]) == expected
    assert command.run(["HEAD^!", "--dry-run"]) == measured
    output = capsys.readouterr()
    assert (output.err if summarised else output.out) == f"{summarised} on here\n{summarised} on foo\n"


def test_help_begins_with_differences_to_asv(asv_calls: list[list[str]], capsys: pytest.CaptureFixture[str]) -> None:
    assert command.run(["--help"]) == 3
    first, second, *_ = capsys.readouterr().out.splitlines()
    assert "without RANGE, only HEAD is measured" in first
    assert "under --machine, by default the GPU's name, or no-gpu-ARCHITECTURE." in second
    assert "Unlike asv, --quick stores them." in second
    assert asv_calls == [["run", "--help"]]


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ([], ["HEAD^!"]),
        (["--bench", "Blur", "--durations"], ["HEAD^!", "--bench", "Blur", "--durations"]),
        (["--bench", "Blur", "NEW"], ["--bench", "Blur", "NEW"]),
        (["--python=same"], ["--python=same"]),
        (["-E", "existing:python3"], ["-E", "existing:python3"]),
    ],
)
def test_default_range_is_head(
    words: list[str], expected: list[str], asv_calls: list[list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without a range, HEAD is measured, unless asv uses an existing environment."""
    monkeypatch.setattr(site, "main", lambda words: 0)
    command.run(words)
    assert asv_calls == [["run", "--record-samples", *expected]]
