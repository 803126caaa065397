"""The repository, as one file that travels to every worker, and a worker's clone of it."""

from __future__ import annotations

import hashlib
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path

from kernelwatch.store import git


@dataclass(frozen=True)
class Source:
    """A repository with all its commits: `git bundle`'s bytes, and the commit whose instrument measures."""

    bundle: bytes
    head: str


def bundled(repository: Path) -> Source:
    """Pack a repository with all its branches and tags."""
    # Not origin/HEAD: a bundle has a symbolic one under the name that it stands for, and git clones no name twice.
    every = git.text(repository, "for-each-ref", "--format=%(if)%(symref)%(then)%(else)%(refname)%(end)").split()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "repository.bundle")
        git.text(repository, "bundle", "create", "--quiet", str(path), "HEAD", *every)
        return Source(path.read_bytes(), git.text(repository, "rev-parse", "HEAD"))


def at(source: Source, folder: Path) -> Path:
    """Return a clone in a folder, and keep asv's environments in it for the next one.

    Of the branches, asv asks for "main" by name; all other commits are found by their hashes.
    """
    note, bundle = folder.parent / "source", folder.parent / "repository.bundle"
    digest = hashlib.sha256(source.bundle).hexdigest()
    if note.exists() and note.read_text(encoding="utf-8") == digest:
        return folder
    folder.parent.mkdir(parents=True, exist_ok=True)
    note.unlink(missing_ok=True)
    bundle.write_bytes(source.bundle)
    new = folder.with_name("new")
    shutil.rmtree(new, ignore_errors=True)
    git.text(folder.parent, "clone", "--quiet", "--no-checkout", "--mirror", str(bundle), str(new / ".git"))
    git.text(new / ".git", "config", "core.bare", "false")
    git.text(new, "checkout", "--quiet", "--detach", source.head)
    if (folder / ".asv").exists():
        (folder / ".asv").rename(new / ".asv")
    shutil.rmtree(folder, ignore_errors=True)
    new.rename(folder)
    note.write_text(digest, encoding="utf-8")
    return folder
