"""The lock file of a revision of git: what changed since is what counts otherwise now."""

from __future__ import annotations

import subprocess

from ..errors import LaunchError
from ..git import environment
from . import pins


def since(revision: str) -> pins.Lock:
    """The lock file that a revision has in this folder; an empty one if it has none. Raises `LaunchError`."""
    place = f"./{pins.FILE}"
    if not _git(revision, "ls-tree", "--end-of-options", revision, place):
        return pins.Lock()
    return pins.parsed(_git(revision, "show", "--end-of-options", f"{revision}:{place}"), f"{revision}:{pins.FILE}")


def _git(revision: str, *words: str) -> str:
    try:
        done = subprocess.run(["git", *words], env=environment(), capture_output=True, check=False)
    except FileNotFoundError:
        raise LaunchError("--changed needs git") from None
    if done.returncode:
        raise LaunchError(f"--changed {revision}: {done.stderr.decode(errors='replace').strip()}")
    return done.stdout.decode(errors="replace")
