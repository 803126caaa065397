"""Evaluates the times of a run: medians, bias, spread and cost, and the page that shows them."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from statistics import mean, median, stdev

from experiments import facts as common
from experiments import pages
from experiments.peers.data import Run
from experiments.peers.launcher import side
from experiments.peers.methods import METHODS, TRUTH
from gpu_kernels.sweep import Launch

#: Sides at which the seconds of methods are compared: with NVBench's defaults, the smallest would take 15 s each.
COSTED_SIDES = (1024, 4096)

_TEXT = """\
Every method launches the same machine code (`{dtype}`, `{flags}`). All use the same call of cuLaunchKernel, except this
suite's own graphs. Outputs were verified first.

A round starts a fresh process for each method, which measures all configurations. asv's methods fork a process from it
for each configuration, as asv does. Rounds follow one another, so that a drift of the GPU affects all methods. If one
process serves all configurations, the later ones may take longer because of the buffers filled before: a launch of a
graph did (docs/evidence/log.md, "Not the first in its process"). This suite and asv's methods use a process for each.

- *Bias*: the median over a method's processes of each process's median, minus Nsight Compute's.
- *Spread*: the largest process minus the smallest, divided by the median.
- *Start*: the time from the start of a process to a CUDA context, with imports unless the process is forked. This
  suite's monitor runs alongside it and keeps the driver initialised.
- *Measure*: the time that a configuration then takes with the method's default settings, with buffers but without
  verification ({costed}).
- *Seconds a configuration*: the cost of one more configuration as users run it. That is *measure* alone if one process
  serves all. For asv it is two fresh processes, each with its start."""

#: Microseconds of each process by a method, and by Nsight Compute -> a figure; None where too few are known.
Figure = Callable[[Sequence[float], Sequence[float]], float | None]


def bias(own: Sequence[float], truth: Sequence[float]) -> float | None:
    """Return the median less Nsight Compute's."""
    return median(own) - median(truth) if own and truth else None


def relative_bias(own: Sequence[float], truth: Sequence[float]) -> float | None:
    """Return the bias as a share of Nsight Compute's median."""
    return (median(own) - median(truth)) / median(truth) if own and truth else None


def spread(own: Sequence[float], _: Sequence[float] = ()) -> float | None:
    """Return largest less smallest process, as a share of the median; from two processes on."""
    return (max(own) - min(own)) / median(own) if len(own) > 1 else None


#: Title -> what each cell of a table of methods and launches holds, its factor and its format.
DETAILS: dict[str, tuple[Figure, float, str]] = {
    "Medians, µs": (lambda own, _: median(own) if own else None, 1, ".4g"),
    "Bias, µs": (bias, 1, "+.3g"),
    "Bias, %": (relative_bias, 100, "+.2f"),
    "Spread over processes, (largest - smallest) / median, %": (spread, 100, ".2f"),
    "Relative standard deviation between processes, %": (
        lambda own, _: stdev(own) / mean(own) if len(own) > 1 else None,
        100,
        ".2f",
    ),
}


def costed(launches: Sequence[Launch]) -> list[Launch]:
    """Return those by which the seconds of methods are compared: of the last kernel, at COSTED_SIDES if it has them."""
    last = [*dict.fromkeys(launch.kernel for launch in launches)][-1:]
    own = [launch for launch in launches if launch.kernel in last]
    return [launch for launch in own if side(launch) in COSTED_SIDES] or own


def _launches(run: Run) -> list[Launch]:
    """Return all that were measured, smallest sides first, kernels in the order of the times."""
    return sorted(dict.fromkeys(launch for _, launch in run.us), key=side)


def _methods(run: Run) -> list[str]:
    """Return those that measured something, in the order of their table."""
    return [name for name in METHODS if any(name == method for method, _ in run.us)]


def start(run: Run, method: str) -> float:
    """Return the median seconds from the start of a process to a context."""
    return median(time.start for time in run.times if time.method == method)


def measure(run: Run, method: str) -> float | None:
    """Return the seconds that a launch takes in a process, with the method's defaults: mean over those costed."""
    defaults, wanted = bool(run.facts["settings"].get(method)), costed(_launches(run))
    seconds: dict[Launch, list[float]] = {}
    for time in run.times:
        if time.method == method and time.defaults == defaults and time.launch in wanted:
            seconds.setdefault(time.launch, []).append(time.seconds)
    return mean(map(median, seconds.values())) if seconds else None


