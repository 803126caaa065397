"""The page that is made of the comparison with other tools."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

import pytest

from experiments.peers import __main__ as command_line
from experiments.peers import data
from experiments.peers import page as pages
from experiments.peers.data import Failure
from experiments.peers.launcher import square
from experiments.peers.methods import TRUTH
from tests.experiments.test_peers import FACTS, ONE, TWO, method_time

#: Two processes each; NVBench's `seconds` come from a process with its defaults.
TIMES = [
    *(method_time(TRUTH, one, us, process) for one in (ONE, TWO) for process, us in enumerate((9.9, 10.1))),
    *(method_time("suite", one, us, process) for one in (ONE, TWO) for process, us in enumerate((10.0, 12.0))),
    method_time("nvbench_cold", TWO, 12.5),
    method_time("nvbench_cold", TWO, 12.4, seconds=4.0, defaults=True),
]
OVERVIEW = ["method", "processes", "bias at 1024², %", "spread, median, %", "largest, %", "start, s", "measure, s"]
OVERVIEW += ["seconds a configuration"]
FAILURES = [Failure("cupyx", process, "ModuleNotFoundError: No module named 'cupy'") for process in range(2)]
RUN = data.Run(FACTS, TIMES, FAILURES)


@pytest.mark.parametrize(
    ("title", "own", "truth", "value"),
    [
        ("Medians, µs", [10.0, 12.0], [], 11.0),
        ("Medians, µs", [], [10.0], None),
        ("Bias, µs", [10.0, 12.0], [9.9, 10.1], 1.0),
        ("Bias, µs", [12.5], [9.9, 10.1], 2.5),
        ("Bias, µs", [12.5], [], None),
        ("Bias, %", [10.0], [10.0], 0.0),
        ("Bias, %", [12.5], [9.9, 10.1], 0.25),
        ("Bias, %", [], [10.0], None),
        ("Spread over processes, (largest - smallest) / median, %", [10.0, 12.0], [], 2 / 11),
        ("Spread over processes, (largest - smallest) / median, %", [12.5], [10.0], None),
        ("Relative standard deviation between processes, %", [10.0, 12.0], [], 2**0.5 / 11),
        ("Relative standard deviation between processes, %", [12.5], [], None),
    ],
)
def test_figures(title: str, own: list[float], truth: list[float], value: float | None) -> None:
    """Bias against Nsight Compute, spread over processes; nothing where there are too few."""
    figure, _, _ = pages.DETAILS[title]
    assert figure(own, truth) == (None if value is None else pytest.approx(value))


def test_seconds() -> None:
    """Of fresh processes where users start them; of the method's defaults where its settings bound it."""
    assert pages.seconds_more(RUN, "suite") == pytest.approx(2 * (0.25 + 0.5))
    assert pages.seconds_more(RUN, "nvbench_cold") == pytest.approx(4.0)
    assert pages.seconds_more(data.Run(FACTS, TIMES[-2:-1], []), "nvbench_cold") is None


def test_costed() -> None:
    """The last kernel, at the sides that do not take too long; at all that there are where there are none of those."""
    sides = [256, *pages.COSTED_SIDES, 12800]
    both = [square(one.kernel, side) for side in sides for one in (ONE, TWO)]
    assert pages.costed(both) == [square(TWO.kernel, side) for side in pages.COSTED_SIDES]
    assert pages.costed(both[:2]) == [square(TWO.kernel, 256)]


def test_without_truth() -> None:
    """Where Nsight Compute did not run, the times are shown all the same."""
    run = data.Run(FACTS, [method_time("suite", ONE, 10.0)], [Failure(TRUTH, 0, "ncu is not on PATH")])
    text = pages.page(run)
    assert "- Nsight Compute, 1 process: `ncu is not on PATH`" in text
    assert [cell.strip() for cell in text.split("## Medians")[1].splitlines()[4].split("|")[1:-1]] == [
        "this suite, back to back",
        "10",
    ]


def test_with_nothing_measured() -> None:
    """The reasons are all there is."""
    assert "cupyx.profiler.benchmark, 2 processes" in pages.page(data.Run(FACTS, [], FAILURES))


def test_rendering(tmp_path: Path) -> None:
    """`--render` turns the kept data into tables; every cell of the overview is as computed."""
    kept, file = tmp_path / "peers.jsonl", tmp_path / "peers.md"
    lines = [FACTS, *map(asdict, TIMES), *map(asdict, FAILURES)]
    kept.write_text("".join(f"{json.dumps(line)}\n" for line in lines), encoding="utf-8")
    assert data.read(kept) == RUN
    assert command_line.main(["--out", str(kept), "--render", str(file)]) == 0
    text = file.read_text(encoding="utf-8")
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in text.splitlines() if line.startswith("| ")]
    assert rows[:4] == [
        OVERVIEW,
        ["Nsight Compute", "2", "truth", "2.00", "2.00", "0.25", "0.50", "0.50"],
        ["this suite, back to back", "2", "+10.0", "18.18", "18.18", "0.25", "0.50", "1.50"],
        ["NVBench, cold", "1", "+25.0", "–", "–", "0.25", "4.00", "4.00"],
    ]
    assert "A GPU (GPU-1), driver 1.2, nvcc 3.4, commit abc, 2026-01-02; cuda-bench 0.3.0." in text
    assert "- cupyx.profiler.benchmark, 2 processes: `ModuleNotFoundError: No module named 'cupy'`" in text
    assert 'In the rounds: `options=["--timeout", "2"]`; in the seconds: its defaults.' in text
