"""The plugin for asv: it names the machine after its GPU, and records the facts of each run.

asv has no hooks for any of this, so functions of asv are wrapped or replaced: `features` lists them all.
"""

from __future__ import annotations

import functools
import os
import sys
from collections.abc import Collection
from functools import partial
from pathlib import Path
from typing import Any
from unittest import mock

from asv.commands.compare import Compare
from asv.commands.publish import Publish
from asv.commands.run import Run
from asv.commands.show import Show
from asv.console import log
from asv.machine import Machine, MachineCollection
from asv.results import Results
from asv.util import UserError

from kernelwatch import home, project, scratch, suite
from kernelwatch.asv import environments, fork_server, full_disk, patches, progress, reuse
from kernelwatch.asv.patches import Feature, Patch
from kernelwatch.asv.plans import plan
from kernelwatch.errors import CompileError, KernelwatchError, NvccNotFoundError
from kernelwatch.instrument import machine, measuring
from kernelwatch.instrument.companions import IN_TURNS
from kernelwatch.store import folders, rows, samples, storing
from kernelwatch.store.results import STORED
from kernelwatch.store.run_record import RunRecord
from kernelwatch.toolchain import cache, nvcc
from kernelwatch.toolchain import releases as compilers
from kernelwatch.toolchain.nvcc_call import NvccOutput
from ptxcount import git

#: The record of the run under way, to which `Results.add_result` adds; and what it reuses.
_current: list[RunRecord] = []
_reuse: list[reuse.Reuse] = []


def setup() -> None:
    """Called by asv once the plugin is imported."""
    full_disk.install()
    git.set_environment()
    # `kernelwatch provide` of asv.conf.json is this Python's, whether its environment is activated or not.
    os.environ["PATH"] = os.pathsep.join([os.environ.get("PATH", os.defpath), str(Path(sys.executable).parent)])
    os.environ.setdefault(project.LIBRARIES, os.pathsep.join(project.libraries()))
    os.environ.setdefault("CUDA_DEVICE_ORDER", "PCI_BUS_ID")  # as NVML counts, which names the machine
    patches.install(features())
    try:
        suite.current()  # the pages ask for it at once; asv shows an error of its own in a line
    except KernelwatchError as error:
        raise UserError(str(error)) from None


def _load_machine(load: Any) -> Any:
    @functools.wraps(load)
    def wrapped(cls: type[Machine], *args: Any, machine_name: str | None = None, **kwargs: Any) -> Machine:
        """Take the GPU's name where none is given, and write an entry where none exists instead of asking."""
        device = machine.gpu()
        path = kwargs.pop("_path", None) or str(home.file(".asv-machine.json"))
        name = machine_name or cls.hardcoded_machine_name or machine.default_name(device)
        facts = machine.stable(name, device)
        cls.get_defaults = staticmethod(lambda: facts)  # what `asv machine` offers
        try:
            MachineCollection.load(name, _path=path)
        except UserError:
            MachineCollection.save(name, facts, _path=path)
        loaded: Machine = load(cls, *args, machine_name=name, _path=path, **kwargs)
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
        conf.results_dir = str(folders.written(Path(conf.results_dir)))
        if device is None:
            log.warning("No GPU here: the time_* benchmarks are skipped; everything else runs.")
            # A slice of a GPU, say, that NVML does not name: its times would go by the name of a machine without one.
            os.environ["CUDA_VISIBLE_DEVICES"] = ""
        known = kwargs.setdefault("_returns", {})
        in_turns = os.environ.get(IN_TURNS, "").split()
        with (
            storing.alone(Path(conf.results_dir)),
            scratch.of_a_run() as folder,
            # told before the fork server begins, whose environment all processes of a commit have
            mock.patch.dict(os.environ, {plan.STORED: str(folder / "stored.json")}),
            measuring.running(in_turns) as facts,
            fork_server.kept(kwargs.get("launch_method") or conf.launch_method),
        ):
            record = RunRecord(facts)
            _current.append(record)
            is_on = reuse.is_wanted(kwargs) and not in_turns
            _reuse.append(reuse.Reuse(Path(conf.results_dir), known, record, is_on=is_on))
            try:
                return run(cls, conf, *args, **kwargs)
            finally:
                _current.pop()
                _reuse.pop()
                if "machine_params" in known and not kwargs.get("dry_run"):
                    record.append_to(conf.results_dir, known["machine_params"]["machine"])

    return wrapped


def _reading_all(run: Any) -> Any:
    @functools.wraps(run)
    def wrapped(cls: type[Compare | Publish | Show], conf: Any, *args: Any, **kwargs: Any) -> Any:
        """Read the results of all machines, stored and local."""
        stored = conf.results_dir
        with (
            folders.joined(Path(stored)) as results,
            mock.patch.object(conf, STORED, stored, create=True),
            mock.patch.object(conf, "results_dir", str(results)),
        ):
            return run(cls, conf, *args, **kwargs)

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


