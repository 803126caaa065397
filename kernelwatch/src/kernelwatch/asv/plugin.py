"""The plugin for asv: it names the machine after its GPU, and records the facts of each run.

Without a GPU, asv would start a process for each timed configuration, only to skip it. The plugin starts one for each
benchmark. asv has no hooks for any of this, so methods of asv are wrapped or replaced. That is why asv is pinned.
"""

from __future__ import annotations

import functools
import inspect
import itertools
import os
import sys
from collections.abc import Collection
from pathlib import Path
from typing import Any
from unittest import mock

from asv import _stats, environment, util
from asv.commands import run as asv_run
from asv.commands.compare import Compare
from asv.commands.run import Run
from asv.commands.show import Show
from asv.console import log
from asv.machine import Machine, MachineCollection
from asv.plugins.virtualenv import Virtualenv
from asv.results import Results
from asv.runner import ForkServer
from asv.util import UserError

from kernelwatch.asv import full_disk, progress, reuse, scratch, steady
from kernelwatch.errors import CompileError, NvccNotFoundError
from kernelwatch.instrument import machine, measuring, messages
from kernelwatch.instrument.companions import IN_TURNS
from kernelwatch.store import folders, journal, storing
from kernelwatch.store.record import RunRecord
from kernelwatch.toolchain import cache, nvcc
from kernelwatch.toolchain import releases as compilers

#: The record of the run under way, to which `Results.add_result` adds; and what it reuses.
_current: list[RunRecord] = []
_reuse: list[reuse.Reuse] = []


def setup() -> None:
    """Called by asv once the plugin is imported."""
    full_disk.install()
    os.environ.setdefault("CUDA_DEVICE_ORDER", "PCI_BUS_ID")  # as NVML counts, which names the machine
    # Machine.load and Run.run are class methods: the function behind them is wrapped and bound again.
    Machine.load = classmethod(_load_machine(Machine.load.__func__))
    Run.run = classmethod(_recorded(Run.run.__func__))
    for command in (Compare, Show):
        command.run = classmethod(_reading_all(command.run.__func__))
    steady.install()
    _stats.mann_whitney_u_cdf = _looked_up_once(_stats.mann_whitney_u_cdf)
    Results.add_result = _noted(Results.add_result)
    Results.load_data = _from_any_place(Results.load_data)
    Results.remove_samples = _on_todays_axes(Results.remove_samples)
    asv_run.get_existing_hashes = _of_all_places(asv_run.get_existing_hashes)
    journal.install()
    ForkServer.run = _asking_once(ForkServer.run)
    reuse.install(_reuse)
    environment.iter_matrix = _one_compiler(environment.iter_matrix)
    Virtualenv._find_python = staticmethod(_this_python(Virtualenv._find_python))
    is_this_version = util.env_py_is_sys_version  # which `asv profile` asks, and finds no environment otherwise
    util.env_py_is_sys_version = lambda python: python == "3" or is_this_version(python)
    util.write_json = storing.write_json  # asv calls it by this name everywhere
    progress.install()


def _one_compiler(iter_matrix: Any) -> Any:
    @functools.wraps(iter_matrix)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        """Leave one of the watched compilers: a run has one."""
        compilers.use()
        return compilers.one_of_the_matrix(iter_matrix(*args, **kwargs))

    return wrapped


def _this_python(find: Any) -> Any:
    @functools.wraps(find)
    def wrapped(python: str) -> str | None:
        """Take "3", of asv.conf.json, for the Python that runs asv, whatever stands first on PATH."""
        found: str | None = sys.executable if python == "3" else find(python)
        return found

    return wrapped


def _load_machine(load: Any) -> Any:
    @functools.wraps(load)
    def wrapped(cls: type[Machine], *args: Any, machine_name: str | None = None, **kwargs: Any) -> Machine:
        """Take the GPU's name where none is given, and write an entry where none exists instead of asking."""
        device = machine.gpu()
        name = machine_name or cls.hardcoded_machine_name or machine.default_name(device)
        path = kwargs.get("_path")
        facts = machine.stable(name, device)
        cls.get_defaults = staticmethod(lambda: facts)  # what `asv machine` offers
        storing.set_aside(Path(path or MachineCollection.get_machine_file_path()))
        try:
            MachineCollection.load(name, _path=path)
        except UserError:
            MachineCollection.save(name, facts, _path=path)
        loaded: Machine = load(cls, *args, machine_name=name, **kwargs)
        return loaded

    return wrapped


def _recorded(run: Any) -> Any:
    @functools.wraps(run)
    def wrapped(cls: type[Run], conf: Any, *args: Any, **kwargs: Any) -> Any:
        """Lock the results, read the machine's facts before and after the run, and append them there."""
        _choose_compiler()
        unkept = cache.problem()
        if unkept is not None:
            log.warning(unkept)
        device = machine.gpu()
        name = kwargs.get("machine") or Machine.hardcoded_machine_name or machine.default_name(device)
        conf.results_dir = str(folders.written(Path(conf.results_dir)))
        if device is None:
            log.warning("No GPU here: the time_* benchmarks are skipped; everything else runs.")
            # A slice of a GPU, say, that NVML does not name: its times would go by the name of a machine without one.
            os.environ["CUDA_VISIBLE_DEVICES"] = ""
        known = kwargs.setdefault("_returns", {})
        in_turns = os.environ.get(IN_TURNS, "").split()
        with storing.alone(Path(conf.results_dir)), scratch.of_a_run(), measuring.running(in_turns) as facts:
            record = RunRecord(facts)
            _current.append(record)
            is_on = reuse.is_wanted(kwargs) and not in_turns
            _reuse.append(reuse.Reuse(Path(conf.results_dir), known, record, is_on=is_on))
            try:
                with journal.of_a_run(Path(conf.results_dir, name), record, in_turns, kwargs):
                    return run(cls, conf, *args, **kwargs)
            finally:
                _current.pop()
                _reuse.pop()
                if "machine_params" in known and not kwargs.get("dry_run"):
                    record.append_to(conf.results_dir, known["machine_params"]["machine"])

    return wrapped


