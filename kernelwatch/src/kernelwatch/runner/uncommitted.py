"""Warnings of files that are not committed: a run measures commits, with the suite and the libraries as they are."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import PurePath

from asv.console import log

from kernelwatch.config import settings
from kernelwatch.config.project_root import ROOT
from kernelwatch.store import git

#: Suffixes of untracked files that a kernel may need.
_SOURCES = (".cu", ".cuh", ".h", ".hpp", ".ptx", ".py")

#: Maximum number of files that a warning names.
_MAX_NAMES = 8


def warn_of_changes(commits: Sequence[str]) -> None:
    """Name what HEAD is measured without, if it is among the commits, and what is imported although HEAD lacks it."""
    package, folders = settings.package_name(), settings.code_folders()
    imported = [folder for folder in folders if folder != package]
    exclusions = [f":(exclude){folder}" for folder in (*imported, ".asv")]
    if git.try_text(ROOT, "rev-parse", "HEAD") in commits:
        missing = [
            *_list_changed(".", *exclusions),
            *_list_untracked(package if package in folders else ".", *exclusions),
        ]
        _log_names("HEAD is measured, without what is not committed", missing)
    if imported:
        _log_names("used as they are here, not as in HEAD", [*_list_changed(*imported), *_list_untracked(*imported)])


def _list_changed(*paths: str) -> list[str]:
    """Return the tracked files that differ from HEAD."""
    return (git.try_text(ROOT, "diff", "--name-only", "--relative", "HEAD", "--", *paths) or "").splitlines()


def _list_untracked(*paths: str) -> list[str]:
    """Return the sources that git does not know and does not ignore."""
    names = (git.try_text(ROOT, "ls-files", "--others", "--exclude-standard", "--", *paths) or "").splitlines()
    return [name for name in names if PurePath(name).suffix in _SOURCES]


def _log_names(text: str, names: Sequence[str]) -> None:
    if names:
        further = f" and {len(names) - _MAX_NAMES} more" if len(names) > _MAX_NAMES else ""
        log.warning(f"{text}: {', '.join(names[:_MAX_NAMES])}{further}")
