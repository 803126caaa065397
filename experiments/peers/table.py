"""The tables of a run as Markdown."""

from __future__ import annotations

import json
import statistics
from collections.abc import Callable, Iterator

from tabulate import tabulate

from experiments import facts as common
from experiments.peers.configurations import Configuration
from experiments.peers.data import Run
from experiments.peers.methods import METHODS, TRUTH
from experiments.peers.summary import Summary

_NOTHING = "–"

Figure = Callable[[Summary, str, Configuration], float | None]

#: Title -> what each cell of a table of methods and configurations holds, its factor and its format.
DETAILS: dict[str, tuple[Figure, float, str]] = {
    "Medians, µs": (Summary.median, 1, ".4g"),
    "Bias, µs": (Summary.bias, 1, "+.3g"),
    "Bias, %": (Summary.relative_bias, 100, "+.2f"),
    "Spread over processes, (largest - smallest) / median, %": (Summary.spread, 100, ".2f"),
    "Relative standard deviation between processes, %": (Summary.deviation, 100, ".2f"),
}

_TEXT = """\
Every method launches the same machine code (`{dtype}`, `{flags}`), and all but this suite's own graphs do so by the
same call of cuLaunchKernel; outputs were verified first. A round starts a fresh process of each method, which measures
all configurations; asv's methods fork a process from it for each, as asv does. Rounds follow one another, so that a
drift of the GPU meets all methods alike. Where one process serves all configurations, those after its first may take
longer for the buffers that it filled before: a launch of a graph did (docs/measurements.md, "Not the first in its
process"). This suite and asv's methods have a process for each. *Bias*: a method's median over its processes of each
process's median, less Nsight Compute's. *Spread*: largest less smallest process, over the median.

*Start*: from the start of a process to a context, imports included where none is forked; for this suite beside its
monitor, which keeps the driver awake in all of its runs. *Measure*: what a configuration then takes with the method's
own default settings, buffers included, verification not ({costed}).
*Seconds a configuration*: what one more costs as its users run it: measure alone where one process serves all; for asv
two fresh processes, each with its start."""


def _cell(value: float | None, factor: float, form: str) -> str:
    return _NOTHING if value is None else format(value * factor, form)


def _table(headers: list[str], body: list[list[str]]) -> str:
    align = ["left", *["right"] * (len(headers) - 1)]
    return str(tabulate(body, headers=headers, tablefmt="github", disable_numparse=True, colalign=align))


def _overview(summary: Summary) -> str:
    """A row a method: bias by side, spread, seconds."""
    headers = ["method", "processes", *(f"bias at {side}², %" for side in summary.sides)]
    headers += ["spread, median, %", "largest, %", "start, s", "measure, s", "seconds a configuration"]
    body = []
    for method in summary.methods:
        spreads = _known(summary.spread(method, one) for one in summary.configurations)
        cells = [METHODS[method].title, str(summary.processes(method))]
        cells += ["truth" if method == TRUTH else _bias_at(summary, method, side) for side in summary.sides]
        cells += [_cell(function(spreads) if spreads else None, 100, ".2f") for function in (statistics.median, max)]
        cells += [_cell(summary.start(method), 1, ".2f"), _cell(summary.measure(method), 1, ".2f")]
        body.append([*cells, _cell(summary.seconds(method), 1, ".2f")])
    return _table(headers, body)


def _bias_at(summary: Summary, method: str, side: int) -> str:
    """The median over the kernels."""
    biases = _known(summary.relative_bias(method, one) for one in summary.configurations if one.side == side)
    return _cell(statistics.median(biases) if biases else None, 100, "+.1f")


def _known(values: Iterator[float | None]) -> list[float]:
    return [value for value in values if value is not None]


def _detail(summary: Summary, figure: Figure, factor: float, form: str) -> str:
    """A row a method, a column a configuration."""
    headers = ["method", *(f"{_short(one.kernel)} {one.side}²" for one in summary.configurations)]
    body = [
        [METHODS[method].title, *(_cell(figure(summary, method, one), factor, form) for one in summary.configurations)]
        for method in summary.methods
    ]
    return _table(headers, body)


def _short(kernel: str) -> str:
    return kernel.removeprefix("transpose_").replace("_coalesced", "").replace("_", "+", 1).replace("_", " ")


def _costed(summary: Summary) -> str:
    kernel = next((one.kernel for one in summary.costed), _NOTHING)
    return f"`{kernel}`, mean over {', '.join(f'{one.side}²' for one in summary.costed)}"


def _settings(run: Run, method: str) -> str:
    settings = run.facts["settings"].get(method)
    shown = ", ".join(f"{name}={json.dumps(value)}" for name, value in (settings or {}).items())
    return f" In the rounds: `{shown}`; in the seconds: its defaults." if shown else ""


def _failures(run: Run) -> Iterator[str]:
    """Each reason once, with how often."""
    counts: dict[tuple[str, str], int] = {}
    for failure in run.failures:
        counts[failure.method, failure.error] = counts.get((failure.method, failure.error), 0) + 1
    for (method, error), count in counts.items():
        yield f"- {METHODS[method].title}, {count} {'process' if count == 1 else 'processes'}: `{error}`"


def render(run: Run) -> str:
    """All tables, and what they mean."""
    return "\n".join(_lines(run, Summary(run))) + "\n"


def _lines(run: Run, summary: Summary) -> Iterator[str]:
    facts = run.facts
    versions = ", ".join(f"{name} {version}" for name, version in facts["versions"].items() if version)
    yield "# The same kernels timed by other tools"
    yield ""
    yield "Measured by `python -m experiments.peers`, kept in docs/peers.jsonl, written by `--render docs/peers.md`."
    yield ""
    yield f"{common.sentence(facts)}; {versions}."
    yield ""
    yield _overview(summary)
    yield ""
    yield "Bias here: the median over the kernels."
    yield ""
    yield _TEXT.format(**facts, costed=_costed(summary))
    if run.failures:
        yield from ("", "## Not measured", "", *_failures(run))
    for title, (figure, factor, form) in DETAILS.items():
        yield from ("", f"## {title}", "", _detail(summary, figure, factor, form))
    yield from ("", "## What each method does", "")
    for method in summary.methods:
        yield f"- **{METHODS[method].title}**: {METHODS[method].text}{_settings(run, method)}"
