"""The repository, as one file that travels to every worker, and a worker's clone of it."""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Source:
    """A repository with all its commits: `git bundle`'s bytes, and the commit whose instrument measures."""

    bundle: bytes
    head: str


def git(folder: Path, *words: str) -> str:
    """Run git. Raises RuntimeError, with git's own words."""
    done = subprocess.run(["git", *words], cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"git {words[0]} in {folder} ended with {done.returncode}: {done.stderr.strip()}")
    return done.stdout.strip()


def bundled(repository: Path) -> Source:
    """Pack a repository with all its branches and tags."""
    # Not origin/HEAD: a bundle has a symbolic one under the name that it stands for, and git clones no name twice.
    every = git(repository, "for-each-ref", "--format=%(if)%(symref)%(then)%(else)%(refname)%(end)").split()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "repository.bundle")
        git(repository, "bundle", "create", "--quiet", str(path), "HEAD", *every)
        return Source(path.read_bytes(), git(repository, "rev-parse", "HEAD"))


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
    git(folder.parent, "clone", "--quiet", "--no-checkout", "--mirror", str(bundle), str(new / ".git"))
    git(new / ".git", "config", "core.bare", "false")
    git(new, "checkout", "--quiet", "--detach", source.head)
    if (folder / ".asv").exists():
        (folder / ".asv").rename(new / ".asv")
    shutil.rmtree(folder, ignore_errors=True)
    new.rename(folder)
    note.write_text(digest, encoding="utf-8")
    return folder
