"""The folder of results. A run adds files; of those that git tracks, it changes only asv's list of benchmarks.

Each commit has its own files: asv's JSON, and records. Their names begin as asv's do and end with the time of the run.
Several files of a commit and environment are read as one. A machine's folder has the results of the default compiler,
or of the machine's first compiler. Results of other compilers are in its subfolder, which asv's pages do not read.
"""

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from kernelwatch.config import cache_dir
from kernelwatch.config.project_root import CONFIG_FILE
from kernelwatch.store import asv_files, git, index, reading, result_rows
from kernelwatch.toolchain import releases as compilers
from ptxcount.util import atomic_write

#: The environment variable for a folder of results other than the project's.
RESULTS = "KERNELWATCH_RESULTS"

#: The name of the lock file of a folder of results; asv ignores it.
LOCK = "run.lock"


def results_folder(root: Path, config: Any = None) -> Path:
    """Return the folder of results: KERNELWATCH_RESULTS if it is set, else that of the project.

    `config` is asv's configuration, if asv is running. Raises UnreadableError if the configuration is not readable.
    """
    return Path(os.environ.get(RESULTS) or (config.results_dir if config else project_results(root)))


def project_results(root: Path) -> Path:
    """Return the folder of results in asv's configuration.

    Raises UnreadableError if the configuration is not readable.
    """
    return root / asv_files.load_configuration(root / CONFIG_FILE).results_dir


def list_machines(folder: Path) -> list[str]:
    """Return the sorted names of the machines with a machine.json in a folder of results."""
    return [path.name for path in reading.list_paths(folder) if (path / "machine.json").exists()]


@contextmanager
def exclusive_lock(folder: Path) -> Iterator[None]:
    """Lock a folder of results for the `with` block, and remove unfinished files of killed runs.

    If another run has the lock, warn and wait until it ends. The system releases the lock of a killed process. If the
    file system has no locks, warn and continue, but keep unfinished files, which may be another run's.

    Raises UserError if the folder cannot be written.
    """
    # A review imports this module, too. These imports would double its time.
    from asv.console import log  # noqa: PLC0415
    from asv.util import UserError  # noqa: PLC0415
    from filelock import Timeout  # noqa: PLC0415

    lock, has_locks = cache_dir.make_file_lock(folder / LOCK), True
    try:
        folder.mkdir(parents=True, exist_ok=True)
        has_locks = cache_dir.acquire_lock(lock, blocking=False)
    except Timeout:
        log.warning(f"{folder} is in use by another run; waiting until it ends")
        lock.acquire()
    except OSError as error:
        raise UserError(f"{folder} cannot be written: {error.strerror}; set {RESULTS} to another folder") from None
    if not has_locks:
        log.warning(
            f"{folder}: the file system has no locks; start one run at a time, or set {RESULTS} to another file system"
        )
    try:
        for path in folder.rglob(f"*.*.[0-9]*{atomic_write.UNFINISHED}") if has_locks else ():
            path.unlink()  # the file to replace is unchanged
        yield
    finally:
        lock.release()


