"""Time and peak memory of the commands `compare`, `regressions` and `site`, by the length of the stored history."""

import contextlib
import io
import os
import resource
import subprocess
import sys
from pathlib import Path

from .histories import MACHINES, make_history

#: Numbers of commits of the histories. `regressions` and `site` are not run with 1,000 commits.
_SIZES = 30, 300, 1000

_IMPORT = [sys.executable, "-c", "import numpy, scipy.stats"]


class _History:
    """A command in a project with a history. The cache has the index of the history, as after `kernelwatch run`."""

    params: tuple[int, ...] = _SIZES
    param_names = ("commits",)
    command: tuple[str, ...]
    timeout = 1800.0
    number, repeat, warmup_time = 1, 5, 0

    def setup_cache(self) -> str:
        """Make the histories in asv's current folder, and return that folder."""
        for commits in _SIZES:  # for all classes: asv runs this once
            folder = Path(f"history-{commits}").resolve()
            folder.mkdir()
            make_history(folder, commits)
        return str(Path.cwd())

    setup_cache.timeout = 600  # type: ignore[attr-defined]

    def setup(self, root: str, commits: int) -> None:
        """Change to the project, and run the command once to fill the cache. asv calls this before each sample."""
        os.chdir(Path(root, f"history-{commits}"))
        os.environ |= {"KERNELWATCH_ROOT": str(Path.cwd()), "KERNELWATCH_CACHE": str(Path("cache").resolve())}
        self.run()

    def run(self) -> None:
        command = [sys.executable, "-m", "kernelwatch", *self.command]
        done = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, check=False)
        self._check_code(done.returncode, done.stderr)

    def run_here(self) -> None:
        from kernelwatch.cli.main import main  # noqa: PLC0415 -- not before the variables are set

        with contextlib.redirect_stderr(io.StringIO()) as errors:
            code = main(self.command)
        self._check_code(code, errors.getvalue())

    def _check_code(self, code: int, text: str) -> None:
        """Raise `RuntimeError` unless the exit code is a verdict; 2 with a text on standard error is none."""
        if code not in (0, 1, 2) or (code == 2 and text):
            raise RuntimeError(f"kernelwatch {' '.join(self.command)} returned {code}: {text}")


class Compare(_History):
    """`compare` of the newest two commits on one machine."""

    command = ("compare", "HEAD~1", "HEAD", "--machine", MACHINES[0])

    def time_compare(self, root: str, commits: int) -> None:
        """Time the command, with its start."""
        self.run()

    def track_compare_imports(self, root: str, commits: int) -> float:
        """Return the CPU time of the command, divided by the CPU time to import NumPy and `scipy.stats`."""
        seconds = []
        for run in (self.run, lambda: subprocess.run(_IMPORT, check=True)):
            run()
            start = _read_cpu_seconds()
            for _ in range(self.repeat):
                run()
            seconds.append(_read_cpu_seconds() - start)
        return seconds[0] / seconds[1]

    track_compare_imports.unit = "imports"  # type: ignore[attr-defined]

    def peakmem_compare(self, root: str, commits: int) -> None:
        """Run the command for its memory."""
        self.run_here()


class Regressions(_History):
    """`regressions` over all commits of one machine."""

    params = _SIZES[:2]
    command = ("regressions", "--machine", MACHINES[0])

    def time_regressions(self, root: str, commits: int) -> None:
        """Time the command, with its start."""
        self.run()

    def peakmem_regressions(self, root: str, commits: int) -> None:
        """Run the command for its memory."""
        self.run_here()


class Site(_History):
    """`site` with all pages of three machines. The cache has their reviews."""

    params = _SIZES[:2]
    command = ("site",)

    def time_site(self, root: str, commits: int) -> None:
        """Time the command, with its start."""
        self.run()

    def peakmem_site(self, root: str, commits: int) -> None:
        """Run the command for its memory."""
        self.run_here()


def _read_cpu_seconds() -> float:
    """Return the CPU time, in seconds, of the child processes that have ended."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime
