"""Make small git repositories. `tests.repository` makes one for asv."""

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

from kernelwatch.store import git


def begin(folder: Path, author: str = "n") -> Path:
    """Initialise a repository without commits; return its folder."""
    folder.mkdir(parents=True, exist_ok=True)
    git.text(folder, "init", "--quiet", "--initial-branch=main")
    return set_identity(folder, author)


def set_identity(folder: Path, author: str = "n") -> Path:
    for name, value in (("user.name", author), ("user.email", "e"), ("commit.gpgsign", "false")):
        git.text(folder, "config", name, value)
    return folder


def commit(folder: Path, files: Mapping[str, str] = MappingProxyType({}), message: str = "a change") -> str:
    for name, content in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(content, encoding="utf-8")
        git.text(folder, "add", "--", name)
    git.text(folder, "commit", "--quiet", "--allow-empty", "--message", message)
    return git.text(folder, "rev-parse", "HEAD")
