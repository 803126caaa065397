"""The task of a worker: measure one commit with asv in the worker's own clone, and return the new files.

The worker does not use CUDA. The run's measuring process uses the GPU that CUDA_VISIBLE_DEVICES names.
"""

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
from kernelwatch.store import folders, git

#: Environment variables with a worker's folder, and the cores of its runs, as a list for taskset.
WORK_FOLDER, CORES = "KERNELWATCH_FLEET", "KERNELWATCH_FLEET_CORES"

#: Files of results that do not belong to a commit.
SHARED = ("benchmarks.json", "machine.json")

#: Maximum seconds of the run of a commit.
RUN_LIMIT = 3600.0


class MeasuredFiles(msgspec.Struct):
    """The worker's name, the new files by path in the folder of results, and the seconds of the clone and the run."""

    worker: str
    files: dict[str, bytes]
    seconds: float


def bundle_repository(repository: Path) -> bytes:
    """Return a git bundle of a repository, with HEAD and all refs that are not symbolic."""
    # Without origin/HEAD: a bundle lists a symbolic ref under its target's name, and git rejects duplicate names.
    refs = git.text(repository, "for-each-ref", "--format=%(if)%(symref)%(then)%(else)%(refname)%(end)").split()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "repository.bundle")
        git.text(repository, "bundle", "create", "--quiet", str(path), "HEAD", *refs)
        return path.read_bytes()


def clone_bundle(bundle: bytes, folder: Path) -> Path:
    """Return a clone in a folder, at the bundle's HEAD.

    A clone of the same bundle is left as it is. A clone of another bundle keeps asv's environments, but loses results
    that git does not track.
    """
    mark = folder / ".git" / f"fleet-{hashlib.sha256(bundle).hexdigest()}"
    if mark.exists():
        return folder
    folder.mkdir(parents=True, exist_ok=True)
    packed = folder.with_name("repository.bundle")
    packed.write_bytes(bundle)
    git.text(folder, "init", "--quiet")
    for lock in (folder / ".git").rglob("*.lock"):  # left by a killed worker
        lock.unlink()
    refs = "+HEAD:refs/fleet", "+refs/*:refs/*"
    git.text(folder, "fetch", "--quiet", "--prune", "--update-head-ok", str(packed), *refs)
    git.text(folder, "checkout", "--quiet", "--force", "--detach", "refs/fleet")
    git.text(folder, "clean", "--quiet", "-d", "--force", str(folders.project_results(folder)))
    mark.touch()
    return folder


def measure_commit(commit: str, bundle: bytes, bench: str) -> bytes:
    """Measure a commit of a bundled repository; with `bench`, only the benchmarks whose names match this expression.

    Returns
    -------
    bytes
        MeasuredFiles as MessagePack, so that the process of `backfill` need not import the worker's packages.

    Raises
    ------
    RuntimeError
        asv failed, and the message has the end of its output; or asv took longer than RUN_LIMIT.
    GitError
        The bundle cannot be cloned.
    NVMLError
        The GPU is lost; the worker closes.
    """
    from distributed import get_worker  # noqa: PLC0415 -- the help text does not need Dask

    worker = get_worker()
    try:
        machine.nvml_handle()
    except pynvml.NVMLError:
        worker.loop.add_callback(worker.close, reason="the GPU is gone")
        raise
    started = time.monotonic()
    checkout = clone_bundle(bundle, Path(os.environ[WORK_FOLDER], str(worker.name).replace("/", "-"), "clone"))
    results = folders.project_results(checkout)
    for path in _list_new_files(results, commit[:8]):  # left by a killed worker or an earlier fleet
        path.unlink()
    run_asv(commit, checkout, bench)
    files = {
        str(path.relative_to(results)): path.read_bytes() for path in _list_new_files(results, commit[:8], *SHARED)
    }
    return msgspec.msgpack.encode(MeasuredFiles(str(worker.name), files, time.monotonic() - started))


def _list_new_files(results: Path, *prefixes: str) -> list[Path]:
    """Return the paths of results that git does not track and whose names start with one of the prefixes."""
    names = git.text(results, "ls-files", "-z", "--others").split("\0") if results.exists() else []
    return [path for name in names if (path := results / name).name.startswith(prefixes)]


def run_asv(commit: str, checkout: Path, bench: str) -> None:
    """Run asv for a commit. Raises RuntimeError if asv fails or exceeds RUN_LIMIT."""
    words = ["asv", "run", "--record-samples", *(["--bench", bench] if bench else []), "HASHFILE:-"]
    # parent_death.RUN: the run ends with this worker, even if the worker is killed.
    variables = {project_root.VARIABLE: checkout, parent_death.RUN: os.getpid(), "PYTHONUNBUFFERED": 1}
    environment = {**os.environ, **{name: str(value) for name, value in variables.items()}}
    environment.pop(folders.RESULTS, None)  # it names the folder of the process that started the fleet
    cores = os.environ.get(CORES)
    taskset = ["taskset", "--cpu-list", cores] if cores else []
    try:
        done = subprocess.run(
            [*taskset, sys.executable, "-m", *words], cwd=checkout, env=environment, input=commit, text=True,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=RUN_LIMIT, check=False, errors="replace",
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        raise RuntimeError(f"asv took longer than {RUN_LIMIT:g} s; measure fewer benchmarks, --bench REGEX") from None
    if done.returncode not in (0, 2):  # 2: some configurations failed, which is a result
        raise RuntimeError(
            f"asv run ended with exit code {done.returncode}; the end of its output: {one_line(done.stdout[-300:])}"
        )
