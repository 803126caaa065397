"""What a worker does for a shard: it runs asv as a process, in a clone of its own, and returns the files.

The worker does not use CUDA. asv's measuring process does, on the GPU that CUDA_VISIBLE_DEVICES names by its UUID.
"""

from __future__ import annotations

import os
import select
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import pynvml

from kernelwatch import mortal
from kernelwatch.fleet import clone
from kernelwatch.fleet.shards import Outcome, Shard
from kernelwatch.instrument import machine
from kernelwatch.store.folders import RESULTS
from kernelwatch.toolchain import cache

#: The environment variable with the folder in which a worker keeps its clone and results.
WORK = "KERNELWATCH_FLEET"

#: Where workers say what they do.
TOPIC = "fleet"

#: Seconds without a word from asv after which its run counts as hung. Compiling everything may take 1200.
SILENCE = 1800.0


class FailedError(Exception):
    """asv could not begin or end its run, or has said nothing for too long; the message has its last lines."""


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

    worker = get_worker()
    name = str(worker.name)
    if not is_there():
        worker.log_event(TOPIC, {"worker": name, "said": "the GPU is gone"})
        worker.loop.add_callback(worker.close, reason="the GPU is gone")
        raise Reschedule

    def say(line: str) -> None:
        worker.log_event(TOPIC, {"worker": name, "process": os.getpid(), "said": line})

    try:
        return _measured(shard, source, compiled, silence, Path(os.environ[WORK], name), say).packed()
    except Exception as error:  # noqa: BLE001 -- whatever it is: the driver reads no errors, which are pickles
        said = str(error) if isinstance(error, FailedError) else f"{type(error).__name__}: {error}"
        return Outcome(name, problem=said).packed()


def _measured(
    shard: Shard,
    source: clone.Source,
    compiled: Mapping[str, bytes],
    silence: float,
    folder: Path,
    say: Callable[[str], None],
) -> Outcome:
    began, stamp = time.monotonic(), time.time()
    checkout, results = clone.at(source, folder / "clone"), folder / "results"
    shutil.rmtree(results, ignore_errors=True)  # what a killed attempt has left is not counted
    give(compiled)
    run(shard, checkout, results, say, silence)
    files = {str(path.relative_to(results)): path.read_bytes() for path in results.rglob("*.json*")}
    return Outcome(folder.name, files, dict(made_since(stamp)), time.monotonic() - began)


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
    """Run asv over a shard. Raises FailedError."""
    patterns = [word for pattern in shard.patterns for word in ("--bench", pattern)]
    words = [sys.executable, "-m", "asv", "run", "--record-samples", *patterns, "HASHFILE:-"]
    # mortal.RUN: it ends with this worker, even if that is killed.
    environment = {**os.environ, RESULTS: str(results), mortal.RUN: str(os.getpid()), "PYTHONUNBUFFERED": "1"}
    environment.pop("PYTHONPATH", None)
    pipe = subprocess.PIPE
    with subprocess.Popen(
        words, cwd=checkout, env=environment, stdin=pipe, stdout=pipe, stderr=subprocess.STDOUT, start_new_session=True
    ) as process:
        assert process.stdin is not None
        with suppress(BrokenPipeError), process.stdin:  # it has ended, and says why
            process.stdin.write("".join(f"{commit}\n" for commit in shard.commits).encode())
        said: list[str] = []
        try:
            for line in _lines(process, silence):
                said.append(line)
                say(line.strip())
        except BaseException as error:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            if not isinstance(error, TimeoutError):
                raise
            last = "\n".join(said[-5:])
            raise FailedError(f"nothing was heard for {silence:g} s; the last lines:\n{last}") from None
    if process.returncode not in (0, 2):  # 2: some configurations failed, which is their result
        last = "\n".join(said[-20:])
        raise FailedError(f"asv ended with {process.returncode}:\n{last}")


def _lines(process: subprocess.Popen[bytes], silence: float) -> Iterator[str]:
    """Yield what a process says. Raises TimeoutError if it says nothing for so many seconds."""
    assert process.stdout is not None
    rest = b""
    while True:
        if not select.select([process.stdout], [], [], silence)[0]:
            raise TimeoutError
        heard = os.read(process.stdout.fileno(), 1 << 16)
        *lines, rest = (rest + heard).split(b"\n")
        yield from (line.decode(errors="replace") for line in lines)
        if not heard:
            yield from [rest.decode(errors="replace")] if rest else []
            return


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