class CommitFiles:
    """A machine's files of a commit in one of asv's environments.

    Parameters
    ----------
    folder : Path
        The machine's folder.
    commit, environment : str
        The commit's hash, and the environment's name.
    """

    def __init__(self, folder: Path, commit: str, environment: str) -> None:
        from asv.results import get_filename  # noqa: PLC0415 -- as above

        self._folder = folder
        tracked = (git.try_text(folder, "ls-files", "-z", "--", ".") if folder.exists() else None) or ""
        contents = {
            path: content
            for path, content, document in reading.iter_files(folder, commit)
            if (document.commit_hash, document.env_name) == (commit, environment)
        }
        untracked = [path for path in contents if str(path.relative_to(folder)) not in tracked.split("\0")]
        self._untracked_contents = [contents.pop(path) for path in untracked]
        self._tracked_contents = list(contents.values())
        asv_stem = Path(get_filename(folder.name, commit, environment)).stem
        #: The file of an earlier run, which this run extends; None if git tracks it.
        self._earlier_file = untracked[-1] if untracked else None
        #: The beginning of all file names.
        self._stem = untracked[-1].stem if untracked else f"{asv_stem}-{datetime.now(timezone.utc):%Y%m%dT%H%M%SZ}"

    def read_merged(self) -> dict[str, Any] | None:
        """Return the merged content of all files as a document of asv; None if there are none."""
        contents = [*self._tracked_contents, *self._untracked_contents]
        return result_rows.merge_documents(*contents) if contents else None

    def save(self, document: Mapping[str, Any], records: Mapping[str, Sequence[Mapping[str, Any]]]) -> None:
        """Save a document of asv, except benchmarks whose numbers are already in tracked files.

        `records` maps the suffix of a record's file to the lines to add.
        """
        tracked = result_rows.merge_documents(*self._tracked_contents) if self._tracked_contents else {"results": {}}
        merged = result_rows.merge_documents(*self._tracked_contents, *self._untracked_contents, document)
        changed = {
            name: cells
            for name, cells in merged["results"].items()
            if name not in tracked["results"]
            or not result_rows.have_same_numbers(
                result_rows.read_row(tracked, name), result_rows.read_row(merged, name)
            )
        }
        self._folder.mkdir(parents=True, exist_ok=True)
        if changed:
            path = self._earlier_file or self._name_file(compilers.compiler_of_results(merged.get("env_vars", {})))
            path.parent.mkdir(exist_ok=True)
            atomic_write.write(path, json.dumps({**merged, "results": changed}))
        for file, lines in records.items():
            append_lines(self._folder / f"{self._stem}.{file}", *lines)
        index.list_results(self._folder)  # so that the next review reads only the files of its commits

    def _name_file(self, compiler: str | None) -> Path:
        """Return the path of a new result file.

        It is in COMPILERS_FOLDER if the compiler is not the default (None), and the machine's folder has results of a
        different compiler.
        """
        entries = index.list_results(self._folder).items()
        compilers_here = {
            compilers.compiler_of_results(entry.variables) for path, entry in entries if path.parent == self._folder
        }
        if compiler is None or compilers_here <= {compiler}:
            return self._folder / f"{self._stem}.json"
        return self._folder / reading.COMPILERS_FOLDER / f"{self._stem}.jsonl"


def append_lines(path: Path, *entries: Mapping[str, Any]) -> None:
    """Append the entries that a file of JSON lines lacks, atomically; create a missing file."""
    existing_lines = path.read_bytes().splitlines() if path.exists() else []
    if new_lines := [line for line in (json.dumps(entry).encode() for entry in entries) if line not in existing_lines]:
        atomic_write.write(path, b"".join(line + b"\n" for line in (*existing_lines, *new_lines)))


def _strip_code(description: Any) -> Any:
    """Return a description without source texts and line numbers: they may change without a new version."""
    if not isinstance(description, dict):
        return description
    return {name: _strip_code(value) for name, value in description.items() if name not in ("code", "setup_cache_key")}


def copy_descriptions(folder: Path, source: Path, machine: str) -> None:
    """Copy asv's descriptions of a machine and of the benchmarks from `source` into `folder`.

    The machine's is copied if it is missing, the benchmarks' if they differ in more than `_strip_code` removes. Raises
    UnreadableError if a description is not readable, or `folder` describes another machine by this name.
    """
    new, path = (place / machine / "machine.json" for place in (source, folder))
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        atomic_write.write(path, reading.read_content(new))
    elif reading.parse_json(path) != reading.parse_json(new):
        raise reading.UnreadableError(f"{path}: describes another machine; name this one otherwise, --machine NAME")
    new, path = (place / reading.BENCHMARKS_FILE for place in (source, folder))
    if not path.exists() or _strip_code(reading.parse_json(path)) != _strip_code(reading.parse_json(new)):
        atomic_write.write(path, reading.read_content(new))