def _of_all_places(find: Any) -> Any:
    @functools.wraps(find)
    def wrapped(results: str, *args: str) -> list[Any]:
        """Find in all places what asv looks for in one."""
        return list(dict.fromkeys(each for place in folders.places(Path(results)) for each in find(str(place), *args)))

    return wrapped


def _looked_up_once(distribution: Any) -> Any:
    """Replace the distribution of Mann-Whitney's U by one that looks up each value once: the same numbers.

    asv forgets its table at 100,000 entries, and tables for 20 + 20 samples have more: it made them anew for each
    configuration.
    """
    table: dict[tuple[int, int, int], int] = {}
    known = functools.cache(lambda m, n, u: distribution(m, n, u, table))
    return functools.wraps(distribution)(lambda m, n, u, memo=None: known(m, n, u))


def _choose_compiler() -> None:
    """Let the environments use this one's nvcc, so that they need not install their own, and all use the same."""
    compilers.use()
    try:
        compiler = nvcc.find_nvcc()
        # What has compiled once, and is the same, is not tried again.
        cache.lookup(cache.key("probe", *nvcc.programs(compiler)), lambda: NvccOutput(nvcc.probe(compiler), ""))
        os.environ.setdefault("NVCC", str(compiler))
    except NvccNotFoundError as error:
        if "NVCC" in os.environ:
            raise UserError(str(error)) from None
    except (CompileError, OSError) as error:  # reported once, here; else every configuration would be stored as failed
        raise UserError(full_disk.explained(error) or str(error)) from None


def _noted(add_result: Any) -> Any:
    @functools.wraps(add_result)
    def wrapped(self: Results, benchmark: dict[str, Any], result: Any, *args: Any, **kwargs: Any) -> Any:
        """Add what a round's processes have answered, then record it."""
        name, samples = benchmark["name"], result.samples  # of this round alone; asv adds those of earlier ones
        texts = rows.texts(benchmark.get("params", ()))
        added = add_result(self, benchmark, result, *args, **kwargs)
        for record in _current if self.commit_hash else ():  # --python=same measures no commit, and keeps nothing
            record.note(self.commit_hash, name, result.stderr, _selected(texts, kwargs.get("selected_idx")))
            taken = zip(texts, samples, strict=True) if benchmark["type"] == "time" else ()
            counts = {text.replace("'", ""): len(each) for text, each in taken if each}
            record.note_stored(self.commit_hash, name, self.started_at[name], counts)
        return added

    return wrapped


def _selected(texts: list[str], places: Collection[int] | None) -> list[str]:
    """The configurations that `--bench` has selected, as asv writes them; none if it has selected all."""
    return [] if places is None or len(places) == len(texts) else [texts[place] for place in sorted(places)]


def features() -> tuple[Feature, ...]:
    """Return every patch of asv, in the order in which they are made: of two of one function, the later is outside.

    `environments`, `fork_server` and `progress` have the functions of their own, and `background` the one of asv_runner
    in the processes of environments.
    """
    return (
        Feature(
            "machines named after their GPU",
            (Patch("asv.machine:Machine.load", _load_machine, "cls _path machine_name"),),
        ),
        Feature(
            "samples that are stored packed",  # asv calls this by this name everywhere, and the next one, too
            (Patch("asv.util:load_json", samples.unpacking, "path"),),
        ),
        Feature(
            "files of asv's that a kill leaves whole",
            (Patch("asv.util:write_json", lambda _: storing.write_json, "source 8d9e867b"),),
        ),
        *environments.features(),
        *fork_server.features(),
        Feature(
            "the measuring process, locks, records and reuse of stored numbers",
            (
                Patch("asv.commands.run:Run.run", _recorded, "cls conf machine dry_run interleave_rounds _returns"),
                Patch("asv.results:Results.add_result", _noted, "self benchmark result selected_idx"),
                Patch("asv.results:Results.remove_samples", _on_todays_axes, "self key selected_idx"),
                Patch("asv.commands.run:get_existing_hashes", _of_all_places, "results"),
                Patch(
                    "asv.commands.run:iter_results_for_machine_and_hash",
                    _of_all_places,
                    "results machine_name commit",
                ),
                Patch("asv.runner:_run_benchmark_single_param", partial(reuse.answering, _reuse), "source 52289f8c"),
                Patch("asv.runner:ForkServer.create_setup_cache", partial(reuse.preparing, _reuse), "benchmark_id"),
            ),
        ),
        Feature(
            "results of all machines, stored and local, in asv's compare and show",
            (
                Patch("asv.commands.compare:Compare.run", _reading_all, "cls conf"),
                Patch("asv.commands.show:Show.run", _reading_all, "cls conf"),
                Patch("asv.commands.publish:Publish.run", _reading_all, "cls conf"),
            ),
        ),
        Feature(
            "p-values of many samples in little time",
            (Patch("asv._stats:mann_whitney_u_cdf", _looked_up_once, "m n u memo"),),
        ),
        *progress.features(),
    )
