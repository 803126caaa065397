"""What a worker does for a shard: it runs asv as a process, in a clone of its own, and returns the files.

The worker does not use CUDA. asv's measuring process does, on the GPU that CUDA_VISIBLE_DEVICES names by its UUID.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import sys
import tempfile
import time
from asyncio.subprocess import PIPE, STDOUT
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

import msgspec
import pynvml

from kernelwatch import mortal, project
from kernelwatch.fleet.plan import Shard
from kernelwatch.instrument import machine
from kernelwatch.store import git
from kernelwatch.store.folders import RESULTS
from kernelwatch.store.reading import UnreadableError

#: The environment variable with the folder in which a worker keeps its clone and results.
WORK = "KERNELWATCH_FLEET"

#: Seconds without a word from asv after which its run counts as hung. Compiling everything may take 1200.
SILENCE = 1800.0


@dataclass(frozen=True)
class Outcome:
    """What a worker has measured, or what its problem was."""

    #: UUID of the GPU, or the worker's name without one.
    device: str
    #: The folder of results, by name.
    files: Mapping[str, bytes] = field(default_factory=dict)
    seconds: Annotated[float, msgspec.Meta(ge=0)] = 0.0
    problem: str = ""

    def packed(self) -> bytes:
        """Return it as it travels."""
        return msgspec.msgpack.encode(self)

    @classmethod
    def read(cls, packed: Any) -> Outcome:
        """Read what travelled. Raises UnreadableError, also of a problem."""
        try:
            found = msgspec.msgpack.decode(packed, type=cls)
        except (msgspec.MsgspecError, TypeError) as error:
            raise UnreadableError(f"what came back is no outcome: {error}") from None
        if found.problem:
            raise UnreadableError(f"{found.device}: {found.problem}")
        return found


def bundled(repository: Path) -> bytes:
    """Pack a repository, with all its branches and tags, and its HEAD."""
    # Not origin/HEAD: a bundle has a symbolic one under the name that it stands for, and git takes no name twice.
    every = git.text(repository, "for-each-ref", "--format=%(if)%(symref)%(then)%(else)%(refname)%(end)").split()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "repository.bundle")
        git.text(repository, "bundle", "create", "--quiet", str(path), "HEAD", *every)
        return path.read_bytes()


def clone(bundle: bytes, folder: Path) -> Path:
    """Return a clone in a folder, at the bundle's HEAD; what asv keeps in it stays for the next one.

    Of the branches, asv asks for "main" by name; all other commits are found by their hashes.
    """
    folder.mkdir(parents=True, exist_ok=True)
    packed = folder.with_name("repository.bundle")
    packed.write_bytes(bundle)
    git.text(folder, "init", "--quiet")
    for lock in (folder / ".git").rglob("*.lock"):  # of a worker that was killed
        lock.unlink()
    refs = "+HEAD:refs/fleet", "+refs/*:refs/*"
    git.text(folder, "fetch", "--quiet", "--prune", "--update-head-ok", str(packed), *refs)
    git.text(folder, "checkout", "--quiet", "--force", "--detach", "refs/fleet")
    return folder


def measure(shard: Shard, bundle: bytes) -> bytes:
    """Measure a shard of a repository that was `bundled`; return the outcome, packed: the driver takes only bytes.

    Raises Reschedule if the GPU is gone. The worker closes then.
    """
    from distributed import Reschedule, get_worker  # noqa: PLC0415 -- help needs no Dask

    worker = get_worker()
    name = str(worker.name)
    try:
        machine.nvml()
    except pynvml.NVMLError:
        worker.loop.add_callback(worker.close, reason="the GPU is gone")
        raise Reschedule from None
    folder, began = Path(os.environ[WORK], name), time.monotonic()
    results = folder / "results"
    try:
        checkout = clone(bundle, folder / "clone")
        shutil.rmtree(results, ignore_errors=True)  # what a killed attempt has left is not counted
        asyncio.run(run(shard, checkout, results))
        files = {str(path.relative_to(results)): path.read_bytes() for path in results.rglob("*.json*")}
    except Exception as error:  # noqa: BLE001 -- whatever it is: the driver reads no errors, which are pickles
        return Outcome(name, problem=f"{type(error).__name__}: {error}").packed()
    return Outcome(name, files, time.monotonic() - began).packed()


async def run(shard: Shard, checkout: Path, results: Path) -> list[str]:
    """Run asv over a shard; return what it said. Raises RuntimeError with its last lines."""
    patterns = [word for pattern in shard.patterns for word in ("--bench", pattern)]
    words = [sys.executable, "-m", "asv", "run", "--record-samples", *patterns, "HASHFILE:-"]
    # mortal.RUN: it ends with this worker, even if that is killed.
    told = {RESULTS: results, project.VARIABLE: checkout, mortal.RUN: os.getpid(), "PYTHONUNBUFFERED": 1}
    environment = {**os.environ, **{name: str(value) for name, value in told.items()}}
    environment.pop("PYTHONPATH", None)
    options: dict[str, Any] = {"stdin": PIPE, "stdout": PIPE, "stderr": STDOUT, "start_new_session": True}
    process = await asyncio.create_subprocess_exec(*words, cwd=checkout, env=environment, limit=1 << 24, **options)
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write("".join(f"{commit}\n" for commit in shard.commits).encode())
    process.stdin.close()
    said: list[str] = []
    try:
        while line := await asyncio.wait_for(process.stdout.readline(), SILENCE):
            said.append(line.decode(errors="replace").strip())
    except BaseException as error:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        if not isinstance(error, asyncio.TimeoutError):
            raise
        raise RuntimeError("\n".join([f"nothing was heard for {SILENCE:g} s; the last lines:", *said[-5:]])) from None
    finally:
        code = await process.wait()
    if code not in (0, 2):  # 2: some configurations failed, which is their result
        raise RuntimeError("\n".join([f"asv ended with {code}:", *said[-20:]]))
    return said
