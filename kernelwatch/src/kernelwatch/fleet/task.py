"""What a worker does for a commit: it runs asv in a clone of its own, and returns the files that are new.

The worker does not use CUDA. asv's measuring process does, on the GPU that CUDA_VISIBLE_DEVICES names.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import msgspec
import pynvml

from kernelwatch.config import project_root
from kernelwatch.error_text import one_line
from kernelwatch.instrument import machine, parent_death
from kernelwatch.store import git
from kernelwatch.store.folders import RESULTS

#: The environment variables that tell a worker its folder, and the cores that its runs may use.
WORK, CORES = "KERNELWATCH_FLEET", "KERNELWATCH_FLEET_CORES"

#: Files of results/ that belong to no commit.
SHARED = ("benchmarks.json", "machine.json")

#: Seconds after which the run of a commit counts as hung.
LONGEST = 3600.0


class Outcome(msgspec.Struct):
    """What a worker has measured: the new files of results/ by name, and the seconds that it took."""

    worker: str
    files: dict[str, bytes]
    seconds: float


def bundled(repository: Path) -> bytes:
    """Pack a repository, with all its branches and tags, and its HEAD."""
    # Not origin/HEAD: a bundle has a symbolic one under the name that it stands for, and git takes no name twice.
    every = git.text(repository, "for-each-ref", "--format=%(if)%(symref)%(then)%(else)%(refname)%(end)").split()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "repository.bundle")
        git.text(repository, "bundle", "create", "--quiet", str(path), "HEAD", *every)
        return path.read_bytes()


def clone(bundle: bytes, folder: Path) -> Path:
    """Return a clone in a folder, at the bundle's HEAD; what is in it stays if it is of this bundle, and asv's always.

    Of the branches, asv asks for "main" by name; all other commits are found by their hashes.
    """
    mark = folder / ".git" / f"fleet-{hashlib.sha256(bundle).hexdigest()}"
    if mark.exists():
        return folder
    folder.mkdir(parents=True, exist_ok=True)
    packed = folder.with_name("repository.bundle")
    packed.write_bytes(bundle)
    git.text(folder, "init", "--quiet")
    for lock in (folder / ".git").rglob("*.lock"):  # of a worker that was killed
        lock.unlink()
    refs = "+HEAD:refs/fleet", "+refs/*:refs/*"
    git.text(folder, "fetch", "--quiet", "--prune", "--update-head-ok", str(packed), *refs)
    git.text(folder, "checkout", "--quiet", "--force", "--detach", "refs/fleet")
    git.text(folder, "clean", "--quiet", "-d", "--force", "results")
    mark.touch()
    return folder


def measure(commit: str, bundle: bytes, bench: str) -> bytes:
    """Measure a commit of a repository that was `bundled`, or its benchmarks in whose names `bench` is found.

    Returns
    -------
    bytes
        An Outcome, as MessagePack: the driver need not import what this worker has.

    Raises
    ------
    RuntimeError
        asv failed; with its last lines.
    NVMLError
        The GPU is gone. The worker closes.
    """
    from distributed import get_worker  # noqa: PLC0415 -- help needs no Dask

    worker = get_worker()
    try:
        machine.nvml_handle()
    except pynvml.NVMLError:
        worker.loop.add_callback(worker.close, reason="the GPU is gone")
        raise
    began = time.monotonic()
    checkout = clone(bundle, Path(os.environ[WORK], str(worker.name).replace("/", "-"), "clone"))
    run(commit, checkout, bench)
    results = checkout / "results"
    new = [results / name for name in git.text(results, "ls-files", "-z", "--others").split("\0") if name]
    own = [path for path in new if path.name in SHARED or path.name.startswith(commit[:8])]
    files = {str(path.relative_to(results)): path.read_bytes() for path in own}
    return msgspec.msgpack.encode(Outcome(str(worker.name), files, time.monotonic() - began))


def run(commit: str, checkout: Path, bench: str) -> None:
    """Run asv over a commit. Raises RuntimeError with its last lines."""
    words = ["asv", "run", "--record-samples", *(["--bench", bench] if bench else []), "HASHFILE:-"]
    # mortal.RUN: it ends with this worker, even if that is killed.
    told = {project_root.VARIABLE: checkout, parent_death.RUN: os.getpid(), "PYTHONUNBUFFERED": 1}
    environment = {**os.environ, **{name: str(value) for name, value in told.items()}}
    environment.pop(RESULTS, None)  # of the driver
    cores = os.environ.get(CORES)
    limited = ["taskset", "--cpu-list", cores] if cores else []
    try:
        done = subprocess.run(
            [*limited, sys.executable, "-m", *words], cwd=checkout, env=environment, input=commit, text=True,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=LONGEST, check=False, errors="replace",
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        raise RuntimeError(f"asv took longer than {LONGEST:g} s") from None
    if done.returncode not in (0, 2):  # 2: some configurations failed, which is their result
        raise RuntimeError(f"asv ended with {done.returncode}: {one_line(done.stdout[-300:])}")
