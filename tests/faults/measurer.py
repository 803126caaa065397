"""A process that measures a commit with asv's own `run_benchmarks`."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from asv import runner as asv_runner
from asv import util
from asv.benchmarks import Benchmarks
from asv.results import Results
from asv.runner import ForkServer

from kernelwatch.asv import plugin as asv_plugin
from kernelwatch.store import folders

MACHINE, COMMIT, ENVIRONMENT = "m", "c0ffee" * 6 + "c0ff", "virtualenv-py3"
RESULT = f"{MACHINE}/{COMMIT[:8]}-{ENVIRONMENT}.json"
#: A line each time that a configuration was measured to its end.
MEASURED = "measured"
#: As asv describes them; two rounds, so that each of seven configurations has two processes.
BENCHMARKS = {
    name: {
        "name": name,
        "version": "1",
        "type": "time",
        "params": [[f"'{n}'" for n in range(count)]],
        "param_names": ["n"],
        "rounds": 2,
        "timeout": 60,
    }
    for name, count in {"time_a.A.time": 4, "time_b.B.time": 3}.items()
}


class _Server(ForkServer):  # type: ignore[misc]
    """Asv's fork server without processes."""

    def __init__(self, env: Any, _: str) -> None:
        self.env, self.interrupted = env, False

    def preimport(self) -> tuple[bool, str]:
        """Nothing to import."""
        return True, ""

    def close(self) -> None:
        """Nothing to end."""


def _measured(folder: Path, seconds: float) -> Callable[..., tuple[str, int]]:
    """Stand for `ForkServer.run`: each process has samples of its own, by how often it was asked before."""

    def run(self: ForkServer, **asked: Any) -> tuple[str, int]:
        self.measure()
        time.sleep(seconds)
        with (folder / MEASURED).open("a") as file:
            file.write(f"{asked['name']}\n")
        Path(asked["result_file_name"]).write_text(json.dumps({"samples": [1.0, 2.0, 4.0], "number": 1}))
        return "", 0

    return run


class _Run:
    """Stands for asv's `Run`: of `asv run`, what comes once the commit is installed."""

    @classmethod
    def run(cls, conf: Any, *, _returns: dict[str, Any], **_: Any) -> None:
        """Measure the commit."""
        _returns["machine_params"] = {"machine": MACHINE}
        util.write_json(str(Path(conf.results_dir, MACHINE, "machine.json")), {"machine": MACHINE}, 1)
        results = Results({"machine": MACHINE}, {}, COMMIT, 0, "3", ENVIRONMENT, {})
        results.load_data(conf.results_dir)
        env = SimpleNamespace(name=ENVIRONMENT, installed_commit_hash=COMMIT)
        benchmarks = Benchmarks(SimpleNamespace(benchmark_dir=""), list(BENCHMARKS.values()))
        asv_runner.run_benchmarks(benchmarks, env, results=results, record_samples=True, launch_method="forkserver")
        results.save(conf.results_dir)


def run(folder: Path, seconds: float = 0.0) -> None:
    """Measure the commit as `make history` does."""
    ForkServer.measure = lambda _: None
    ForkServer.run = _measured(folder, seconds)
    asv_runner.ForkServer = _Server
    asv_plugin.setup()
    asv_plugin._choose_compiler = lambda: None
    os.environ |= {folders.RESULTS: str(folder)}
    recorded = asv_plugin._recorded(_Run.run.__func__)  # type: ignore[attr-defined]
    recorded(_Run, SimpleNamespace(results_dir=str(folder)), machine=MACHINE)
