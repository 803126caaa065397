"""What a worker does for a shard: it runs asv as a process, in a clone of its own, and returns the files.

The worker does not use CUDA. asv's measuring process does, on the GPU that CUDA_VISIBLE_DEVICES names by its UUID.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pynvml

from gpu_kernels import cache
from kernelwatch import mortal
from kernelwatch.fleet import clone
from kernelwatch.fleet.shards import Outcome, Shard
from kernelwatch.instrument import machine
from kernelwatch.store.folders import RESULTS

#: The environment variable with the folder in which a worker keeps its clone and results.
WORK = "COALESCING_WATCH_FLEET"

#: Where workers say what they do.
TOPIC = "fleet"

#: Seconds without a word from asv after which its run counts as hung. Compiling everything may take 1200.
SILENCE = 1800.0

#: How often a run that has come to nothing is tried again.
RETRIES = 2


class HungError(Exception):
    """asv has said nothing for too long."""


class FailedError(Exception):
    """asv could not begin or end its run; the message has its last lines."""


def measure(shard: Shard, source: clone.Source, compiled: Mapping[str, bytes], silence: float = SILENCE) -> bytes:
    """Measure a shard; return its outcome, packed: the driver takes nothing but bytes.

    Parameters
    ----------
    shard : Shard
        What.
    source : Source
        The repository.
    compiled : mapping of str to bytes
        Entries for the cache of compiled kernels.
    silence : float
        Seconds without a word from asv that are too long.

    Raises
    ------
    Reschedule
        The GPU is gone. The worker closes.
    """
    from distributed import Reschedule, get_worker  # noqa: PLC0415 -- help needs no Dask

    for _ in range(1 + RETRIES):
        try:
            return _measured(shard, source, compiled, silence).packed()
        except Reschedule:
            raise
        except (HungError, FailedError) as error:
            problem = str(error)
        except Exception as error:  # noqa: BLE001 -- whatever it is: the driver reads no errors, which are pickles
            problem = f"{type(error).__name__}: {error}"
    return Outcome(str(get_worker().name), problem=problem).packed()


def _measured(shard: Shard, source: clone.Source, compiled: Mapping[str, bytes], silence: float) -> Outcome:
    from distributed import Reschedule, get_worker  # noqa: PLC0415 -- help needs no Dask

    worker = get_worker()
    device = os.environ.get("CUDA_VISIBLE_DEVICES") or str(worker.name)
    if not is_there():
        worker.log_event(TOPIC, {"worker": device, "said": "the GPU is gone"})
        worker.loop.add_callback(worker.close, reason="the GPU is gone")
        raise Reschedule
    began, stamp = time.monotonic(), time.time()
    folder = Path(os.environ[WORK], str(worker.name))
    checkout = clone.at(source, folder / "clone")
    results = folder / "results"
    shutil.rmtree(results, ignore_errors=True)  # what a killed attempt has left is not counted
    give(compiled)
    what = f"{shard.size} times" if shard.size else ", ".join(commit[:8] for commit in shard.commits)

    def say(line: str) -> None:
        worker.log_event(TOPIC, {"worker": device, "process": os.getpid(), "said": f"{what}: {line}"})

    run(shard, checkout, results, say, silence)
    files = {str(path.relative_to(results)): path.read_bytes() for path in results.rglob("*.json*")}
    return Outcome(device, files, dict(made_since(stamp)), time.monotonic() - began)


def given(what: Any) -> Any:
    """Return what travels to the workers: as a task of its own, it is sent to each of them once."""
    return what


def is_there() -> bool:
    """Whether the worker's GPU answers; true of a worker that has none."""
    try:
        machine.nvml()
    except pynvml.NVMLError:
        return False
    return True


def run(shard: Shard, checkout: Path, results: Path, say: Callable[[str], None], silence: float) -> None:
    """Run asv over a shard. Raises as `measure`."""
    patterns = [word for pattern in shard.patterns for word in ("--bench", pattern)]
    words = [sys.executable, "-m", "asv", "run", "--record-samples", *patterns, "HASHFILE:-"]
    # mortal.RUN: it ends with this worker, even if that is killed.
    environment = {**os.environ, RESULTS: str(results), mortal.RUN: str(os.getpid()), "PYTHONUNBUFFERED": "1"}
    environment.pop("PYTHONPATH", None)
    said: list[str] = []
    with subprocess.Popen(
        words,
        cwd=checkout,
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    ) as process:
        assert process.stdin is not None
        with suppress(BrokenPipeError), process.stdin:  # it has ended, and says why
            process.stdin.write("".join(f"{commit}\n" for commit in shard.commits))
        with _watched(process, silence) as heard:
            assert process.stdout is not None
            for line in process.stdout:
                heard()
                said.append(line)
                say(line.strip())
    if process.returncode == -signal.SIGKILL:
        raise HungError(f"nothing was heard for {silence:g} s; the last lines:\n{''.join(said[-5:])}")
    if process.returncode not in (0, 2):  # 2: some configurations failed, which is their result
        raise FailedError(f"asv ended with {process.returncode}:\n{''.join(said[-20:])}")


@contextmanager
def _watched(process: subprocess.Popen[str], silence: float) -> Iterator[Callable[[], None]]:
    """Kill a process and its children unless what is yielded is called at least every so many seconds."""
    timers: list[threading.Timer] = []

    def kill() -> None:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)

    def heard() -> None:
        while timers:
            timers.pop().cancel()
        timers.append(threading.Timer(silence, kill))
        timers[-1].daemon = True
        timers[-1].start()

    heard()
    try:
        yield heard
    finally:
        timers.pop().cancel()
        if process.poll() is None and sys.exc_info()[0] is not None:
            kill()


def made_since(stamp: float) -> Iterator[tuple[str, bytes]]:
    """Yield the entries of the cache of compiled kernels that are newer, by name."""
    for path in cache.directory().glob("??/*.json"):
        if path.stat().st_mtime >= stamp:
            yield f"{path.parent.name}/{path.name}", path.read_bytes()


def give(compiled: Mapping[str, bytes]) -> None:
    """Put entries into the cache of compiled kernels that it lacks: their names say what they hold."""
    for name, content in compiled.items():
        path = cache.directory() / name
        if not path.exists():
            path.parent.mkdir(parents=True, exist_ok=True)
            unfinished = path.with_name(f"{path.name}.{os.getpid()}.tmp")
            unfinished.write_bytes(content)
            unfinished.replace(path)
