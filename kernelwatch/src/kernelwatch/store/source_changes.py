"""The changes of the source between two commits: new acknowledgements, and changed launches in host code."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import msgspec
from msgspec import Meta

from kernelwatch.store import git

#: The file of acknowledged regressions, in the folder of asv.conf.json. It is TOML, because people write it.
ACKNOWLEDGED_FILE = "acknowledged.toml"

#: Maximum size of the file, in bytes: a pull request may contain any file.
_MAX_BYTES = 64 * 1024

#: Git's pathspecs of files that may launch kernels with `<<<`, anywhere in the repository.
_CUDA_FILES = tuple(f":(top)*.{suffix}" for suffix in ("cu", "cuh", "h", "hpp"))

_Line = Annotated[str, Meta(pattern=r"^\S[^\x00-\x1f\x7f]*\Z", max_length=200)]


class Acknowledgement(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """An acknowledged regression: the kernel, the number ("time", or a metric as in the review), and the reason."""

    kernel: _Line
    number: _Line
    reason: _Line


class _AcknowledgedDocument(msgspec.Struct, forbid_unknown_fields=True):
    regression: Sequence[Acknowledgement] = ()


@dataclass(frozen=True)
class SourceChanges:
    """The changes of the source from base to head.

    `acknowledgements` are those of head's acknowledged.toml that base's file lacks, so that an entry accepts only
    changes between these commits. There are none if a file is not valid, or git lacks a commit. `problems` are messages
    on files that are not valid. `launch_files` are the files of CUDA C++ in which lines with `<<<` differ.
    """

    acknowledgements: tuple[Acknowledgement, ...] = ()
    problems: tuple[str, ...] = ()
    launch_files: tuple[str, ...] = ()


def locate_project(results: Path, root: Path) -> Path:
    """Return the folder of acknowledged.toml: the parent of `results` if the file is there, else `root`."""
    return results.parent if (results.parent / ACKNOWLEDGED_FILE).exists() else root


def parse_acknowledgements(text: bytes, where: object) -> Sequence[Acknowledgement]:
    """Return the entries in the text of acknowledged.toml.

    Raises ValueError if the text is not valid. The message is one line that begins with `where`.
    """
    try:
        if len(text) > _MAX_BYTES:
            raise ValueError(f"has {len(text)} bytes; at most {_MAX_BYTES} are allowed")
        return msgspec.toml.decode(text, type=_AcknowledgedDocument).regression
    except (msgspec.DecodeError, ValueError, RecursionError) as error:
        raise ValueError(f"{where}: {' '.join(str(error).split())}") from None


def load_changes(root: Path, base: str, head: str) -> SourceChanges:
    """Return the changes between two commits. If head is checked out, its acknowledged.toml is read from the folder."""
    names = (
        f"{base}^{{commit}}",
        f"{head}^{{commit}}",
        "HEAD^{commit}",
        f"{base}:{ACKNOWLEDGED_FILE}",
        f"{head}:{ACKNOWLEDGED_FILE}",
    )
    base_commit, head_commit, checked_out, base_text, head_text = git.read_objects(root, *names)
    path = root / ACKNOWLEDGED_FILE
    try:
        old = parse_acknowledgements(base_text or b"", f"{base[:8]}:{ACKNOWLEDGED_FILE}")
        new = parse_acknowledgements(head_text or b"", f"{head[:8]}:{ACKNOWLEDGED_FILE}")
        if checked_out is not None and checked_out == head_commit:
            new = parse_acknowledgements(path.read_bytes() if path.exists() else b"", path)
        problems = list[str]()
    except (OSError, ValueError) as error:
        old, new, problems = (), (), [f"{error}; all of its entries are ignored"]
    if base_commit is None or head_commit is None:
        return SourceChanges(problems=tuple(problems))
    return SourceChanges(
        tuple((Counter(new) - Counter(old)).elements()), tuple(problems), _list_launch_files(root, base, head)
    )


def _list_launch_files(root: Path, base: str, head: str) -> tuple[str, ...]:
    # The pattern excludes marks of a merge conflict.
    words = ("diff", "--name-only", "--no-renames", "-z", "-G(^|[^<])<<<($|[^<])", base, head, "--", *_CUDA_FILES)
    return tuple((git.try_text(root, *words) or "").split("\0")[:-1])