def _reading_all(run: Any) -> Any:
    @functools.wraps(run)
    def wrapped(cls: type[Compare | Show], conf: Any, *args: Any, **kwargs: Any) -> Any:
        """Read the results of all machines, stored and local."""
        with folders.joined(Path(conf.results_dir)) as results, mock.patch.object(conf, "results_dir", str(results)):
            return run(cls, conf, *args, **kwargs)

    return wrapped


def _from_any_place(load: Any) -> Any:
    @functools.wraps(load)
    def wrapped(self: Results, results: str) -> None:
        """Begin with all that is known of a commit, so that a run of some configurations keeps the others."""
        with folders.known(Path(results), self._filename) as path:
            load(self, str(path.parents[1]))

    return wrapped


def _on_todays_axes(remove: Any) -> Any:
    @functools.wraps(remove)
    def wrapped(self: Results, key: str, selected_idx: Collection[int] | None = None) -> None:
        """Lay out on today's axes what is stored of a commit: asv counts its places there, and axes may have grown."""
        asked = _reuse[-1].asked(key) if _reuse and key in self._results else None
        if asked and asked["params"] != self._benchmark_params[key]:
            read = (self.get_result_value, self.get_result_samples, self.get_result_stats)
            values, samples, stats = (each(key, asked["params"]) for each in read)
            self._results[key], self._samples[key], self._stats[key] = values, samples, stats
            self._benchmark_params[key] = asked["params"]
        remove(self, key, selected_idx)

    return wrapped


def _of_all_places(hashes: Any) -> Any:
    @functools.wraps(hashes)
    def wrapped(results: str) -> list[str]:
        return list({commit for place in folders.places(Path(results)) for commit in hashes(str(place))})

    return wrapped


def _looked_up_once(distribution: Any) -> Any:
    """Replace the distribution of Mann-Whitney's U by one that looks up each value once: the same numbers.

    asv forgets its table at 100,000 entries, and tables for 20 + 20 samples have more: it made them anew for each
    configuration.
    """
    taken = list(inspect.signature(distribution).parameters)
    assert taken == ["m", "n", "u", "memo"], f"asv's mann_whitney_u_cdf takes {taken}: see whether this is needed still"
    table: dict[tuple[int, int, int], int] = {}
    known = functools.cache(lambda m, n, u: distribution(m, n, u, table))
    return functools.wraps(distribution)(lambda m, n, u, memo=None: known(m, n, u))


def _choose_compiler() -> None:
    """Let the environments use this one's nvcc, so that they need not install their own, and all use the same."""
    compilers.use()
    try:
        compiler = nvcc.find_nvcc()
        nvcc.probe(compiler)
        os.environ.setdefault("NVCC", str(compiler))
    except NvccNotFoundError as error:
        if "NVCC" in os.environ:
            raise UserError(str(error)) from None
    except (CompileError, OSError) as error:  # reported once, here; else every configuration would be stored as failed
        raise UserError(full_disk.explained(error, full_disk.places()) or str(error)) from None


def _noted(add_result: Any) -> Any:
    @functools.wraps(add_result)
    def wrapped(self: Results, benchmark: dict[str, Any], result: Any, *args: Any, **kwargs: Any) -> Any:
        """Add what a round's processes have answered, then record it."""
        name, samples = benchmark["name"], result.samples  # of this round alone; asv adds those of earlier ones
        added = add_result(self, benchmark, result, *args, **kwargs)
        for record in _current if self.commit_hash else ():  # --python=same measures no commit, and keeps nothing
            record.note(self.commit_hash, name, result.stderr, _selected(benchmark, kwargs.get("selected_idx")))
            each = max(map(len, filter(None, samples)), default=0) if benchmark["type"] == "time" else 0
            record.note_stored(self.commit_hash, name, self.started_at[name], each)
        return added

    return wrapped


def _selected(benchmark: dict[str, Any], places: Collection[int] | None) -> list[str]:
    """The configurations that `--bench` has selected, as asv writes them; none if it has selected all."""
    texts = list(map(", ".join, itertools.product(*benchmark.get("params", ()))))
    return [] if places is None or len(places) == len(texts) else [texts[place] for place in sorted(places)]


def _asking_once(run: Any) -> Any:
    @functools.wraps(run)
    def wrapped(self: ForkServer, **asked: Any) -> tuple[str, int]:
        """Run one process of a benchmark. If it reports that there is no device, its answer is that of all others."""
        answers: dict[str, tuple[str, str]] = vars(self).setdefault("without_device", {})
        benchmark = asked["name"].partition("-")[0]  # the rest is the number of the configuration
        result = Path(asked["result_file_name"])
        if benchmark in answers:
            said, skipped = answers[benchmark]
            result.write_text(skipped, encoding="utf-8")
            return said, 0
        said, code = run(self, **asked)
        if code == 0 and messages.says_no_device(said) and machine.gpu() is None:
            answers[benchmark] = said, result.read_text(encoding="utf-8")
        return said, code

    return wrapped
