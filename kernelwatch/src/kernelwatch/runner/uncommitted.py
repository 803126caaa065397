"""Warnings of uncommitted changes: a run measures commits, but with the suite and the libraries of the checkout."""

from collections.abc import Sequence
from pathlib import Path, PurePath

from asv.console import log

from kernelwatch.config import settings
from kernelwatch.config.project_root import ROOT
from kernelwatch.store import git

#: Suffixes of untracked files that a kernel may need.
_SOURCES = (".cu", ".cuh", ".h", ".hpp", ".ptx", ".py")

#: First word of a record of `git status` -> number of fields before the path (git-status(1), version 2). The records
#: are those of changed, unmerged and untracked files.
_FIELDS_BEFORE_PATH = {"1": 7, "u": 9, "?": 0}

#: Maximum number of files that a warning names.
_MAX_NAMES = 8


def warn_of_changes(commits: Sequence[str], results: Path) -> list[str]:
    """Warn of uncommitted files: those that a measurement of HEAD lacks, if any, and those that the run imports.

    Return those that the run imports. Files in the folder `results` are left out, because runs write them.
    """
    package, folders = settings.package_name(), settings.code_folders()
    head, changes = _list_changes()
    files = {
        file: is_tracked for file, is_tracked in changes.items() if not (ROOT / file).is_relative_to(ROOT / results)
    }
    imported = [
        file for file in files if any(PurePath(file).is_relative_to(name) for name in folders if name != package)
    ]
    # Untracked files count only in the package's folder, if the project has one.
    missing = [
        file
        for file, is_tracked in files.items()
        if file not in imported and (is_tracked or package not in folders or PurePath(file).is_relative_to(package))
    ]
    if head in commits:
        _log_names("HEAD is measured without these uncommitted changes", missing)
    _log_names("these uncommitted changes are used", imported)
    return imported


def _list_changes() -> tuple[str, dict[str, bool]]:
    """Return HEAD and the uncommitted files: True for tracked files that differ, False for untracked sources."""
    options = ("--porcelain=v2", "--branch", "--no-renames", "--untracked-files=all", "-z")
    output = git.try_text(ROOT, "--no-optional-locks", "status", *options, "--", ".", ":(exclude).asv") or ""
    head, files = "", dict[str, bool]()
    for record in output.split("\0"):
        kind, _, text = record.partition(" ")
        if text.startswith("branch.oid "):
            head = text.split()[1]
        elif kind in _FIELDS_BEFORE_PATH:
            path = text.split(" ", _FIELDS_BEFORE_PATH[kind])[-1]
            if kind != "?" or PurePath(path).suffix in _SOURCES:
                files[path] = kind != "?"
    return head, files


def _log_names(text: str, names: Sequence[str]) -> None:
    if names:
        further = f" and {len(names) - _MAX_NAMES} more" if len(names) > _MAX_NAMES else ""
        log.warning(f"{text}: {', '.join(names[:_MAX_NAMES])}{further}")