def seconds_more(run: Run, method: str) -> float | None:
    """Return the seconds of one more launch as users of the method run it, in fresh processes where they do."""
    each, processes = measure(run, method), METHODS[method].processes
    return processes * (start(run, method) + each) if processes and each is not None else each


def _cell(value: float | None, factor: float, form: str) -> str:
    return "–" if value is None else format(value * factor, form)


def _over(function: Callable[[list[float]], float], values: Iterable[float | None], form: str) -> str:
    """Return a function of the values that are known, in percent."""
    known = [value for value in values if value is not None]
    return _cell(function(known) if known else None, 100, form)


def _table(heads: list[str], rows: list[list[str]]) -> str:
    return pages.table(rows, heads, ["left", *["right"] * (len(heads) - 1)])


def _overview(run: Run) -> str:
    """Return a table with a row a method: bias by side, spread, seconds."""
    launches = _launches(run)
    sides = list(dict.fromkeys(map(side, launches)))
    heads = ["method", "processes", *(f"bias at {rows}², %" for rows in sides)]
    heads += ["spread, median, %", "largest, %", "start, s", "measure, s", "seconds a configuration"]
    body = []
    for method in _methods(run):
        us = {launch: run.us.get((method, launch), []) for launch in launches}
        cells = [METHODS[method].title, str(max(map(len, us.values())))]
        for rows in sides:
            biases = (relative_bias(us[one], run.us.get((TRUTH, one), [])) for one in launches if side(one) == rows)
            cells.append("truth" if method == TRUTH else _over(median, biases, "+.1f"))
        spreads = list(map(spread, us.values()))
        cells += [_over(median, spreads, ".2f"), _over(max, spreads, ".2f")]
        body.append([*cells, *(_cell(seconds(run, method), 1, ".2f") for seconds in (start, measure, seconds_more))])
    return _table(heads, body)


def _detail(run: Run, figure: Figure, factor: float, form: str) -> str:
    """Return a table with a row a method, a column a launch."""
    launches = _launches(run)
    body = []
    for method in _methods(run):
        found = (figure(run.us.get((method, one), []), run.us.get((TRUTH, one), [])) for one in launches)
        body.append([METHODS[method].title, *(_cell(each, factor, form) for each in found)])
    return _table(["method", *(f"{_short(one.kernel)} {side(one)}²" for one in launches)], body)


def _short(kernel: str) -> str:
    return kernel.removeprefix("transpose_").replace("_coalesced", "").replace("_", "+", 1).replace("_", " ")


def _costed(run: Run) -> str:
    chosen = costed(_launches(run))
    kernel = chosen[0].kernel if chosen else "–"
    return f"`{kernel}`, mean over {', '.join(f'{side(one)}²' for one in chosen)}"


def _settings(run: Run, method: str) -> str:
    settings = run.facts["settings"].get(method) or {}
    shown = ", ".join(f"{name}={json.dumps(value)}" for name, value in settings.items())
    return f" In the rounds: `{shown}`; in the seconds: its defaults." if shown else ""


def _failures(run: Run) -> Iterator[str]:
    """Yield each reason once, with how often."""
    for (method, error), count in Counter((failure.method, failure.error) for failure in run.failures).items():
        yield f"- {METHODS[method].title}, {count} {'process' if count == 1 else 'processes'}: `{error}`"


def page(run: Run) -> str:
    """Return all tables, and what they mean."""
    return "\n".join(_lines(run)) + "\n"


def _lines(run: Run) -> Iterator[str]:
    versions = ", ".join(f"{name} {version}" for name, version in run.facts["versions"].items() if version)
    yield f"""\
# The same kernels timed by other tools

{pages.made("peers")}.

{common.sentence(run.facts)}; {versions}.

{_overview(run)}

The bias in this table is the median over the kernels.

{_TEXT.format(**run.facts, costed=_costed(run))}"""
    if run.failures:
        yield from ("", "## Not measured", "", *_failures(run))
    for title, (figure, factor, form) in DETAILS.items():
        yield from ("", f"## {title}", "", _detail(run, figure, factor, form))
    yield from ("", "## What each method does", "")
    for method in _methods(run):
        yield f"- **{METHODS[method].title}**: {METHODS[method].text}{_settings(run, method)}"
